// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/ingest/sources/lines/line_source.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
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
#include "server/ingest/sources/lines/utf16_stream.h"
#include "server/ingest/sources/packed_source.h"

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

// True if `text` begins like an array with a JSON value, not like the header of
// a CSV.
bool IsJsonArrayStart(absl::string_view text) {
  constexpr absl::string_view kSpace = " \t\r\n";
  if (!absl::ConsumePrefix(&text, "[")) {
    return false;
  }
  const size_t first = text.find_first_not_of(kSpace);
  return first == text.npos || absl::StrContains("{[]\"", text[first]);
}

// Names a delimiter that the only column seems to have; empty if there is none.
std::string DelimiterHint(const std::vector<std::string>& columns) {
  const size_t found = columns.size() == 1 ? columns[0].find_first_of(";\t|")
                                           : std::string::npos;
  if (found == std::string::npos) {
    return "";
  }
  return absl::StrCat(
      "; another delimiter can be given, as in --delimiter ",
      columns[0][found] == '\t'
          ? "tab"
          : absl::StrCat("'", columns[0].substr(found, 1), "'"));
}

SourceValue::Form FormOf(const RecordField& field) {
  switch (field.form) {
    case RecordField::Form::kText:
      return field.value.empty() ? SourceValue::Form::kNull
                                 : SourceValue::Form::kText;
    case RecordField::Form::kString:
      return SourceValue::Form::kString;
    case RecordField::Form::kNumber:
      return SourceValue::Form::kNumber;
    case RecordField::Form::kBoolean:
      return SourceValue::Form::kBoolean;
    case RecordField::Form::kNested:
      return SourceValue::Form::kNested;
  }
  return SourceValue::Form::kNull;
}

// White space, and the separator of records of RFC 7464.
constexpr absl::string_view kBlanks = " \t\r\n\x1E";

bool IsBlank(absl::string_view text) {
  return text.find_first_not_of(kBlanks) == text.npos;
}

absl::string_view WithoutLineEnds(absl::string_view text) {
  return text.substr(0, text.find_last_not_of("\r\n") + 1);
}

// Returns the size of the first record of RFC 7464, which may have line ends;
// nullopt if the next one does not follow.
std::optional<size_t> SequenceRecordSize(absl::string_view text) {
  const size_t begin = text.find_first_not_of(kBlanks);
  const size_t end = begin == text.npos ? text.npos : text.find('\x1E', begin);
  return end == text.npos ? std::nullopt : std::optional(end);
}

uint64_t LineEndCount(absl::string_view text, char line_end) {
  return static_cast<uint64_t>(std::count(text.begin(), text.end(), line_end));
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

  std::vector<SourceField> fields() const override {
    std::vector<SourceField> fields;
    for (const LineSplit::Field& field :
         options_.split.value_or(LineSplit{}).fields) {
      fields.push_back({.name = field.name});
    }
    return fields;
  }

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
  const auto add = [this](Use use, const std::string& field) {
    if (!field.empty()) {
      roles_.push_back({use, FieldIndex(field, use == Use::kText)});
    }
  };
  add(Use::kId, split_.id_field);
  add(Use::kTime, split_.time_field);
  // Last: it takes the value.
  add(Use::kText, split_.text_field);
  for (const LineSplit::Field& field : split_.fields) {
    value_fields_.push_back(FieldIndex(field.path, /*takes_any=*/true));
  }
  usable_counts_.resize(roles_.size());
}

