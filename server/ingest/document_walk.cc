// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/ingest/document_walk.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

#include "codecs/base/checksum.h"
#include "codecs/base/printable_text.h"
#include "codecs/base/status_macros.h"

namespace quire {
namespace {

// Ids that later ones are compared with; 0.3 GB or less.
constexpr size_t kGivenIdCountMax = size_t{1} << 24;

constexpr size_t kSkipSizeBytes = 1 << 20;

}  // namespace

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
    skipped += reader_->skipped();
    reader_.reset();
  }
  skipped_ = skipped;
  return absl::OkStatus();
}

absl::Status DocumentWalk::OpenSource() {
  QUIRE_RETURN_IF_ERROR(limits_.StartSource(*source_));
  QUIRE_ASSIGN_OR_RETURN(reader_, source_->Open());
  document_index_ = 0;
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
      QUIRE_RETURN_IF_ERROR(TolerateFailure(document.status()));
      can_continue = reader_->CanContinue();
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
    ++document_index_;
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
      absl::StrCat(document_index_, " ", reader_->Place(), " ", document.id);
  if (options_.failures->HasFailed(source_index_, place)) {
    return PassFailedDocument();
  }
  const uint64_t counted_before_bytes = counted_bytes_;
  const absl::Status status = visit(*reader_, document);
  if (status.ok()) {
    return true;
  }
  // Later passes have already used a part of its text.
  if (!is_first_pass_ ||
      !options_.failures->TolerateDocument(source_index_, place, status)) {
    return status;
  }
  counted_bytes_ = counted_before_bytes;
  return reader_->CanContinue();
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

absl::Status DocumentWalk::TolerateFailure(const absl::Status& status) {
  const bool is_tolerated =
      options_.failures != nullptr &&
      (is_first_pass_
           ? options_.failures->Tolerate(source_index_, status)
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
