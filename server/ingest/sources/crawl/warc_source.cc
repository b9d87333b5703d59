// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/ingest/sources/crawl/warc_source.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include "codecs/base/byte_size.h"
#include "codecs/base/header_fields.h"
#include "codecs/base/printable_text.h"
#include "codecs/base/status_macros.h"
#include "server/ingest/sources/crawl/arc_header.h"
#include "server/ingest/sources/crawl/warc_header.h"

namespace quire {
namespace {

constexpr size_t kBufferSizeBytes = 128 << 10;
// Most HTTP headers are smaller.
constexpr size_t kHttpPeekSizeBytes = 8 << 10;
// Length of unexpected text in messages.
constexpr size_t kShownSizeBytes = 20;
// Line ends between two records of an ARC. One is usual.
constexpr size_t kArcGapSizeBytesMax = 64;

class WarcSource final : public Source {
 public:
  WarcSource(std::shared_ptr<const InputFile> file, OpenStream open,
             RecordFormat format, WarcDamage damage)
      : file_(std::move(file)),
        open_(std::move(open)),
        format_(format),
        damage_(damage) {}

  const std::string& name() const override { return file_->name(); }

  const char* kind() const override {
    return format_ == RecordFormat::kWarc ? "warc" : "arc";
  }

  absl::StatusOr<std::optional<uint64_t>> StoredSizeBytes() const override {
    return file_->SizeBytes();
  }

  absl::StatusOr<std::unique_ptr<SourceReader>> Open() const override {
    QUIRE_ASSIGN_OR_RETURN(std::unique_ptr<ByteStream> stream, open_());
    return std::make_unique<WarcReader>(std::move(stream), name(), format_,
                                        damage_);
  }