size_t LineReader::FieldIndex(const std::string& name, bool takes_any) {
  size_t index = 0;
  while (index < fields_.size() && fields_[index].name != name) {
    ++index;
  }
  if (index == fields_.size()) {
    fields_.push_back({.name = name});
  }
  fields_[index].takes_any |= takes_any;
  return index;
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
          QUIRE_RETURN_IF_ERROR(CheckFieldsFound());
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
  dialect_ = {.delimiter = split_.delimiter.value_or(',')};
  Fill();
  if (MayBeCompressed(buffered())) {
    QUIRE_RETURN_IF_ERROR(Decompress(*file));
  }
  QUIRE_RETURN_IF_ERROR(PrepareText());
  QUIRE_RETURN_IF_ERROR(DetectFormat());
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

absl::Status LineReader::FileError(absl::string_view problem) const {
  return absl::InvalidArgumentError(
      absl::StrCat(name_, ": ", reader_->Place(), ": ", problem));
}

void LineReader::NoteOfFile(EntryNote note, absl::string_view text) {
  if (listener()) {
    Note(note, absl::StrCat(name_, ": ", reader_->Place(), ": ", text));
  }
}

absl::Status LineReader::PrepareText() {
  const std::optional<WideEncoding> encoding = WideEncodingOf(buffered());
  const bool is_parquet = absl::StartsWith(buffered(), kParquetMagic);
  if (fields_.empty()) {
    if (encoding.has_value()) {
      NoteOfFile(
          EntryNote::kForeignFormat,
          "is UTF-16 or UTF-32 by its byte order mark, and its lines are "
          "cut at the bytes of line feeds, inside of characters; convert "
          "it to UTF-8 before");
    } else if (is_parquet) {
      NoteOfFile(
          EntryNote::kForeignFormat,
          absl::StrCat("is Parquet, and has no lines; ", kParquetAdvice));
    } else if (absl::StrContains(buffered(), '\0')) {
      NoteOfFile(
          EntryNote::kForeignFormat,
          "has zero bytes, so it may not be text (compressed by a program "
          "that is not known here?); its lines are cut at the bytes of line "
          "feeds");
    }
    return absl::OkStatus();
  }
  if (is_parquet) {
    return FileError(
        absl::StrCat("is Parquet, and has no lines; ", kParquetAdvice));
  }
  if (encoding == WideEncoding::kUtf32) {
    return FileError(
        "is UTF-32 by its byte order mark; convert it to UTF-8, as by iconv");
  }
  if (encoding.has_value()) {
    QUIRE_RETURN_IF_ERROR(stream_status_);
    NoteOfFile(EntryNote::kTolerated,
               "is UTF-16 by its byte order mark, and stored as UTF-8");
    stream_ = std::make_unique<Utf16Stream>(
        std::make_unique<ResumedStream>(
            std::vector<uint8_t>(
                buffer_.begin(),
                buffer_.begin() + static_cast<ptrdiff_t>(end_)),
            std::move(stream_)),
        encoding == WideEncoding::kUtf16Big,
        absl::StrCat(name_, ": ", reader_->Place()));
    stream_ended_ = false;
    end_ = 0;
    Fill();
  }
  const absl::string_view start = buffered().substr(0, kLineBufferSizeBytes);
  if (absl::StrContains(start, '\r') && !absl::StrContains(start, '\n')) {
    dialect_.line_end = '\r';
  }
  return absl::OkStatus();
}

absl::Status LineReader::DetectFormat() {
  const absl::string_view start = WithoutByteOrderMark(buffered());
  const size_t first = start.find_first_not_of(kBlanks);
  format_ = fields_.empty()                              ? Format::kLines
            : first == start.npos || start[first] == '{' ? Format::kJsonLines
                                                         : Format::kCsv;
  spans_lines_ = format_ == Format::kCsv ||
                 (format_ == Format::kJsonLines &&
                  absl::StrContains(start.substr(0, first), '\x1E'));
  column_count_ = 0;
  if (format_ == Format::kCsv && IsJsonArrayStart(start.substr(first))) {
    return FileError(
        "is a JSON array; --split takes JSON Lines, an object on each line, as "
        "jq -c '.[]' writes them");
  }
  return absl::OkStatus();
}

absl::Status LineReader::CheckFieldsFound() {
  const uint64_t record_count = std::exchange(record_count_, 0);
  for (size_t i = 0; i < roles_.size() && record_count > 0; ++i) {
    if (usable_counts_[i] == 0) {
      return absl::InvalidArgumentError(absl::StrCat(
          name_, ": none of its ",
          FormatCounted(record_count, "record has", "records has"),
          " a usable field ", QuotedText(fields_[roles_[i].field].name), "; ",
          first_problem_));
    }
  }
  return absl::OkStatus();
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
      const std::optional<size_t> size =
          format_ == Format::kCsv
              ? CsvRecordSize(text.substr(mark_size), dialect_)
              : SequenceRecordSize(text.substr(mark_size));
      if (size.has_value()) {
        record_rest_ = mark_size + *size;
        next_line_ +=
            LineEndCount(text.substr(0, record_rest_), dialect_.line_end);
        return true;
      }
    } else {
      const size_t line_end = text.find(dialect_.line_end);
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
    if (spans_lines_ && absl::StrContains(text, dialect_.line_end)) {
      if (!is_open_ &&
          (format_ != Format::kCsv ||
           CsvRecordSize(absl::StrCat(text.substr(mark_size),
                                      std::string(1, dialect_.line_end)),
                         dialect_) == text.size() - mark_size + 1)) {
        next_line_ += LineEndCount(text, dialect_.line_end) + 1;
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
  const absl::string_view bytes = buffered().substr(0, record_rest_);
  const absl::string_view record =
      line_ == 1 ? WithoutByteOrderMark(bytes) : bytes;
  SourceDocument document;
  document.id = absl::StrCat(file_id_, ":", line_);
  if (!is_open_) {
    document.size_bytes = bytes.size();
  }
  if (fields_.empty()) {
    return document;
  }
  const bool is_header = format_ == Format::kCsv && column_count_ == 0;
  const bool repeats_header = RepeatsHeader(record);
  const bool is_value =
      (is_open_ || !IsBlank(record)) && !is_header && !repeats_header;
  if (is_header && !IsBlank(record) && !TakeDelimiter(record)) {
    QUIRE_RETURN_IF_ERROR(ReadCsvHeader(record));
  } else if (repeats_header && listener()) {
    Note(EntryNote::kTolerated,
         absl::StrCat(name_, ": ", Place(), ": repeats the header line"));
  }
  if (is_value) {
    ApplyFields(document);
  } else if (!split_.text_field.empty()) {
    return std::nullopt;
  }
  return document;
}

bool LineReader::TakeDelimiter(absl::string_view record) {
  const std::optional<char> delimiter =
      line_ == 1 ? CsvDelimiterOf(record) : std::nullopt;
  if (delimiter.has_value() && !split_.delimiter.has_value()) {
    dialect_.delimiter = *delimiter;
  }
  return delimiter.has_value();
}

bool LineReader::RepeatsHeader(absl::string_view record) const {
  // A single column may have a value like its name.
  return format_ == Format::kCsv && column_count_ > 1 && !is_open_ &&
         WithoutLineEnds(WithoutByteOrderMark(record)) == header_;
}

absl::Status LineReader::ReadCsvHeader(absl::string_view record) {
  const auto in_file = [this](absl::string_view problem) {
    return absl::InvalidArgumentError(
        absl::StrCat(name_, ": ", Place(), ": ", problem));
  };
  const absl::StatusOr<std::vector<std::string>> columns =
      SplitCsvRecord(record, dialect_);
  if (is_open_ || !columns.ok()) {
    return in_file(absl::StrCat(
        "the header line ",
        is_open_ ? absl::StrCat("is longer than ",
                                FormatByteSize(kRecordSizeBytesMax))
                 : std::string(columns.status().message())));
  }
  column_count_ = columns->size();
  header_ = std::string(WithoutLineEnds(record));
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
          columns->size() > named.size() ? ", ..." : "",
          DelimiterHint(*columns)));
    }
    field.column = static_cast<size_t>(column - columns->begin());
    const auto count = std::count(column, columns->end(), field.name);
    if (count > 1) {
      NoteOfFile(EntryNote::kTolerated, absl::StrCat("has ", count, " columns ",
                                                     QuotedText(field.name),
                                                     ", and the first is "
                                                     "read"));
    }
  }
  return absl::OkStatus();
}

