// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/ingest/sources/crawl/warc_reader.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "codecs/base/byte_size.h"
#include "codecs/base/header_fields.h"
#include "codecs/base/printable_text.h"
#include "codecs/base/status_macros.h"
#include "server/ingest/sources/crawl/arc_header.h"
#include "server/ingest/sources/crawl/crawl_record.h"
#include "server/ingest/sources/crawl/warc_header.h"

namespace quire {
namespace {

constexpr size_t kBufferSizeBytes = 128 << 10;
// Most HTTP headers are smaller.
constexpr size_t kHttpPeekSizeBytes = 8 << 10;
// Length of unexpected text in messages.
constexpr size_t kShownSizeBytes = 20;
// Most header lines of an ARC are shorter.
constexpr size_t kCheckedLineSizeBytes = 1 << 10;
// Two line ends, and the first bytes of the next record.
constexpr size_t kEndSizeBytes = 4 + kWarcMagic.size();
// Text between a block and the next record.
constexpr size_t kStraySizeBytesMax = 64 << 10;
// Upper bound on blocks of records whose end is found before they are read; the
// same where damage is skipped.
constexpr uint64_t kExaminedSizeBytesMax = 1 << 20;
constexpr uint64_t kExaminedDamagedSizeBytesMax = 8 << 20;

absl::string_view FormatName(RecordFormat format) {
  return format == RecordFormat::kWarc ? "WARC" : "ARC";
}

// Without text after its first line, except line ends.
bool IsOneLine(absl::string_view text) {
  const size_t end = text.find('\n');
  return end == absl::string_view::npos ||
         text.find_first_not_of("\r\n", end) == absl::string_view::npos;
}

}  // namespace

bool IsWarcStart(absl::string_view text) {
  return absl::StartsWithIgnoreCase(text, kWarcMagic);
}

ByteStream::IsPartStart RecordStart(RecordFormat format) {
  return format == RecordFormat::kWarc ? IsWarcStart : IsArcStart;
}

WarcReader::WarcReader(std::unique_ptr<ByteStream> stream, std::string name,
                       RecordFormat format, WarcDamage damage,
                       std::shared_ptr<const DepositSource> deposit)
    : stream_(std::move(stream)),
      name_(std::move(name)),
      format_(format),
      damage_(damage),
      deposit_(std::move(deposit)),
      buffer_(kBufferSizeBytes) {}

absl::Status WarcReader::Malformed(absl::string_view what) const {
  return absl::DataLossError(absl::StrCat(name_, ": ", Place(), ": ", what));
}

void WarcReader::NoteIrregular(absl::string_view what) {
  if (listener()) {
    Note(EntryNote::kIrregularRecord,
         absl::StrCat(name_, ": ", Place(), ": ", what));
  }
}

std::string WarcReader::Place() const {
  return absl::StrCat(
      "record ", record_count_ - 1, " (from 0) at byte ", record_offset_,
      " of the uncompressed ", FormatName(format_),
      part_offset_.has_value() ? absl::StrCat(" that follows from byte ",
                                              *part_offset_, " of the file")
                               : "");
}

absl::Status WarcReader::PassDamage(const absl::Status& status) {
  if (damage_ == WarcDamage::kStop || !absl::IsDataLoss(status) ||
      can_continue_) {
    return status;
  }
  if (status == stream_status_) {
    return PassPart(status, record_offset_);
  }
  const absl::StatusOr<bool> found = FindNextRecord();
  if (!found.ok()) {
    return PassPart(status, record_offset_ + record_position_);
  }
  can_continue_ = *found;
  return absl::DataLossError(absl::StrCat(
      status.message(),
      "; left out: ", FormatCounted(record_position_, "byte", "bytes"),
      " at offset ", record_offset_, " of the uncompressed ",
      FormatName(format_), *found ? ", up to the next record" : ", its rest"));
}

absl::Status WarcReader::PassPart(const absl::Status& status,
                                  uint64_t text_offset) {
  const std::string text =
      absl::StrCat(" at offset ", record_offset_, " of the uncompressed ",
                   FormatName(format_));
  const absl::StatusOr<std::optional<ByteStream::SkippedPart>> skipped =
      stream_->SkipPart(text_offset, RecordStart(format_));
  if (!skipped.ok() || !skipped->has_value()) {
    return absl::DataLossError(
        absl::StrCat(status.message(), "; left out: all", text));
  }
  const ByteStream::SkippedPart& part = **skipped;
  if (!part.is_last) {
    next_part_offset_ = part.offset + part.size_bytes;
    can_continue_ = true;
  }
  std::string what;
  if (record_offset_ > part.text_offset) {
    // Records at its start have been read.
    what = absl::StrCat("the text from its byte ",
                        record_offset_ - part.text_offset, " on in ");
  } else if (record_offset_ < part.text_offset) {
    what = absl::StrCat(
        FormatCounted(part.text_offset - record_offset_, "byte", "bytes"), text,
        ", and ");
  }
  return absl::DataLossError(
      absl::StrCat(status.message(), "; left out: ", what,
                   FormatCounted(part.size_bytes, "byte", "bytes"),
                   " of the file at offset ", part.offset,
                   part.is_last ? ", its rest" : ", up to the next member"));
}

size_t WarcReader::SizeInPart(uint64_t& part_offset) const {
  const uint64_t at = record_offset_ + record_position_;
  while (true) {
    const std::optional<uint64_t> end = stream_->PartEnd(part_offset);
    if (!end.has_value() || *end - std::min(*end, at) > buffered().size()) {
      return buffered().size();
    }
    if (*end > at) {
      return static_cast<size_t>(*end - at);
    }
    if (*end == part_offset) {
      return buffered().size();
    }
    part_offset = *end;
  }
}

absl::StatusOr<bool> WarcReader::FindNextRecord() {
  bool at_line_start = false;
  if (record_position_ > header_size_ && stream_->EndOffset().has_value() &&
      stream_->Seek(record_offset_ + header_size_)) {
    begin_ = 0;
    end_ = 0;
    stream_ended_ = false;
    record_position_ = header_size_;
  }
  if (record_position_ <= header_size_) {
    Consume(std::min(header_size_ - static_cast<size_t>(record_position_),
                     buffered().size()));
    record_position_ = header_size_;
    at_line_start = header_size_ > 0;
  }
  bool found = false;
  uint64_t part_offset = record_offset_;
  while (!found) {
    Fill(2 * kFoundHeaderSizeBytesMax);
    const size_t size = SizeInPart(part_offset);
    // The next member begins there, where a record may begin without a line end
    // before it.
    const bool is_part_end = size < buffered().size();
    RecordSearch search =
        FindRecordStart(format_, AsText(buffered()).substr(0, size),
                        at_line_start, stream_ended_ || is_part_end);
    found = search.outcome == RecordSearch::Outcome::kFound;
    at_line_start =
        is_part_end || search.outcome == RecordSearch::Outcome::kNeedsMore;
    const bool is_end = !found && stream_ended_ && !is_part_end;
    const size_t passed =
        !found && (is_end || is_part_end) ? size : search.offset;
    Consume(passed);
    record_position_ += passed;
    if (is_end) {
      QUIRE_RETURN_IF_ERROR(stream_status_);
      break;
    }
  }
  block_end_ = record_position_;
  record_size_bytes_ = record_position_;
  return found;
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

absl::StatusOr<size_t> WarcReader::ReadStream(MutableByteView out) {
  absl::StatusOr<size_t> got = stream_->Read(out);
  stream_status_ = got.status();
  stream_ended_ = !got.ok() || *got == 0;
  return got;
}

void WarcReader::Fill(size_t size) {
  if (begin_ + size > buffer_.size()) {
    std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
    if (size > buffer_.size()) {
      buffer_.resize(std::max(size, 2 * buffer_.size()));
    }
  }
  while (end_ - begin_ < size && !stream_ended_) {
    end_ += ReadStream(MutableByteView(buffer_).subspan(end_)).value_or(0);
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
  if (absl::StartsWithIgnoreCase(kWarcMagic, AsText(buffered())) &&
      !stream_status_.ok()) {
    return stream_status_;
  }
  if (!IsWarcStart(AsText(buffered()))) {
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
    uint64_t content_length) {
  for (size_t peek = kHttpPeekSizeBytes;; peek *= 2) {
    const auto block_size =
        static_cast<size_t>(std::min<uint64_t>(peek, content_length));
    Fill(header_size_ + block_size);
    ByteView block = buffered().subspan(header_size_);
    block = block.first(std::min(block.size(), block_size));
    std::optional<std::string> http_type = HttpMediaType(block);
    if (!http_type.has_value() || block.size() < peek ||
        FindHeaderEnd(block.subspan(BlankLinesSize(AsText(block))))
            .has_value() ||
        peek >= kWarcHeaderSizeBytesMax) {
      return http_type;
    }
  }
}

ByteView WarcReader::PeekBlock(size_t size_bytes) {
  size_bytes = static_cast<size_t>(
      std::min<uint64_t>(size_bytes, block_end_ - header_size_));
  Fill(header_size_ + size_bytes);
  const ByteView block =
      buffered().subspan(std::min(header_size_, buffered().size()));
  return block.first(std::min(block.size(), size_bytes));
}

CrawlRecord WarcReader::DescribeRecord(const WarcHeader& header) {
  const ByteView start = PeekBlock(CrawlRecordSize(header, {}));
  return MakeCrawlRecord(header, PeekBlock(CrawlRecordSize(header, start)));
}

absl::StatusOr<WarcHeader> WarcReader::ReadHeader() {
  QUIRE_ASSIGN_OR_RETURN(const size_t size, FindHeader());
  const bool is_arc = format_ == RecordFormat::kArc;
  const ByteView bytes = buffered().first(size);
  absl::StatusOr<WarcHeader> header =
      is_arc ? ParseArcHeader(bytes) : ParseWarcHeader(bytes);
  if (!header.ok()) {
    return Malformed(header.status().message());
  }
  header_size_ = size;
  record_end_ = is_arc ? "" : header->crlf ? "\r\n\r\n" : "\n\n";
  record_size_bytes_ = std::nullopt;
  if (header->content_length.has_value()) {
    block_end_ = size + *header->content_length;
  } else {
    QUIRE_RETURN_IF_ERROR(FindUnstatedEnd(header->oddities.back()));
  }
  // A revisit has the HTTP header of the record that it refers to.
  if (header->record_type == "response" || header->record_type == "revisit") {
    header->media_type = PeekHttpMediaType(block_end_ - header_size_)
                             .value_or(header->media_type);
  }
  return header;
}

absl::Status WarcReader::FindUnstatedEnd(absl::string_view fault) {
  const RecordSearch search =
      SearchAt(header_size_, /*at_line_start=*/true, kExaminedSizeBytesMax);
  const std::optional<uint64_t> part_end = stream_->PartEnd(record_offset_);
  uint64_t end = UINT64_MAX;
  if (search.outcome == RecordSearch::Outcome::kFound) {
    end = header_size_ + search.offset;
  } else if (stream_ended_ && stream_status_.ok()) {
    end = buffered().size();
  }
  if (part_end.has_value()) {
    end = std::min(end, *part_end - record_offset_);
  }
  if (end > buffered().size()) {
    return Truncated(fault);
  }
  block_end_ = end;
  record_size_bytes_ = end;
  return absl::OkStatus();
}

absl::StatusOr<std::optional<SourceDocument>> WarcReader::Next() {
  can_continue_ = false;
  if (next_part_offset_.has_value()) {
    StartPart();
  }
  absl::StatusOr<std::optional<SourceDocument>> document = NextRecord();
  return document.ok() ? std::move(document) : PassDamage(document.status());
}

absl::StatusOr<std::optional<SourceDocument>> WarcReader::NextRecord() {
  QUIRE_RETURN_IF_ERROR(SkipRecord(UINT64_MAX).status());
  record_offset_ += *record_size_bytes_;
  header_size_ = 0;
  block_end_ = 0;
  record_size_bytes_ = 0;
  record_position_ = 0;
  Fill(1);
  if (buffered().empty()) {
    QUIRE_RETURN_IF_ERROR(stream_status_);
    return std::nullopt;
  }
  ++record_count_;
  QUIRE_ASSIGN_OR_RETURN(WarcHeader header, ReadHeader());
  if (!record_size_bytes_.has_value()) {
    QUIRE_RETURN_IF_ERROR(ExamineRecord());
  }
  if (!header.oddities.empty()) {
    NoteIrregular(absl::StrJoin(header.oddities, "; "));
  }
  SourceDocument document;
  if (!header.target_uri.empty()) {
    document.record = DescribeRecord(header);
  }
  document.id = !header.target_uri.empty() ? std::move(header.target_uri)
                : !header.record_id.empty()
                    ? std::move(header.record_id)
                    : absl::StrCat("warc-record:", record_count_ - 1);
  document.size_bytes = record_size_bytes_;
  document.capture_time_ms = header.date_ms;
  document.record_type = std::move(header.record_type);
  document.media_type = std::move(header.media_type);
  document.deposit = deposit_;
  if (deposit_ != nullptr) {
    document.deposit_path = name_.substr(name_.rfind('/') + 1);
  }
  return document;
}

absl::Status WarcReader::ExamineRecord() {
  const uint64_t end_offset = stream_->EndOffset().value_or(UINT64_MAX);
  if (block_end_ > end_offset - std::min(end_offset, record_offset_)) {
    return EndsAfter(end_offset - std::min(end_offset, record_offset_));
  }
  is_examined_ =
      block_end_ <= (damage_ == WarcDamage::kSkip ? kExaminedDamagedSizeBytesMax
                                                  : kExaminedSizeBytesMax);
  if (!is_examined_) {
    ExamineMember();
    return absl::OkStatus();
  }
  const auto at = static_cast<size_t>(block_end_);
  Fill(at + kEndSizeBytes);
  if (text_at(at).empty() && !stream_status_.ok()) {
    // The bytes of the record that are there are read before the error.
    return absl::OkStatus();
  }
  if (buffered().size() < at || !HasRecordEnd(at)) {
    QUIRE_RETURN_IF_ERROR(ExamineLength());
  }
  return record_size_bytes_.has_value() ? absl::OkStatus() : FindRecordEnd(at);
}

void WarcReader::EndWithMember(uint64_t size_bytes) {
  NoteIrregular(
      absl::StrCat("its length must be that of its member, which ends ",
                   FormatCounted(block_end_ - size_bytes, "byte", "bytes"),
                   " before; it is kept as it is"));
  block_end_ = size_bytes;
  record_size_bytes_ = size_bytes;
}

void WarcReader::ExamineMember() {
  if (stream_->EndOffset().has_value()) {
    return;
  }
  Fill(kExaminedSizeBytesMax);
  const std::optional<uint64_t> part_end = stream_->PartEnd(record_offset_);
  if (part_end.has_value() && *part_end - record_offset_ <= buffered().size() &&
      BeginsRecord(static_cast<size_t>(*part_end - record_offset_))) {
    EndWithMember(*part_end - record_offset_);
  }
}

absl::Status WarcReader::ExamineLength() {
  const std::optional<uint64_t> part_end = stream_->PartEnd(record_offset_);
  const uint64_t part_size =
      part_end.has_value() ? *part_end - record_offset_ : UINT64_MAX;
  const RecordSearch search =
      SearchAt(header_size_, /*at_line_start=*/true,
               static_cast<size_t>(block_end_) - header_size_);
  const uint64_t next = search.outcome == RecordSearch::Outcome::kFound
                            ? header_size_ + search.offset
                            : UINT64_MAX;
  if (part_size < block_end_ && next >= part_size) {
    EndWithMember(part_size);
    return absl::OkStatus();
  }
  if (next < block_end_) {
    return Malformed(absl::StrCat(
        "its length must end before the next record, which begins ",
        FormatCounted(block_end_ - next, "byte", "bytes"),
        " before, or it is truncated"));
  }
  return buffered().size() < block_end_ ? EndsAfter(buffered().size())
                                        : absl::OkStatus();
}

RecordSearch WarcReader::SearchAt(size_t at, bool at_line_start,
                                  size_t size_max) {
  RecordSearch search = {.outcome = RecordSearch::Outcome::kNone, .offset = 0};
  size_t offset = 0;
  while (true) {
    search = FindRecordStart(format_, text_at(at + offset), at_line_start,
                             stream_ended_);
    offset += search.offset;
    if (search.outcome == RecordSearch::Outcome::kFound || stream_ended_ ||
        offset > size_max) {
      return {search.outcome, offset};
    }
    at_line_start = search.outcome == RecordSearch::Outcome::kNeedsMore;
    Fill(buffered().size() + kFoundHeaderSizeBytesMax);
  }
}

bool WarcReader::BeginsRecord(size_t at) {
  Fill(at + kCheckedLineSizeBytes);
  const absl::string_view text = text_at(at).substr(0, kCheckedLineSizeBytes);
  if (text.empty()) {
    return stream_status_.ok();
  }
  if (format_ == RecordFormat::kArc) {
    return IsArcStart(text);
  }
  absl::string_view rest = text;
  const absl::string_view line = TakeHeaderLine(rest);
  return IsWarcVersion(line) ||
         (line.size() == text.size() && stream_ended_ && IsWarcStart(line));
}

bool WarcReader::HasRecordEnd(size_t at) {
  return BeginsRecord(at + GapSize(at)) ||
         (format_ == RecordFormat::kWarc &&
          absl::StartsWith(text_at(at), record_end_));
}

size_t WarcReader::GapSize(size_t at) {
  for (size_t size = kEndSizeBytes;; size *= 2) {
    Fill(at + size);
    const absl::string_view text = text_at(at).substr(0, size);
    const size_t end = text.find_first_not_of("\r\n");
    if (end != absl::string_view::npos) {
      return end;
    }
    if (text.size() < size || size >= kStraySizeBytesMax) {
      return text.size();
    }
  }
}

absl::Status WarcReader::EndRecord(size_t at, size_t tail_size) {
  record_size_bytes_ = block_end_ + tail_size;
  // One more byte: a compressed record is verified once the checksum after it
  // has been read. Later read errors do not concern the record.
  Fill(at + tail_size + 1);
  return buffered().size() > at + tail_size || stream_->IsVerified()
             ? absl::OkStatus()
             : stream_status_;
}

absl::Status WarcReader::FindRecordEnd(size_t at) {
  const bool is_warc = format_ == RecordFormat::kWarc;
  const size_t gap = GapSize(at);
  const absl::string_view found = text_at(at).substr(0, gap);
  if (is_warc && found == record_end_) {
    return EndRecord(at, gap);
  }
  if (BeginsRecord(at + gap)) {
    if (is_warc) {
      NoteIrregular(absl::StrCat(
          "its block must be followed by ", QuotedText(record_end_), ", got ",
          QuotedText(text_at(at).substr(0, gap), kShownSizeBytes),
          text_at(at + gap).empty() ? " and the end of the file, which may be "
                                      "truncated"
                                    : "",
          "; it is kept as it is"));
    }
    return EndRecord(at, gap);
  }
  if (is_warc && absl::StartsWith(text_at(at), record_end_)) {
    // The record ends here.
    return EndRecord(at, record_end_.size());
  }
  if (text_at(at + gap).empty()) {
    return is_warc ? stream_status_ : EndRecord(at, gap);
  }
  return TakeStrayText(at, gap);
}

absl::Status WarcReader::TakeStrayText(size_t at, size_t gap) {
  const RecordSearch search =
      SearchAt(at, /*at_line_start=*/false, kStraySizeBytesMax);
  const absl::string_view rest = text_at(at);
  const std::optional<uint64_t> part_end = stream_->PartEnd(record_offset_);
  const uint64_t block_end_offset = record_offset_ + block_end_;
  // Without an examination or the end of a part, the length may be too large.
  const bool has_part_end =
      part_end.has_value() && *part_end > block_end_offset;
  uint64_t size = UINT64_MAX;
  if ((is_examined_ || has_part_end) &&
      search.outcome == RecordSearch::Outcome::kFound) {
    size = search.offset;
  } else if (is_examined_ && stream_ended_ && stream_status_.ok() &&
             IsOneLine(rest) && gap == 0) {
    size = rest.size();
  }
  if (has_part_end) {
    size = std::min(size, *part_end - block_end_offset);
  }
  if (size <= std::min(rest.size(), kStraySizeBytesMax)) {
    NoteIrregular(absl::StrCat(
        "its length must be that of its block, and ",
        FormatCounted(size, "byte follows", "bytes follow"), ", ",
        QuotedText(rest.substr(0, static_cast<size_t>(size)), kShownSizeBytes),
        "; it is kept with what follows"));
    return EndRecord(at, static_cast<size_t>(size));
  }
  if (format_ == RecordFormat::kArc && gap > 0) {
    return EndRecord(at, gap);
  }
  return Malformed(absl::StrCat(
      "found ", QuotedText(rest.substr(0, record_end_.size()), kShownSizeBytes),
      " after its block, where ",
      format_ == RecordFormat::kWarc ? "two line ends" : "a line end",
      " must be: its Content-Length is wrong, or the file damaged"));
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
  if (record_position_ >= block_end_) {
    if (!record_size_bytes_.has_value()) {
      QUIRE_RETURN_IF_ERROR(FindRecordEnd(0));
    }
    const auto size = static_cast<size_t>(
        std::min<uint64_t>(out.size(), *record_size_bytes_ - record_position_));
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
    QUIRE_ASSIGN_OR_RETURN(size, ReadStream(out.first(want)));
    if (size == 0) {
      return EndsAfter(record_position_);
    }
  }
  record_position_ += size;
  return size;
}

absl::StatusOr<uint64_t> WarcReader::SkipRecord(uint64_t size_bytes) {
  const uint64_t start = record_position_;
  const uint64_t in_block =
      std::min(size_bytes, block_end_ - std::min(block_end_, start));
  const auto in_buffer =
      static_cast<size_t>(std::min<uint64_t>(in_block, buffered().size()));
  Consume(in_buffer);
  record_position_ += in_buffer;
  const uint64_t left = in_block - in_buffer;
  if (left > 0) {
    QUIRE_RETURN_IF_ERROR(stream_status_);
    const absl::StatusOr<uint64_t> passed = stream_->Skip(left);
    if (!passed.ok()) {
      stream_status_ = passed.status();
      stream_ended_ = true;
      return stream_status_;
    }
    record_position_ += *passed;
    if (*passed < left) {
      return EndsAfter(record_position_);
    }
  }
  if (record_position_ >= block_end_) {
    if (!record_size_bytes_.has_value()) {
      QUIRE_RETURN_IF_ERROR(FindRecordEnd(0));
    }
    const auto tail =
        static_cast<size_t>(std::min(size_bytes - (record_position_ - start),
                                     *record_size_bytes_ - record_position_));
    Consume(tail);
    record_position_ += tail;
  }
  return record_position_ - start;
}

}  // namespace quire
