// SPDX-License-Identifier: Apache-2.0
#include "client/cli/document_listing.h"

#include <algorithm>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"

#include "client/cli/capture_choice.h"
#include "client/cli/item_batch.h"
#include "client/quire/client_status.h"
#include "client/quire/payload/record_header.h"
#include "codecs/base/bytes.h"
#include "codecs/base/check.h"
#include "codecs/base/printable_text.h"
#include "codecs/base/status_macros.h"

namespace quire {
namespace {

constexpr size_t kEntriesMax = 1024;
constexpr uint64_t kEntriesSizeBytesMax = uint64_t{16} << 20;
constexpr size_t kReadySizeBytesMax = size_t{4} << 20;
// First part of a record that is read. If it does not contain the status, the
// next part is larger by this factor.
constexpr uint64_t kPartSizeBytes = 1024;
constexpr uint64_t kPartGrowth = 16;
constexpr uint64_t kPartSizeBytesMax = 2 * kRecordHeaderSizeBytesMax;

uint64_t EntrySizeBytes(const v1::Document& document) {
  return sizeof(ListedDocument) + document.id().size() +
         document.media_type().size() + document.record_type().size();
}

bool IsCapture(const v1::Document& document) {
  const std::string& type = document.record_type();
  return type == "response" || type == "revisit";
}

}  // namespace

// The default of DocumentName.record_types.
bool IsReadById(const v1::Document& document) {
  const std::string& type = document.record_type();
  return type.empty() || type == "response" || type == "resource";
}

absl::Status NothingPassed(const CliRun& run, const DocumentFilter& filter,
                           const DocumentListing& listing) {
  const CliSettings& settings = run.settings();
  std::string message = absl::StrCat(
      "no document of ", QuotedText(settings.archive),
      settings.prefix.empty()
          ? ""
          : absl::StrCat(" whose id starts with ", QuotedText(settings.prefix)),
      " passes the filters");
  if (filter.needs_status() && listing.capture_count() == 0 &&
      listing.listed_count() > 0) {
    absl::StrAppend(&message,
                    "; none of them is a response or revisit of a crawl, which "
                    "--status requires");
  }
  return absl::NotFoundError(message);
}

absl::Status ArchiveReplaced(const CliRun& run) {
  return absl::AbortedError(
      absl::StrCat("the archive ", QuotedText(run.settings().archive),
                   " was replaced by other contents; run the command again"));
}

absl::StatusOr<bool> IsWithdrawnNow(CliRun& run, uint64_t ordinal) {
  DocumentKey key = DocumentKey::Ordinal(ordinal);
  key.part = ByteSpan{};
  const absl::Status status = run.Read(key).status();
  if (absl::IsNotFound(status) || IsWithdrawn(status)) {
    return true;
  }
  QUIRE_RETURN_IF_ERROR(status);
  return false;
}

absl::Status CheckWithdrawn(CliRun& run, uint64_t ordinal) {
  QUIRE_ASSIGN_OR_RETURN(const bool is_withdrawn, IsWithdrawnNow(run, ordinal));
  if (!is_withdrawn) {
    return absl::DataLossError(absl::StrCat(
        "the server did not list document number ", ordinal, " of ",
        QuotedText(run.settings().archive),
        ", which can be read; run the export again, as documents may have been "
        "withdrawn or restored during it"));
  }
  return absl::OkStatus();
}

bool IsSameDocument(const v1::Document& a, const v1::Document& b) {
  return a.ordinal() == b.ordinal() && a.id() == b.id() &&
         a.range().offset() == b.range().offset() &&
         a.range().size_bytes() == b.range().size_bytes();
}

DocumentListing::DocumentListing(CliRun& run, DocumentLister lister,
                                 const DocumentFilter& filter,
                                 const DocumentListingOptions& options)
    : run_(run),
      lister_(std::move(lister)),
      filter_(filter),
      with_status_(options.with_status || filter.needs_status()),
      keep_going_(options.keep_going),
      first_ordinal_(options.first_ordinal),
      is_listed_(options.document_count) {}

absl::StatusOr<std::optional<ListedDocument>> DocumentListing::Next() {
  for (;;) {
    QUIRE_RETURN_IF_ERROR(Fill());
    if (entries_.empty()) {
      return std::optional<ListedDocument>();
    }
    while (!entries_.front().is_decided) {
      QUIRE_RETURN_IF_ERROR(TakeAnswer());
    }
    ListedDocument listed = std::move(entries_.front().listed);
    entries_size_bytes_ -= entries_.front().size_bytes;
    entries_.pop_front();
    ++first_tag_;
    if (listed.is_common_prefix || filter_.PassesStatus(listed.http_status)) {
      return std::optional<ListedDocument>(std::move(listed));
    }
  }
}

absl::Status DocumentListing::Fill() {
  if (at_end_ || entries_.size() > kEntriesMax / 2 ||
      entries_size_bytes_ > kEntriesSizeBytesMax / 2 ||
      (!with_status_ && !entries_.empty())) {
    return absl::OkStatus();
  }
  std::vector<BatchReader::Item> items;
  const size_t entries_max = with_status_ ? kEntriesMax : 1;
  while (entries_.size() < entries_max &&
         entries_size_bytes_ < kEntriesSizeBytesMax) {
    QUIRE_ASSIGN_OR_RETURN(std::optional<ListedDocument> listed, Advance());
    if (!listed.has_value()) {
      at_end_ = true;
      break;
    }
    v1::Document& document = listed->document;
    bool passes = false;
    if (!listed->is_common_prefix && document.ordinal() >= first_ordinal_) {
      QUIRE_ASSIGN_OR_RETURN(passes, PassesFilter(run_, filter_, document));
    }
    if (!listed->is_common_prefix && !passes) {
      withdrawn_count_ += document.ordinal() >= first_ordinal_ &&
                                  document.record_type() == kWithdrawnRecordType
                              ? 1
                              : 0;
      continue;
    }
    Entry entry;
    entry.size_bytes = EntrySizeBytes(listed->document);
    entry.listed = *std::move(listed);
    entries_size_bytes_ += entry.size_bytes;
    if (with_status_ && IsCapture(entry.listed.document) &&
        entry.listed.document.range().size_bytes() > 0) {
      items.push_back(
          RequestPart(first_tag_ + entries_.size(), entry, kPartSizeBytes));
    }
    entries_.push_back(std::move(entry));
  }
  if (!items.empty()) {
    if (batch_ == nullptr) {
      batch_ = run_.client().StartBatch(
          run_.settings().archive,
          {.archive_uuid = run_.read_options().archive_uuid,
           .ready_size_bytes_max = kReadySizeBytesMax});
    }
    batch_->AddAll(std::move(items));
  }
  return absl::OkStatus();
}

// Documents come by id, so that the one before and the one after show whether
// the id occurs more than once.
absl::StatusOr<std::optional<ListedDocument>> DocumentListing::Advance() {
  if (!has_begun_) {
    QUIRE_ASSIGN_OR_RETURN(next_, lister_.NextEntry());
    has_begun_ = true;
  }
  if (!next_.has_value()) {
    return std::optional<ListedDocument>();
  }
  ListedDocument listed;
  if (auto* prefix = std::get_if<CommonPrefix>(&*next_)) {
    listed.document.set_id(std::move(prefix->text));
    listed.is_common_prefix = true;
    QUIRE_ASSIGN_OR_RETURN(next_, lister_.NextEntry());
    return std::optional<ListedDocument>(std::move(listed));
  }
  listed.document = std::get<v1::Document>(*std::move(next_));
  QUIRE_ASSIGN_OR_RETURN(next_, lister_.NextEntry());
  const auto* after =
      next_.has_value() ? std::get_if<v1::Document>(&*next_) : nullptr;
  const bool is_followed =
      after != nullptr && after->id() == listed.document.id();
  // The server numbers those of ids of which it does not list all.
  const bool is_numbered = listed.document.has_occurrence();
  listed.occurrence = is_numbered ? listed.document.occurrence() : occurrence_;
  listed.needs_occurrence = is_numbered || is_followed || occurrence_ > 0 ||
                            !IsReadById(listed.document);
  occurrence_ = is_followed ? occurrence_ + 1 : 0;
  ++listed_count_;
  if (listed.document.ordinal() < is_listed_.size()) {
    is_listed_[listed.document.ordinal()] = true;
  }
  capture_count_ += IsCapture(listed.document) ? 1 : 0;
  return std::optional<ListedDocument>(std::move(listed));
}

UnlistedDocuments DocumentListing::FindUnlisted() const {
  UnlistedDocuments unlisted;
  bool was_listed = true;
  for (uint64_t i = first_ordinal_; i < is_listed_.size(); ++i) {
    if (!is_listed_[i]) {
      ++unlisted.count;
      unlisted.ordinal = was_listed ? i : unlisted.ordinal;
    }
    was_listed = is_listed_[i];
  }
  return unlisted;
}

BatchReader::Item DocumentListing::RequestPart(uint64_t tag, Entry& entry,
                                               uint64_t part_size_bytes) const {
  const v1::Document& document = entry.listed.document;
  entry.is_decided = false;
  entry.part_size_bytes =
      std::min(part_size_bytes, document.range().size_bytes());
  // By ordinal: the answer has the description, which shows whether the archive
  // is still the same.
  DocumentKey key = DocumentKey::Ordinal(document.ordinal());
  key.part = ByteSpan{0, entry.part_size_bytes};
  return {.tag = tag, .target = std::move(key)};
}

absl::Status DocumentListing::TakeAnswer() {
  std::optional<BatchAnswer> answer = batch_->Next();
  QUIRE_CHECK(answer.has_value(), "an undecided document has no request");
  if (IsTooLargeForBatch(answer->result.status())) {
    answer->result = run_.Read(answer->target);
  }
  return TakePart(*std::move(answer));
}

absl::Status DocumentListing::TakePart(BatchAnswer answer) {
  Entry& entry = entries_[answer.tag - first_tag_];
  ListedDocument& listed = entry.listed;
  entry.is_decided = true;
  if (!answer.result.ok()) {
    const absl::Status& status = answer.result.status();
    if (IsOfOtherContents(status)) {
      return status;
    }
    if (absl::IsNotFound(status) || absl::IsOutOfRange(status)) {
      return ArchiveReplaced(run_);
    }
    if (!keep_going_ || ExitCodeFor(status) == kExitUnreachable) {
      return status;
    }
    listed.is_status_unknown = true;
    run_.ComplainOfItem(absl::StrCat("HTTP status of document number ",
                                     listed.document.ordinal(), ", ",
                                     QuotedText(listed.document.id())),
                        status);
    return absl::OkStatus();
  }
  if (!IsSameDocument(*answer.result->document, listed.document)) {
    return ArchiveReplaced(run_);
  }
  const HttpStatusSearch found = FindHttpStatus(AsBytes(answer.result->data));
  listed.http_status = found.code;
  const uint64_t size_bytes = entry.part_size_bytes;
  if (!found.is_decided && size_bytes < kPartSizeBytesMax &&
      size_bytes < listed.document.range().size_bytes()) {
    std::vector<BatchReader::Item> items;
    items.push_back(
        RequestPart(answer.tag, entry,
                    std::min(size_bytes * kPartGrowth, kPartSizeBytesMax)));
    batch_->AddAll(std::move(items));
  }
  return absl::OkStatus();
}

}  // namespace quire