void LineReader::ApplyFields(SourceDocument& document) {
  ++record_count_;
  if (is_open_) {
    NoteBadRecord(
        absl::StrCat("is longer than ", FormatByteSize(kRecordSizeBytesMax)));
    return;
  }
  absl::string_view record = buffered().substr(0, record_rest_);
  if (line_ == 1) {
    record = WithoutByteOrderMark(record);
  }
  tolerated_.clear();
  absl::Status status;
  if (format_ == Format::kCsv) {
    status =
        ReadCsvFields(record, column_count_, absl::MakeSpan(fields_), dialect_);
  } else {
    record.remove_prefix(
        std::min(record.find_first_not_of(kBlanks), record.size()));
    status = ReadJsonFields(record, absl::MakeSpan(fields_), &tolerated_);
  }
  if (!status.ok()) {
    NoteBadRecord(status.message());
    return;
  }
  if (!tolerated_.empty() && listener()) {
    Note(EntryNote::kTolerated,
         absl::StrCat(name_, ": ", Place(), ": ", tolerated_,
                      ", and the fields could be read"));
  }
  ApplyValues(document);
  for (size_t i = 0; i < roles_.size(); ++i) {
    const std::string problem = ApplyRole(i, document);
    if (problem.empty()) {
      ++usable_counts_[i];
    } else {
      NoteBadRecord(problem);
    }
  }
}

