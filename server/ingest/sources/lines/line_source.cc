// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/ingest/sources/lines/line_source.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"

#include "codecs/base/byte_size.h"
#include "codecs/base/printable_text.h"
#include "codecs/base/status_macros.h"
#include "server/archive/format/archive_format.h"
#include "server/ingest/sources/compressed_text.h"
#include "server/ingest/sources/container_detection.h"
#include "server/ingest/sources/input_limits.h"
#include "server/ingest/sources/lines/csv_fields.h"
#include "server/ingest/sources/lines/json_fields.h"

namespace quire {
namespace {

constexpr size_t kLineBufferSizeBytes = 256 << 10;
// Detection needs the dictionary of a zstd file.
constexpr size_t kCompressedStartSizeBytes = size_t{17} << 20;
constexpr absl::string_view kByteOrderMark = "\xEF\xBB\xBF";

// Columns that a message names.
constexpr size_t kNamedColumnCountMax = 10;

absl::string_view WithoutByteOrderMark(absl::string_view text) {
  return absl::StartsWith(text, kByteOrderMark)
             ? text.substr(kByteOrderMark.size())
             : text;
}

bool IsBlank(absl::string_view text) {
  return text.find_first_not_of(" \t\r\n") == text.npos;
}

uint64_t LineFeedCount(absl::string_view text) {
  return static_cast<uint64_t>(std::count(text.begin(), text.end(), '\n'));
}

// `start`, and then `rest`.
class ResumedStream final : public ByteStream {
 public:
  ResumedStream(std::vector<uint8_t> start, std::unique_ptr<ByteStream> rest)
      : start_(std::move(start)), rest_(std::move(rest)) {}

  absl::StatusOr<size_t> Read(MutableByteView out) override {
    const size_t size = std::min(out.size(), start_.size() - position_);
    if (size == 0) {
      return rest_->Read(out);
    }
    std::memcpy(out.data(), start_.data() + position_, size);
    position_ += size;
    return size;
  }

 private:
  const std::vector<uint8_t> start_;
  size_t position_ = 0;
  const std::unique_ptr<ByteStream> rest_;
};

class LineSource final : public Source {
 public:
  LineSource(std::unique_ptr<Source> source, const SourceOptions& options)
      : source_(std::move(source)), options_(options) {}

  const std::string& name() const override { return source_->name(); }

  const char* kind() const override { return source_->kind(); }

  absl::StatusOr<std::optional<uint64_t>> StoredSizeBytes() const override {
    return source_->StoredSizeBytes();
  }

  absl::StatusOr<std::unique_ptr<SourceReader>> Open() const override {
    QUIRE_ASSIGN_OR_RETURN(std::unique_ptr<SourceReader> reader,
                           source_->Open());
    return std::make_unique<LineReader>(
        std::move(reader), name(), options_.split.value_or(LineSplit{}),
        options_.id_rules, options_.input_size_bytes_max,
        options_.window_size_bytes_max);
  }

 private:
  const std::unique_ptr<Source> source_;
  const SourceOptions options_;
};

}  // namespace

class LineReader::FileText final : public ByteStream {
 public:
  explicit FileText(SourceReader& reader) : reader_(reader) {}

  absl::StatusOr<size_t> Read(MutableByteView out) override {
    absl::StatusOr<size_t> size = reader_.Read(out);
    has_failed_ = !size.ok();
    return size;
  }

  bool has_failed() const { return has_failed_; }