 private:
  const std::shared_ptr<const InputFile> file_;
  const OpenStream open_;
  const RecordFormat format_;
  const WarcDamage damage_;
};

}  // namespace

bool IsWarcStart(absl::string_view text) {
  return absl::StartsWith(text, kWarcMagic);
}

ByteStream::IsPartStart RecordStart(RecordFormat format) {
  return format == RecordFormat::kWarc ? IsWarcStart : IsArcStart;
}

WarcReader::WarcReader(std::unique_ptr<ByteStream> stream, std::string name,
                       RecordFormat format, WarcDamage damage)
    : stream_(std::move(stream)),
      name_(std::move(name)),
      format_(format),
      damage_(damage),
      buffer_(kBufferSizeBytes) {}

absl::Status WarcReader::Malformed(absl::string_view what) const {
  return absl::DataLossError(absl::StrCat(name_, ": ", Place(), ": ", what));
}

std::string WarcReader::Place() const {
  return absl::StrCat(
      "record ", record_count_ - 1, " (from 0) at byte ", record_offset_,
      " of the uncompressed ", format_ == RecordFormat::kWarc ? "WARC" : "ARC",
      part_offset_.has_value() ? absl::StrCat(" that follows from byte ",
                                              *part_offset_, " of the file")
                               : "");
}

absl::Status WarcReader::PassDamage(const absl::Status& status) {
  if (damage_ == WarcDamage::kStop || !absl::IsDataLoss(status) ||
      next_part_offset_.has_value()) {
    return status;
  }
  const absl::StatusOr<std::optional<ByteStream::SkippedPart>> skipped =
      stream_->SkipPart(record_offset_, RecordStart(format_));
  if (!skipped.ok() || !skipped->has_value()) {
    return status;
  }
  const ByteStream::SkippedPart& part = **skipped;
  if (!part.is_last) {
    next_part_offset_ = part.offset + part.size_bytes;
  }
  return absl::DataLossError(absl::StrCat(
      status.message(),
      "; left out: ", FormatCounted(part.size_bytes, "byte", "bytes"),
      " of the file at offset ", part.offset,
      part.is_last ? ", its rest" : ", up to the next member"));
}

void WarcReader::StartPart() {
  part_offset_ = std::exchange(next_part_offset_, std::nullopt);
  begin_ = 0;
  end_ = 0;
  stream_ended_ = false;
  stream_status_ = absl::OkStatus();
  record_offset_ = 0;
  block_end_ = 0;
  record_size_bytes_ = 0;
  record_position_ = 0;
}

absl::Status WarcReader::EndsAfter(uint64_t size_bytes) const {
  return Malformed(absl::StrCat("the file ends after ", size_bytes, " of its ",
                                block_end_ + record_end_.size(),
                                " bytes (is it truncated?)"));
}

absl::Status WarcReader::Truncated(absl::string_view what) const {
  return stream_status_.ok() ? Malformed(what) : stream_status_;
}

void WarcReader::Fill(size_t size) {
  if (begin_ + size > buffer_.size()) {
    std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
    if (size > buffer_.size()) {
      buffer_.resize(size);
    }
  }
  while (end_ - begin_ < size && !stream_ended_) {
    const absl::StatusOr<size_t> got =
        stream_->Read(MutableByteView(buffer_).subspan(end_));
    stream_status_ = got.status();
    stream_ended_ = !got.ok() || *got == 0;
    end_ += got.value_or(0);
  }
}

void WarcReader::Consume(size_t size) {
  begin_ += size;
  if (begin_ == end_) {
    begin_ = 0;
    end_ = 0;
  }
}

absl::Status WarcReader::CheckMagic() {
  if (format_ == RecordFormat::kArc) {
    return absl::OkStatus();
  }
  Fill(kWarcMagic.size());
  if (absl::StartsWith(kWarcMagic, AsText(buffered())) &&
      !stream_status_.ok()) {
    return stream_status_;
  }
  if (!absl::StartsWith(AsText(buffered()), kWarcMagic)) {
    return Malformed(absl::StrCat(
        "found ", QuotedText(AsText(buffered()), kShownSizeBytes),
        " where a record must start with WARC/1.0 or WARC/1.1; if it is not ",
        "the first, the Content-Length of the one before may be wrong"));
  }
  return absl::OkStatus();
}

std::optional<size_t> WarcReader::HeaderSize() const {
  if (format_ == RecordFormat::kWarc) {
    return FindHeaderEnd(buffered());
  }
  const size_t line_end = AsText(buffered()).find('\n');
  return line_end == absl::string_view::npos
             ? std::nullopt
             : std::optional<size_t>(line_end + 1);
}

absl::StatusOr<size_t> WarcReader::FindHeader() {
  QUIRE_RETURN_IF_ERROR(CheckMagic());
  for (size_t size = 1 << 10;; size *= 2) {
    Fill(size);
    const std::optional<size_t> end = HeaderSize();
    if (end.has_value() && *end <= kWarcHeaderSizeBytesMax) {
      return *end;
    }
    if (buffered().size() >= kWarcHeaderSizeBytesMax) {
      return Malformed(absl::StrCat(
          format_ == RecordFormat::kWarc ? "no empty line" : "no line end",
          " ends its header within 1 MiB; the record is malformed"));
    }
    if (stream_ended_) {
      return Truncated("the file ends inside its header (is it truncated?)");
    }
  }
}

std::optional<std::string> WarcReader::PeekHttpMediaType(
    size_t header_size, uint64_t content_length) {
  for (size_t peek = kHttpPeekSizeBytes;; peek *= 2) {
    const auto block_size =
        static_cast<size_t>(std::min<uint64_t>(peek, content_length));
    Fill(header_size + block_size);
    ByteView block = buffered().subspan(header_size);
    block = block.first(std::min(block.size(), block_size));
    std::optional<std::string> http_type = HttpMediaType(block);
    if (!http_type.has_value() || block.size() < peek ||
        FindHeaderEnd(block).has_value() || peek >= kWarcHeaderSizeBytesMax) {
      return http_type;
    }
  }
}

absl::StatusOr<std::optional<SourceDocument>> WarcReader::Next() {
  if (next_part_offset_.has_value()) {
    StartPart();
  }
  absl::StatusOr<std::optional<SourceDocument>> document = NextRecord();
  return document.ok() ? std::move(document) : PassDamage(document.status());
}

absl::StatusOr<std::optional<SourceDocument>> WarcReader::NextRecord() {
  const uint64_t rest = record_size_bytes_ - record_position_;
  QUIRE_RETURN_IF_ERROR(SkipRecord(rest).status());
  record_offset_ += record_size_bytes_;
  block_end_ = 0;
  record_size_bytes_ = 0;
  record_position_ = 0;
  Fill(1);
  if (buffered().empty()) {
    QUIRE_RETURN_IF_ERROR(stream_status_);
    return std::nullopt;
  }
  ++record_count_;
  QUIRE_ASSIGN_OR_RETURN(const size_t header_size, FindHeader());
  const bool is_arc = format_ == RecordFormat::kArc;
  const ByteView header_bytes = buffered().first(header_size);
  absl::StatusOr<WarcHeader> header =
      is_arc ? ParseArcHeader(header_bytes) : ParseWarcHeader(header_bytes);
  if (!header.ok()) {
    return Malformed(header.status().message());
  }
  // A revisit has the HTTP header of the record that it refers to.
  if (is_arc || header->record_type == "response" ||
      header->record_type == "revisit") {
    header->media_type = PeekHttpMediaType(header_size, header->content_length)
                             .value_or(header->media_type);
  }
  record_end_ = is_arc ? "" : header->crlf ? "\r\n\r\n" : "\n\n";
  block_end_ = header_size + header->content_length;
  // A damaged length may be larger than any limit.
  const uint64_t size_bytes_min = block_end_ + record_end_.size();
  const uint64_t left =
      stream_->EndOffset().value_or(UINT64_MAX) - record_offset_;
  if (size_bytes_min > left) {
    return EndsAfter(left);
  }
  record_size_bytes_ =
      block_end_ + (is_arc ? kArcGapSizeBytesMax : record_end_.size());

  SourceDocument document;
  document.id = !header->target_uri.empty() ? std::move(header->target_uri)
                : !header->record_id.empty()
                    ? std::move(header->record_id)
                    : absl::StrCat("warc-record:", record_count_ - 1);
  if (!is_arc) {
    document.size_bytes = record_size_bytes_;
  }
  document.capture_time_ms = header->date_ms;
  document.record_type = std::move(header->record_type);
  document.media_type = std::move(header->media_type);
  return document;
}

absl::Status WarcReader::FindArcRecordEnd() {
  // One more byte, as in CheckRecordEnd().
  Fill(kArcGapSizeBytesMax + 1);
  const absl::string_view text = AsText(buffered());
  const size_t size = std::min(
      {text.find_first_not_of("\r\n"), text.size(), kArcGapSizeBytesMax});
  record_size_bytes_ = block_end_ + size;
  return text.size() > size || stream_->IsVerified() ? absl::OkStatus()
                                                     : stream_status_;
}

absl::Status WarcReader::CheckRecordEnd() {
  if (format_ == RecordFormat::kArc) {
    return FindArcRecordEnd();
  }
  // One more byte: a compressed record is verified once the checksum after it
  // has been read. Later read errors do not concern the record.
  Fill(record_end_.size() + 1);
  const absl::string_view found =
      AsText(buffered()).substr(0, record_end_.size());
  if (found == record_end_) {
    return buffered().size() > record_end_.size() || stream_->IsVerified()
               ? absl::OkStatus()
               : stream_status_;
  }
  if (absl::StartsWith(record_end_, found)) {
    return Truncated(absl::StrCat(
        "the file ends after ", record_position_ + found.size(), " of its ",
        record_size_bytes_, " bytes (is it truncated?)"));
  }
  return Malformed(absl::StrCat(
      "found ", QuotedText(found), " after its block, where two line ends ",
      "must be: its Content-Length is wrong, or the file damaged"));
}

absl::StatusOr<size_t> WarcReader::Read(MutableByteView out) {
  const absl::StatusOr<size_t> size = ReadRecord(out);
  return size.ok() ? size : PassDamage(size.status());
}

absl::StatusOr<uint64_t> WarcReader::Skip(uint64_t size_bytes) {
  const absl::StatusOr<uint64_t> skipped = SkipRecord(size_bytes);
  return skipped.ok() ? skipped : PassDamage(skipped.status());
}

absl::StatusOr<size_t> WarcReader::ReadRecord(MutableByteView out) {
  if (record_position_ == record_size_bytes_) {
    return 0;
  }
  if (record_position_ >= block_end_) {
    if (record_position_ == block_end_) {
      QUIRE_RETURN_IF_ERROR(CheckRecordEnd());
    }
    const auto size = static_cast<size_t>(
        std::min<uint64_t>(out.size(), record_size_bytes_ - record_position_));
    std::memcpy(out.data(), buffered().data(), size);
    Consume(size);
    record_position_ += size;
    return size;
  }
  const auto want = static_cast<size_t>(
      std::min<uint64_t>(out.size(), block_end_ - record_position_));
  size_t size = std::min(want, buffered().size());
  if (size > 0) {
    std::memcpy(out.data(), buffered().data(), size);
    Consume(size);
  } else {
    QUIRE_RETURN_IF_ERROR(stream_status_);
    QUIRE_ASSIGN_OR_RETURN(size, stream_->Read(out.first(want)));
    if (size == 0) {
      return EndsAfter(record_position_);
    }
  }
  record_position_ += size;
  return size;
}

absl::StatusOr<uint64_t> WarcReader::SkipRecord(uint64_t size_bytes) {
  uint64_t skipped = 0;
  const uint64_t in_buffer = std::min<uint64_t>(
      {size_bytes, block_end_ - std::min(block_end_, record_position_),
       buffered().size()});
  Consume(static_cast<size_t>(in_buffer));
  record_position_ += in_buffer;
  skipped += in_buffer;
  if (buffered().empty() && record_position_ < block_end_) {
    QUIRE_RETURN_IF_ERROR(stream_status_);
    QUIRE_ASSIGN_OR_RETURN(
        const uint64_t passed,
        stream_->Skip(
            std::min(size_bytes - skipped, block_end_ - record_position_)));
    record_position_ += passed;
    skipped += passed;
  }
  // The rest is the record's end, which is checked, or missing.
  QUIRE_ASSIGN_OR_RETURN(const uint64_t read,
                         SourceReader::Skip(size_bytes - skipped));
  return skipped + read;
}

std::unique_ptr<Source> MakeWarcSource(std::shared_ptr<const InputFile> file,
                                       OpenStream open, RecordFormat format,
                                       WarcDamage damage) {
  return std::make_unique<WarcSource>(std::move(file), std::move(open), format,
                                      damage);
}

}  // namespace quire
