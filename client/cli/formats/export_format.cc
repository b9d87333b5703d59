// SPDX-License-Identifier: Apache-2.0
#include "client/cli/formats/export_format.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

#include "client/cli/formats/arc_conversion.h"
#include "client/cli/formats/duplicate_revisits.h"
#include "client/cli/formats/warc_format.h"
#include "client/quire/payload/record_header.h"
#include "codecs/base/byte_size.h"
#include "codecs/base/bytes.h"
#include "codecs/base/checksum.h"
#include "codecs/base/printable_text.h"
#include "codecs/base/status_macros.h"
#include "codecs/base/tar_format.h"

namespace quire {
namespace {

constexpr size_t kNamesMax = 4'000'000;
constexpr size_t kZerosSizeBytes = size_t{64} << 10;

class TarExport final : public ExportFormat {
 public:
  absl::StatusOr<DocumentFrame> Frame(const v1::Document& document,
                                      absl::string_view /*head*/,
                                      const WholeDocument& /*whole*/) override {
    const std::string name = TarName(document.id());
    changed_count_ += name == document.id() ? 0 : 1;
    // Programs that unpack take several slashes for one.
    const uint64_t hash = Checksum64(AsBytes(
        absl::StrJoin(absl::StrSplit(name, '/', absl::SkipEmpty()), "/")));
    if (names_.contains(hash)) {
      ++repeated_count_;
    } else if (names_.size() < kNamesMax) {
      names_.insert(hash);
    }
    const uint64_t size_bytes = document.range().size_bytes();
    return DocumentFrame{
        .before =
            TarHeader(name, size_bytes,
                      document.has_capture_time_ms()
                          ? std::optional<int64_t>(document.capture_time_ms())
                          : std::nullopt),
        .size_bytes = size_bytes,
        .after = TarPadding(size_bytes)};
  }

  std::string End() override { return TarEnd(); }

  std::vector<std::string> Notes() const override {
    std::vector<std::string> notes;
    if (repeated_count_ > 0) {
      notes.push_back(absl::StrCat(
          FormatCounted(repeated_count_, "member has", "members have"),
          " the name of an earlier one; unpacking keeps the last of each name, "
          "quire batch --output-dir writes every document"));
    }
    if (changed_count_ > 0) {
      notes.push_back(absl::StrCat(
          FormatCounted(changed_count_, "id", "ids"),
          " that no file can be named by or that would be unpacked elsewhere, "
          "being empty or having a NUL byte, a slash at the start or the end, "
          "or a component . or ..: there the name has %, %00, %2F or %2E"));
    }
    return notes;
  }

 private:
  absl::flat_hash_set<uint64_t> names_;
  uint64_t repeated_count_ = 0;
  uint64_t changed_count_ = 0;
};

class WarcExport final : public ExportFormat {
 public:
  WarcExport(v1::ArchiveDescription archive, int64_t now_ms,
             bool revisits_duplicates)
      : archive_(std::move(archive)), now_ms_(now_ms) {
    if (revisits_duplicates) {
      duplicates_.emplace();
    }
  }

  size_t HeadSizeBytes(const v1::Document& document,
                       absl::string_view head) const override {
    if (!document.has_record_type()) {
      return 0;
    }
    return !duplicates_.has_value() &&
                   (head.size() < kWarcMagic.size() || IsWarcRecord(head))
               ? kWarcMagic.size()
               : kHeldTextSizeBytesMax;
  }

  absl::StatusOr<DocumentFrame> Frame(const v1::Document& document,
                                      absl::string_view head,
                                      const WholeDocument& whole) override {
    const uint64_t size_bytes = document.range().size_bytes();
    if (!document.has_record_type()) {
      undated_count_ += document.has_capture_time_ms() ? 0 : 1;
      return DocumentFrame{
          .record_before = resource_count_++ == 0
                               ? WarcInfoRecord(archive_, now_ms_)
                               : std::string(),
          .before = WarcResourceHeader(archive_, document, now_ms_),
          .size_bytes = size_bytes,
          .after = std::string(kWarcRecordEnd)};
    }
    if (size_bytes == 0 || IsWarcRecord(head)) {
      return WarcFrame(document, head, whole);
    }
    return ArcFrame(document, head, whole);
  }

  std::string End() override { return ""; }

  bool has_members() const override { return true; }

