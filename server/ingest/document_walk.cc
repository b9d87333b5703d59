// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/ingest/document_walk.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

#include "codecs/base/byte_size.h"
#include "codecs/base/checksum.h"
#include "codecs/base/printable_text.h"
#include "codecs/base/status_macros.h"

namespace quire {
namespace {

// Ids that later ones are compared with; 0.3 GB or less.
constexpr size_t kGivenIdCountMax = size_t{1} << 24;

constexpr size_t kSkipSizeBytes = 1 << 20;

// Length of ids in messages.
constexpr size_t kShownIdSizeBytes = 100;

}  // namespace

// The current document in a pass after the first: where it cannot be read any
// more, it ends.
class DocumentWalk::LaterReader final : public SourceReader {
 public:
  LaterReader(DocumentWalk& walk, std::string place)
      : walk_(walk), place_(std::move(place)) {}

  absl::StatusOr<std::optional<SourceDocument>> Next() override {
    return walk_.reader_->Next();
  }

  std::string Place() const override { return walk_.reader_->Place(); }

  absl::StatusOr<size_t> Read(MutableByteView out) override {
    return has_failed_ ? absl::StatusOr<size_t>(0)
                       : Tolerated(walk_.reader_->Read(out));
  }

  absl::StatusOr<uint64_t> Skip(uint64_t size_bytes) override {
    return has_failed_ ? absl::StatusOr<uint64_t>(0)
                       : Tolerated(walk_.reader_->Skip(size_bytes));
  }

  bool has_failed() const { return has_failed_; }

 private:
  template <typename Size>
  absl::StatusOr<Size> Tolerated(absl::StatusOr<Size> size) {
    if (size.ok()) {
      read_bytes_ += *size;
      return size;
    }
    has_failed_ = walk_.options_.failures->TolerateDocument(
        walk_.source_index_, place_, size.status(),
        absl::StrCat("; the input changed during the build: of this document ",
                     "at most the first ",
                     FormatCounted(read_bytes_, "byte is", "bytes are"),
                     " in the archive"));
    return has_failed_ ? absl::StatusOr<Size>(Size{0}) : std::move(size);
  }