 private:
  SourceReader& reader_;
  bool has_failed_ = false;
};

LineReader::LineReader(std::unique_ptr<SourceReader> reader, std::string name,
                       LineSplit split, std::shared_ptr<const IdRules> id_rules,
                       std::optional<uint64_t> input_size_bytes_max,
                       uint64_t window_size_bytes_max)
    : reader_(std::move(reader)),
      name_(std::move(name)),
      split_(std::move(split)),
      id_rules_(std::move(id_rules)),
      input_size_bytes_max_(input_size_bytes_max),
      window_size_bytes_max_(window_size_bytes_max),
      buffer_(kLineBufferSizeBytes) {
  for (const std::string& field : {split_.id_field, split_.text_field}) {
    if (!field.empty()) {
      fields_.push_back({.name = field});
    }
  }
}

std::string LineReader::Place() const {
  return absl::StrCat(reader_->Place(), ", line ", line_);
}

bool LineReader::CanContinue() const {
  return can_continue_ || reader_->CanContinue();
}

std::shared_ptr<const TextCheck> LineReader::AwaitedCheck() const {
  return is_compressed_ && stream_ != nullptr
             ? stream_->AwaitedCheck(read_bytes_ - (end_ - begin_) +
                                     record_rest_)
             : reader_->AwaitedCheck();
}

SkippedEntries LineReader::skipped() const {
  return reader_->skipped();
}

void LineReader::Listen(NoteListener listener) {
  reader_->Listen(listener);
  SourceReader::Listen(std::move(listener));
}

void LineReader::Fill() {
  if (begin_ > 0) {
    std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
  }
  while (end_ < buffer_.size() && !stream_ended_) {
    const absl::StatusOr<size_t> got =
        stream_->Read(MutableByteView(buffer_).subspan(end_));
    stream_status_ = got.status();
    stream_ended_ = !got.ok() || *got == 0;
    end_ += got.value_or(0);
    read_bytes_ += got.value_or(0);
  }
}

absl::StatusOr<std::optional<SourceDocument>> LineReader::Next() {
  can_continue_ = false;
  const auto next = [this]() -> absl::StatusOr<std::optional<SourceDocument>> {
    while (true) {
      if (stream_ == nullptr) {
        QUIRE_ASSIGN_OR_RETURN(const bool is_open, OpenFile());
        if (!is_open) {
          return std::nullopt;
        }
      }
      QUIRE_RETURN_IF_ERROR(PassRecord());
      QUIRE_ASSIGN_OR_RETURN(const bool has_record, FindRecord());
      if (!has_record) {
        stream_.reset();
        continue;
      }
      QUIRE_ASSIGN_OR_RETURN(std::optional<SourceDocument> document,
                             DescribeRecord());
      if (document.has_value()) {
        return document;
      }
    }
  };
  absl::StatusOr<std::optional<SourceDocument>> document = next();
  if (!document.ok()) {
    LeaveFile();
  }
  return document;
}

absl::Status LineReader::RestError() const {
  return stream_status_.ok()
             ? absl::OkStatus()
             : absl::Status(stream_status_.code(),
                            absl::StrCat(stream_status_.message(),
                                         "; left out: the rest of the file, ",
                                         "from line ", line_, " on"));
}

void LineReader::LeaveFile() {
  if (stream_ != nullptr) {
    can_continue_ = !file_text_->has_failed();
    stream_.reset();
  }
}

absl::StatusOr<bool> LineReader::OpenFile() {
  QUIRE_ASSIGN_OR_RETURN(std::optional<SourceDocument> file, reader_->Next());
  if (!file.has_value()) {
    return false;
  }
  file_id_ = file->id;
  auto text = std::make_unique<FileText>(*reader_);
  file_text_ = text.get();
  stream_ = std::move(text);
  stream_ended_ = false;
  stream_status_ = absl::OkStatus();
  read_bytes_ = 0;
  is_compressed_ = false;
  begin_ = 0;
  end_ = 0;
  line_ = 0;
  next_line_ = 1;
  record_rest_ = 0;
  is_open_ = false;
  has_text_ = false;
  Fill();
  if (MayBeCompressed(buffered())) {
    QUIRE_RETURN_IF_ERROR(Decompress(*file));
  }
  DetectFormat();
  return true;
}

absl::Status LineReader::Decompress(const SourceDocument& file) {
  buffer_.resize(std::max(buffer_.size(), kCompressedStartSizeBytes));
  Fill();
  QUIRE_RETURN_IF_ERROR(stream_status_);
  // Messages name the file.
  const std::string name = absl::StrCat(name_, ": ", reader_->Place());
  const auto start = std::make_shared<const std::vector<uint8_t>>(
      buffer_.begin(), buffer_.begin() + static_cast<ptrdiff_t>(end_));
  // The text after them, once the compression is known.
  const auto rest = std::make_shared<std::unique_ptr<ByteStream>>();
  const auto open = [start,
                     rest]() -> absl::StatusOr<std::unique_ptr<ByteStream>> {
    if (*rest == nullptr) {
      return std::make_unique<MemoryStream>(*start);
    }
    return std::make_unique<ResumedStream>(*start, std::move(*rest));
  };
  QUIRE_ASSIGN_OR_RETURN(
      const CompressedText text,
      CompressedText::Detect(
          open, name,
          InputSizeBytesMax(input_size_bytes_max_, file.size_bytes.value_or(0)),
          window_size_bytes_max_));
  if (!text.is_compressed()) {
    return absl::OkStatus();
  }
  *rest = std::move(stream_);
  QUIRE_ASSIGN_OR_RETURN(stream_, text.Open());
  stream_ended_ = false;
  read_bytes_ = 0;
  is_compressed_ = true;
  end_ = 0;
  Fill();
  return absl::OkStatus();
}

void LineReader::DetectFormat() {
  const absl::string_view start = WithoutByteOrderMark(buffered());
  const size_t first = start.find_first_not_of(" \t\r\n");
  format_ = fields_.empty()                              ? Format::kLines
            : first == start.npos || start[first] == '{' ? Format::kJsonLines
                                                         : Format::kCsv;
  spans_lines_ = format_ == Format::kCsv;
  column_count_ = 0;
}

absl::Status LineReader::PassRecord() {
  begin_ += std::exchange(record_rest_, 0);
  has_text_ = false;
  std::vector<uint8_t> sink;
  while (is_open_) {
    sink.resize(kLineBufferSizeBytes);
    QUIRE_RETURN_IF_ERROR(Read(sink).status());
  }
  begin_ += std::exchange(record_rest_, 0);
  return absl::OkStatus();
}

absl::StatusOr<bool> LineReader::FindRecord() {
  if (begin_ == end_) {
    Fill();
  }
  line_ = next_line_;
  const size_t size_max =
      format_ == Format::kLines ? kLineBufferSizeBytes : kRecordSizeBytesMax;
  while (true) {
    // The buffer may hold more, after a compressed file.
    const absl::string_view text = buffered().substr(0, size_max);
    const size_t mark_size =
        line_ == 1 ? text.size() - WithoutByteOrderMark(text).size() : 0;
    if (spans_lines_) {
      const std::optional<size_t> size = CsvRecordSize(text.substr(mark_size));
      if (size.has_value()) {
        record_rest_ = mark_size + *size;
        next_line_ += LineFeedCount(text.substr(0, record_rest_));
        return true;
      }
    } else {
      const size_t line_end = text.find('\n');
      if (line_end != text.npos) {
        record_rest_ = line_end + 1;
        ++next_line_;
        return true;
      }
    }
    if (!stream_ended_ && text.size() < size_max) {
      if (begin_ == 0 && end_ == buffer_.size()) {
        buffer_.resize(std::min(2 * buffer_.size(), size_max));
      }
      Fill();
      continue;
    }
    // A read error leaves an incomplete record.
    QUIRE_RETURN_IF_ERROR(RestError());
    if (text.empty()) {
      return false;
    }
    record_rest_ = text.size();
    is_open_ = !stream_ended_ || text.size() < buffered().size();
    if (spans_lines_ && absl::StrContains(text, '\n')) {
      if (!is_open_ &&
          CsvRecordSize(absl::StrCat(text.substr(mark_size), "\n")) ==
              text.size() - mark_size + 1) {
        next_line_ += LineFeedCount(text) + 1;
        return true;
      }
      spans_lines_ = false;
      is_open_ = false;
      continue;
    }
    ++next_line_;
    return true;
  }
}

absl::StatusOr<std::optional<SourceDocument>> LineReader::DescribeRecord() {
  const absl::string_view record = buffered().substr(0, record_rest_);
  SourceDocument document;
  document.id = absl::StrCat(file_id_, ":", line_);
  if (!is_open_) {
    document.size_bytes = record.size();
  }
  if (fields_.empty()) {
    return document;
  }
  const bool is_header = format_ == Format::kCsv && column_count_ == 0;
  const bool is_value = (is_open_ || !IsBlank(record)) && !is_header;
  if (is_header && !IsBlank(record)) {
    QUIRE_RETURN_IF_ERROR(ReadCsvHeader(record));
  }
  if (is_value) {
    ApplyFields(document);
  } else if (!split_.text_field.empty()) {
    return std::nullopt;
  }
  return document;
}

absl::Status LineReader::ReadCsvHeader(absl::string_view record) {
  const auto in_file = [this](absl::string_view problem) {
    return absl::InvalidArgumentError(
        absl::StrCat(name_, ": ", Place(), ": ", problem));
  };
  const absl::StatusOr<std::vector<std::string>> columns =
      SplitCsvRecord(WithoutByteOrderMark(record));
  if (is_open_ || !columns.ok()) {
    return in_file(absl::StrCat(
        "the header line ",
        is_open_ ? absl::StrCat("is longer than ",
                                FormatByteSize(kRecordSizeBytesMax))
                 : std::string(columns.status().message())));
  }
  column_count_ = columns->size();
  for (RecordField& field : fields_) {
    const auto column = std::find(columns->begin(), columns->end(), field.name);
    if (column == columns->end()) {
      const auto named = absl::MakeConstSpan(*columns).first(
          std::min(columns->size(), kNamedColumnCountMax));
      return in_file(absl::StrCat(
          "is not a JSON object, and as the header line of a CSV it has no "
          "column ",
          QuotedText(field.name), "; its ",
          FormatCounted(columns->size(), "column is ", "columns are "),
          absl::StrJoin(named, ", ",
                        [](std::string* out, const std::string& name) {
                          out->append(QuotedText(name, 40));
                        }),
          columns->size() > named.size() ? ", ..." : ""));
    }
    field.column = static_cast<size_t>(column - columns->begin());
  }
  return absl::OkStatus();
}

void LineReader::ApplyFields(SourceDocument& document) {
  if (is_open_) {
    NoteBadRecord(
        absl::StrCat("is longer than ", FormatByteSize(kRecordSizeBytesMax)));
    return;
  }
  absl::string_view record = buffered().substr(0, record_rest_);
  if (line_ == 1) {
    record = WithoutByteOrderMark(record);
  }
  const absl::Status status =
      format_ == Format::kCsv
          ? ReadCsvFields(record, column_count_, absl::MakeSpan(fields_))
          : ReadJsonFields(record, absl::MakeSpan(fields_));
  if (!status.ok()) {
    NoteBadRecord(status.message());
    return;
  }
  for (RecordField& field : fields_) {
    const bool is_id = &field == fields_.data() && !split_.id_field.empty();
    if (field.state != RecordField::State::kFound) {
      NoteBadRecord(
          absl::StrCat(field.state == RecordField::State::kMissing
                           ? "has no field "
                           : "has neither a string nor a number in field ",
                       QuotedText(field.name)));
    } else if (!is_id) {
      has_text_ = true;
      text_ = std::move(field.value);
      text_begin_ = 0;
      document.size_bytes = text_.size();
    } else if (field.value.empty()) {
      NoteBadRecord(
          absl::StrCat("has an empty field ", QuotedText(field.name)));
    } else {
      std::string id =
          id_rules_ == nullptr ? field.value : id_rules_->Rename(field.value);
      if (id.size() > kDocumentIdSizeBytesMax) {
        NoteBadRecord(absl::StrCat(
            "has ", FormatCount(field.value.size()), " bytes in field ",
            QuotedText(field.name), ", and an id must be at most ",
            FormatCount(kDocumentIdSizeBytesMax), " bytes"));
      } else {
        document.id = std::move(id);
        document.has_given_id = true;
      }
    }
  }
}

void LineReader::NoteBadRecord(absl::string_view problem) {
  if (listener()) {
    Note(EntryNote::kBadRecord,
         absl::StrCat(name_, ": ", Place(), ": ", problem));
  }
}

absl::StatusOr<size_t> LineReader::Read(MutableByteView out) {
  if (has_text_) {
    const size_t size = std::min(out.size(), text_.size() - text_begin_);
    std::memcpy(out.data(), text_.data() + text_begin_, size);
    text_begin_ += size;
    return size;
  }
  if (record_rest_ == 0 && is_open_) {
    Fill();
    if (buffered().empty()) {
      is_open_ = false;
      if (!stream_status_.ok()) {
        LeaveFile();
        return RestError();
      }
      return 0;
    }
    const size_t line_end = buffered().find('\n');
    is_open_ = line_end == buffered().npos;
    record_rest_ = is_open_ ? buffered().size() : line_end + 1;
  }
  const size_t size = std::min(out.size(), record_rest_);
  std::memcpy(out.data(), buffer_.data() + begin_, size);
  begin_ += size;
  record_rest_ -= size;
  return size;
}

absl::StatusOr<uint64_t> LineReader::Skip(uint64_t size_bytes) {
  if (has_text_ || is_open_) {
    return SkipByReading(*this, size_bytes);
  }
  const size_t size =
      static_cast<size_t>(std::min<uint64_t>(size_bytes, record_rest_));
  begin_ += size;
  record_rest_ -= size;
  return size;
}

absl::Status CheckHasLines(const Source& source) {
  const absl::string_view kind = source.kind();
  if (kind != "warc" && kind != "arc" && kind != "wacz" && kind != "archive") {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      source.name(), ": has ", kind == "archive" ? "documents" : "records",
      " instead of lines, as ", kind == "warc" || kind == "wacz" ? "a " : "an ",
      kind, "; build it without --split"));
}

std::unique_ptr<Source> MakeLineSource(std::unique_ptr<Source> source,
                                       const SourceOptions& options) {
  return std::make_unique<LineSource>(std::move(source), options);
}

}  // namespace quire