  std::vector<std::string> Notes() const override {
    std::vector<std::string> notes;
    if (resource_count_ > 0) {
      notes.push_back(absl::StrCat(
          FormatCounted(resource_count_, "document", "documents"),
          " in records of type resource, ", FormatCount(record_count_),
          " WARC records as they were"));
    }
    if (duplicates_.has_value()) {
      const std::vector<std::string> more = duplicates_->Notes();
      notes.insert(notes.end(), more.begin(), more.end());
    }
    if (arc_count_ > 0) {
      notes.push_back(absl::StrCat(
          FormatCounted(arc_count_, "record", "records"),
          " of ARC files in records of types response and warcinfo"));
    }
    if (short_count_ > 0) {
      notes.push_back(absl::StrCat(
          FormatCounted(short_count_, "record", "records"),
          " of ARC files with a length that is too small; there the block has "
          "all that follows the header line"));
    }
    if (undated_count_ > 0) {
      notes.push_back(
          absl::StrCat("no time is known of ",
                       FormatCounted(undated_count_, "record", "records"),
                       ", whose WARC-Date is the time of this export"));
    }
    return notes;
  }

 private:
  absl::StatusOr<DocumentFrame> ArcFrame(const v1::Document& document,
                                         absl::string_view head,
                                         const WholeDocument& whole) {
    std::optional<ArcConversion> arc = ArcConversion::Start(document, head);
    if (!arc.has_value()) {
      return absl::DataLossError(absl::StrCat(
          "document number ", document.ordinal(), ", ",
          QuotedText(document.id()), ", is marked as a record of type ",
          QuotedText(document.record_type()),
          " and must begin with WARC/, or with the header line of an ARC "
          "record, but does not; --tar writes it as it is"));
    }
    const auto add = [&](ByteView bytes) {
      arc->Add(bytes);
      return absl::OkStatus();
    };
    QUIRE_RETURN_IF_ERROR(whole(add));
    if (arc->has_text_after_block()) {
      ++short_count_;
      arc.emplace(*ArcConversion::Start(document, head, /*takes_rest=*/true));
      QUIRE_RETURN_IF_ERROR(whole(add));
    }
    ++arc_count_;
    undated_count_ += document.has_capture_time_ms() ? 0 : 1;
    std::string header = arc->Header(WarcRecordId(archive_, document), now_ms_);
    QUIRE_ASSIGN_OR_RETURN(
        std::optional<DocumentFrame> revisit,
        RevisitFrame({.header = header,
                      .head = head,
                      .block_offset = arc->block_offset(),
                      .document_size_bytes = document.range().size_bytes()},
                     whole));
    return revisit.has_value()
               ? *std::move(revisit)
               : DocumentFrame{.before = std::move(header),
                               .offset = arc->block_offset(),
                               .size_bytes = arc->block_size_bytes(),
                               .after = std::string(kWarcRecordEnd)};
  }

  absl::StatusOr<DocumentFrame> WarcFrame(const v1::Document& document,
                                          absl::string_view head,
                                          const WholeDocument& whole) {
    const uint64_t size_bytes = document.range().size_bytes();
    const size_t header_size = FindRecordHeaderEnd(head).value_or(head.size());
    QUIRE_ASSIGN_OR_RETURN(std::optional<DocumentFrame> revisit,
                           RevisitFrame({.header = head.substr(0, header_size),
                                         .head = head,
                                         .block_offset = header_size,
                                         .document_size_bytes = size_bytes},
                                        whole));
    if (revisit.has_value()) {
      return *std::move(revisit);
    }
    ++record_count_;
    return DocumentFrame{.size_bytes = size_bytes};
  }

  // Returns nothing if the record stays.
  absl::StatusOr<std::optional<DocumentFrame>> RevisitFrame(
      const ExportedRecord& record, const WholeDocument& whole) {
    return duplicates_.has_value() ? duplicates_->Take(record, whole)
                                   : std::optional<DocumentFrame>();
  }