void LineReader::ApplyValues(SourceDocument& document) {
  document.fields.resize(value_fields_.size());
  for (size_t i = 0; i < value_fields_.size(); ++i) {
    const RecordField& field = fields_[value_fields_[i]];
    if (field.state == RecordField::State::kMalformed) {
      NoteBadRecord(
          absl::StrCat(field.value, ", in field ", QuotedText(field.name)));
    }
    if (field.state == RecordField::State::kFound) {
      document.fields[i] = {.form = FormOf(field), .text = field.value};
    }
  }
}

std::string LineReader::ApplyId(const RecordField& field,
                                SourceDocument& document) {
  std::string id =
      id_rules_ == nullptr ? field.value : id_rules_->Rename(field.value);
  if (id.size() > kDocumentIdSizeBytesMax) {
    return absl::StrCat("has ", FormatCount(field.value.size()),
                        " bytes in field ", QuotedText(field.name),
                        ", and an id must be at most ",
                        FormatCount(kDocumentIdSizeBytesMax), " bytes");
  }
  document.id = std::move(id);
  document.has_given_id = true;
  return "";
}

std::string LineReader::ApplyRole(size_t role, SourceDocument& document) {
  const Use use = roles_[role].use;
  RecordField& field = fields_[roles_[role].field];
  const auto of_field = [&field](absl::string_view problem) {
    return absl::StrCat(problem, " field ", QuotedText(field.name));
  };
  if (field.state == RecordField::State::kMissing) {
    return of_field("has no");
  }
  if (field.state == RecordField::State::kMalformed) {
    return absl::StrCat(field.value, ", in field ", QuotedText(field.name));
  }
  const bool is_null = field.state == RecordField::State::kWrongType;
  if (use == Use::kText) {
    if (is_null) {
      return of_field("has null in");
    }
    has_text_ = true;
    text_ = std::move(field.value);
    text_begin_ = 0;
    document.size_bytes = text_.size();
    return "";
  }
  if (is_null || field.form == RecordField::Form::kBoolean ||
      field.form == RecordField::Form::kNested) {
    return of_field(use == Use::kTime ? "has no string in"
                                      : "has neither a string nor a number in");
  }
  if (field.value.empty()) {
    return of_field("has an empty");
  }
  if (use == Use::kId) {
    return ApplyId(field, document);
  }
  const std::optional<FieldTime> time = field.form == RecordField::Form::kNumber
                                            ? std::nullopt
                                            : ParseFieldTime(field.value);
  if (!time.has_value()) {
    return absl::StrCat(of_field("has no time in"), ": ",
                        QuotedText(field.value, 40),
                        ", expected one such as 2024-01-31T12:30:45Z");
  }
  // Rounded down.
  document.capture_time_ms = time->us / 1000 - (time->us % 1000 < 0 ? 1 : 0);
  return "";
}

void LineReader::NoteBadRecord(absl::string_view problem) {
  if (first_problem_.empty()) {
    first_problem_ = absl::StrCat(Place(), ": ", problem);
  }
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
    const size_t line_end = buffered().find(dialect_.line_end);
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