  DocumentWalk& walk_;
  const std::string place_;
  uint64_t read_bytes_ = 0;
  bool has_failed_ = false;
};

DocumentWalk::DocumentWalk(std::span<const std::unique_ptr<Source>> sources,
                           Options options)
    : sources_(sources),
      options_(std::move(options)),
      limits_(options_.size_bytes_max) {}

absl::Status DocumentWalk::CheckCancelled() const {
  if (options_.cancel != nullptr && options_.cancel->load()) {
    return absl::CancelledError("interrupted");
  }
  return absl::OkStatus();
}

absl::StatusOr<uint64_t> DocumentWalk::Count(
    const std::function<void(uint64_t size_bytes)>& on_counted) {
  is_first_pass_ = true;
  first_reads_.assign(sources_.size(), {});
  const absl::Status status = ForEachDocument(
      [&](SourceReader& reader, const SourceDocument& document) {
        return CountDocument(reader, document, on_counted);
      });
  is_first_pass_ = false;
  given_ids_ = {};
  QUIRE_RETURN_IF_ERROR(status);
  return counted_bytes_;
}

absl::Status DocumentWalk::CountDocument(
    SourceReader& reader, const SourceDocument& document,
    const std::function<void(uint64_t size_bytes)>& on_counted) {
  if (options_.on_first_read) {
    QUIRE_RETURN_IF_ERROR(options_.on_first_read(reader, document));
  }
  const uint64_t before_bytes = counted_bytes_;
  const auto count = [&](uint64_t size_bytes) {
    counted_bytes_ += size_bytes;
    on_counted(counted_bytes_);
    return AddText(reader, size_bytes);
  };
  const bool reads_all =
      options_.failures != nullptr || options_.describes_sources;
  const bool is_known = document.size_bytes.has_value() && !reads_all;
  if (is_known) {
    QUIRE_RETURN_IF_ERROR(count(*document.size_bytes));
  }
  Checksummer64 checksum;
  uint64_t passed = is_known ? 0 : kSkipSizeBytes;
  while (reads_all ? passed > 0 : passed == kSkipSizeBytes) {
    QUIRE_RETURN_IF_ERROR(CheckCancelled());
    QUIRE_ASSIGN_OR_RETURN(
        passed, reads_all ? ReadOver() : reader.Skip(kSkipSizeBytes));
    QUIRE_RETURN_IF_ERROR(count(passed));
    if (options_.describes_sources) {
      checksum.Add(ByteView(scratch_).first(passed));
    }
  }
  if (options_.on_counted) {
    options_.on_counted(document, counted_bytes_ - before_bytes);
  }
  if (options_.describes_sources) {
    digests_.back().Add(document, counted_bytes_ - before_bytes,
                        checksum.Get());
  }
  return absl::OkStatus();
}

std::string DocumentWalk::DescribeSources() const {
  std::string lines;
  for (const SourceDigest& digest : digests_) {
    lines += digest.Line();
  }
  return lines;
}

UnreadInputs DocumentWalk::unread_inputs() const {
  UnreadInputs unread;
  for (const std::unique_ptr<Source>& source : sources_) {
    UnreadInputs of_source = source->unread_inputs();
    unread.count += of_source.count;
    std::ranges::move(of_source.messages, std::back_inserter(unread.messages));
  }
  return unread;
}

absl::Status DocumentWalk::ForEachDocument(const Visit& visit) {
  SkippedEntries skipped;
  limits_.StartPass();
  for (source_index_ = 0; source_index_ < sources_.size(); ++source_index_) {
    source_ = sources_[source_index_].get();
    if (is_first_pass_ && options_.describes_sources) {
      digests_.emplace_back(*source_);
    }
    const absl::Status opened = OpenSource();
    if (!opened.ok()) {
      QUIRE_RETURN_IF_ERROR(TolerateFailure(opened));
      continue;
    }
    QUIRE_RETURN_IF_ERROR(ReadSource(visit));
    if (is_first_pass_) {
      first_reads_[source_index_] = read_;
    } else {
      NoteChange();
    }
    skipped += reader_->skipped();
    reader_.reset();
    QUIRE_RETURN_IF_ERROR(ReportDoubtful(/*has_ended=*/true));
  }
  skipped_ = skipped;
  return absl::OkStatus();
}

absl::Status DocumentWalk::OpenSource() {
  QUIRE_RETURN_IF_ERROR(limits_.StartSource(*source_));
  QUIRE_ASSIGN_OR_RETURN(reader_, source_->Open());
  read_ = {};
  if (is_first_pass_ && options_.on_note) {
    reader_->Listen(options_.on_note);
  }
  return absl::OkStatus();
}

absl::Status DocumentWalk::ReadSource(const Visit& visit) {
  bool can_continue = true;
  while (can_continue) {
    QUIRE_RETURN_IF_ERROR(CheckCancelled());
    absl::StatusOr<std::optional<SourceDocument>> document = reader_->Next();
    if (!document.ok()) {
      can_continue = reader_->CanContinue();
      QUIRE_RETURN_IF_ERROR(
          TolerateFailure(document.status(), TakeDoubtful(!can_continue)));
      continue;
    }
    if (!document->has_value()) {
      break;
    }
    const absl::Status held =
        limits_.StartDocument(*source_, *reader_, **document);
    if (!held.ok()) {
      QUIRE_RETURN_IF_ERROR(TolerateFailure(held));
      continue;
    }
    if (is_first_pass_ && (*document)->has_given_id && options_.on_note) {
      NoteRepeatedId(**document);
    }
    QUIRE_ASSIGN_OR_RETURN(can_continue, VisitDocument(**document, visit));
    ++read_.documents;
  }
  return absl::OkStatus();
}

void DocumentWalk::NoteRepeatedId(const SourceDocument& document) {
  const uint64_t hash = Checksum64(AsBytes(document.id), 0);
  if (given_ids_.size() >= kGivenIdCountMax && !given_ids_.contains(hash)) {
    return;
  }
  if (!given_ids_.insert(hash).second) {
    options_.on_note(
        EntryNote::kRepeatedId,
        absl::StrCat(source_->name(), ": ", reader_->Place(), ": has the id ",
                     QuotedText(document.id, 100), " of an earlier record"));
  }
}

absl::StatusOr<bool> DocumentWalk::VisitDocument(const SourceDocument& document,
                                                 const Visit& visit) {
  if (options_.failures == nullptr) {
    QUIRE_RETURN_IF_ERROR(visit(*reader_, document));
    return true;
  }
  // A place may be truncated, and an id repeated; the three together identify a
  // document, also if the input changes between passes.
  const std::string place =
      absl::StrCat(read_.documents, " ", reader_->Place(), " ", document.id);
  if (options_.failures->HasFailed(source_index_, place)) {
    return PassFailedDocument();
  }
  if (!is_first_pass_) {
    if (!ToleratesChanges()) {
      QUIRE_RETURN_IF_ERROR(visit(*reader_, document));
      return true;
    }
    LaterReader reader(*this, place);
    QUIRE_RETURN_IF_ERROR(visit(reader, document));
    return !reader.has_failed() || reader_->CanContinue();
  }
  const uint64_t counted_before_bytes = counted_bytes_;
  const uint64_t read_before_bytes = read_.text_bytes;
  const absl::Status status = visit(*reader_, document);
  if (status.ok()) {
    QUIRE_RETURN_IF_ERROR(NoteUnchecked(document));
    return true;
  }
  if (!options_.failures->TolerateDocument(
          source_index_, place, status,
          TakeDoubtful(!reader_->CanContinue()))) {
    return status;
  }
  counted_bytes_ = counted_before_bytes;
  read_.text_bytes = read_before_bytes;
  return reader_->CanContinue();
}

void DocumentWalk::NoteChange() {
  if (first_reads_.empty()) {
    return;
  }
  SourceCount& first = first_reads_[source_index_];
  if (first == read_ || !options_.on_note) {
    return;
  }
  options_.on_note(
      EntryNote::kTolerated,
      absl::StrCat(source_->name(), ": changed during the build: it had ",
                   FormatCounted(first.documents, "document", "documents"),
                   " with ", FormatCounted(first.text_bytes, "byte", "bytes"),
                   ", and then ", FormatCount(read_.documents), " with ",
                   FormatCount(read_.text_bytes),
                   "; the archive has what was read last"));
  first = read_;
}

absl::Status DocumentWalk::NoteUnchecked(const SourceDocument& document) {
  std::shared_ptr<const TextCheck> check = reader_->AwaitedCheck();
  // The error of the current check is still to come.
  QUIRE_RETURN_IF_ERROR(
      ReportDoubtful(/*has_ended=*/false, /*except=*/check.get()));
  if (check == nullptr) {
    return absl::OkStatus();
  }
  auto found = std::ranges::find(unchecked_, check, &Unchecked::check);
  if (found == unchecked_.end()) {
    found = unchecked_.insert(
        found, {.check = std::move(check), .first = document.id, .last = {}});
  }
  ++found->count;
  found->last = document.id;
  return absl::OkStatus();
}

absl::Status DocumentWalk::ReportDoubtful(bool has_ended,
                                          const TextCheck* except) {
  const std::string doubtful = TakeDoubtful(has_ended, except);
  return doubtful.empty() ? absl::OkStatus()
                          : TolerateFailure(absl::DataLossError(absl::StrCat(
                                source_->name(),
                                ": a part was not read to its end", doubtful)));
}

std::string DocumentWalk::TakeDoubtful(bool has_ended,
                                       const TextCheck* except) {
  std::string text;
  std::erase_if(unchecked_, [&](const Unchecked& documents) {
    if (documents.check.get() == except) {
      return false;
    }
    const TextCheck::State state = documents.check->state;
    const bool is_doubtful = state == TextCheck::State::kFailed ||
                             (has_ended && state == TextCheck::State::kAwaited);
    if (is_doubtful) {
      absl::StrAppend(
          &text, "; ", FormatCounted(documents.count, "document", "documents"),
          " of the same compressed part ", documents.count == 1 ? "is" : "are",
          " in the archive unchecked, and may be altered: ",
          QuotedText(documents.first, kShownIdSizeBytes),
          documents.count == 1
              ? ""
              : absl::StrCat(" to ",
                             QuotedText(documents.last, kShownIdSizeBytes)));
    }
    return is_doubtful || state == TextCheck::State::kPassed;
  });
  return text;
}

absl::StatusOr<bool> DocumentWalk::PassFailedDocument() {
  while (true) {
    QUIRE_RETURN_IF_ERROR(CheckCancelled());
    const absl::StatusOr<uint64_t> passed = ReadOver();
    if (!passed.ok()) {
      return reader_->CanContinue();
    }
    if (*passed == 0) {
      return true;
    }
  }
}

absl::StatusOr<uint64_t> DocumentWalk::ReadOver() {
  scratch_.resize(kSkipSizeBytes);
  return reader_->Read(scratch_);
}

absl::Status DocumentWalk::TolerateFailure(const absl::Status& status,
                                           absl::string_view more) {
  const bool is_tolerated =
      options_.failures != nullptr &&
      (is_first_pass_ || ToleratesChanges()
           ? options_.failures->Tolerate(source_index_, status, more)
           : options_.failures->HasFailed(source_index_, status.message()));
  return is_tolerated ? absl::OkStatus() : status;
}

absl::Status DocumentWalk::ReadDocument(
    SourceReader& reader, std::vector<uint8_t>& buffer,
    const std::function<absl::Status(ByteView)>& add) {
  while (true) {
    QUIRE_RETURN_IF_ERROR(CheckCancelled());
    QUIRE_ASSIGN_OR_RETURN(const size_t got, reader.Read(buffer));
    if (got == 0) {
      return absl::OkStatus();
    }
    QUIRE_RETURN_IF_ERROR(AddText(reader, got));
    QUIRE_RETURN_IF_ERROR(add(ByteView(buffer).first(got)));
  }
}

}  // namespace quire