  const v1::ArchiveDescription archive_;
  const int64_t now_ms_;
  // Unset: duplicates stay.
  std::optional<DuplicateRevisits> duplicates_;
  uint64_t record_count_ = 0;
  uint64_t resource_count_ = 0;
  uint64_t arc_count_ = 0;
  uint64_t short_count_ = 0;
  uint64_t undated_count_ = 0;
};

}  // namespace

DocumentWriter::DocumentWriter(ExportFormat& format,
                               std::unique_ptr<MemberCompressor> compressor,
                               Output output)
    : format_(format),
      output_(std::move(output)),
      compressor_(std::move(compressor)) {}

void DocumentWriter::Start(const v1::Document& document, WholeDocument whole,
                           bool holds_text) {
  document_ = document;
  whole_ = std::move(whole);
  holds_text_ = holds_text;
  has_begun_ = false;
  held_.clear();
  position_ = 0;
}

bool DocumentWriter::HasHead(absl::string_view head) const {
  return head.size() == document_.range().size_bytes() ||
         head.size() >= format_.HeadSizeBytes(document_, head);
}

absl::Status DocumentWriter::Begin(absl::string_view head) {
  QUIRE_ASSIGN_OR_RETURN(frame_,
                         format_.Frame(document_, head, [&](FileSink sink) {
                           return head.size() == document_.range().size_bytes()
                                      ? sink(AsBytes(head))
                                      : whole_(sink);
                         }));
  has_begun_ = true;
  if (!frame_.record_before.empty()) {
    QUIRE_RETURN_IF_ERROR(Put(AsBytes(frame_.record_before)));
    QUIRE_RETURN_IF_ERROR(EndMember());
  }
  QUIRE_RETURN_IF_ERROR(Put(AsBytes(frame_.before)));
  return WritePart(AsBytes(head));
}

absl::Status DocumentWriter::Write(ByteView bytes) {
  if (has_begun_) {
    return WritePart(bytes);
  }
  if (held_.empty() && !holds_text_ && HasHead(AsText(bytes))) {
    // Without a copy.
    return Begin(AsText(bytes));
  }
  if (bytes.size() > kHeldTextSizeBytesMax - held_.size()) {
    QUIRE_RETURN_IF_ERROR(Begin(held_));
    held_.clear();
    return WritePart(bytes);
  }
  held_.append(AsText(bytes).data(), bytes.size());
  if (holds_text_ || !HasHead(held_)) {
    return absl::OkStatus();
  }
  return Begin(std::exchange(held_, {}));
}

absl::Status DocumentWriter::WriteZeros(uint64_t size_bytes) {
  const std::string zeros(kZerosSizeBytes, '\0');
  while (size_bytes > 0) {
    const uint64_t part = std::min<uint64_t>(size_bytes, zeros.size());
    QUIRE_RETURN_IF_ERROR(WritePart(AsBytes(zeros).first(part)));
    size_bytes -= part;
  }
  return absl::OkStatus();
}

absl::Status DocumentWriter::WritePart(ByteView bytes) {
  const uint64_t end = position_ + bytes.size();
  const uint64_t first = std::clamp(frame_.offset, position_, end);
  const uint64_t last =
      std::clamp(frame_.offset + frame_.size_bytes, first, end);
  const size_t offset = static_cast<size_t>(first - position_);
  position_ = end;
  return Put(bytes.subspan(offset, static_cast<size_t>(last - first)));
}

absl::Status DocumentWriter::EndDocument() {
  if (!has_begun_) {
    QUIRE_RETURN_IF_ERROR(Begin(held_));
  }
  QUIRE_RETURN_IF_ERROR(Put(AsBytes(frame_.after)));
  return format_.has_members() ? EndMember() : absl::OkStatus();
}

absl::Status DocumentWriter::End() {
  QUIRE_RETURN_IF_ERROR(Put(AsBytes(format_.End())));
  return EndMember();
}

absl::Status DocumentWriter::Put(ByteView bytes) {
  return compressor_ == nullptr ? output_(bytes)
                                : compressor_->Write(bytes, output_);
}

absl::Status DocumentWriter::EndMember() {
  return compressor_ == nullptr ? absl::OkStatus()
                                : compressor_->EndMember(output_);
}

std::unique_ptr<ExportFormat> MakeTarExport() {
  return std::make_unique<TarExport>();
}

std::unique_ptr<ExportFormat> MakeWarcExport(v1::ArchiveDescription archive,
                                             int64_t now_ms,
                                             bool revisits_duplicates) {
  return std::make_unique<WarcExport>(std::move(archive), now_ms,
                                      revisits_duplicates);
}

}  // namespace quire
