// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/ingest/sources/lines/line_source.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

#include "codecs/base/byte_size.h"
#include "codecs/base/status_macros.h"
#include "server/ingest/sources/lines/csv_fields.h"
#include "server/ingest/sources/lines/format_detection.h"

namespace quire {
namespace {

bool IsBlank(absl::string_view text) {
  return text.find_first_not_of(kRecordBlanks) == text.npos;
}

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

LineReader::LineReader(std::unique_ptr<SourceReader> reader, std::string name,
                       LineSplit split, std::shared_ptr<const IdRules> id_rules,
                       std::optional<uint64_t> input_size_bytes_max,
                       uint64_t window_size_bytes_max)
    : reader_(std::move(reader)),
      name_(std::move(name)),
      split_(std::move(split)),
      fields_(split_, std::move(id_rules)),
      text_(*reader_, input_size_bytes_max, window_size_bytes_max),
      records_(text_) {}

std::string LineReader::Place() const {
  return absl::StrCat(reader_->Place(), ", line ", records_.line());
}

std::string LineReader::FileName() const {
  return absl::StrCat(name_, ": ", reader_->Place());
}

std::string LineReader::RecordName() const {
  return absl::StrCat(name_, ": ", Place());
}

bool LineReader::CanContinue() const {
  return can_continue_ || reader_->CanContinue();
}

std::shared_ptr<const TextCheck> LineReader::AwaitedCheck() const {
  return text_.is_open() && text_.is_compressed()
             ? text_.AwaitedCheck(records_.held().size())
             : reader_->AwaitedCheck();
}

SkippedEntries LineReader::skipped() const {
  return reader_->skipped();
}

void LineReader::Listen(NoteListener listener) {
  reader_->Listen(listener);
  SourceReader::Listen(std::move(listener));
}

void LineReader::NoteOfFile(EntryNote note, absl::string_view text) {
  if (listener()) {
    Note(note, absl::StrCat(FileName(), ": ", text));
  }
}

void LineReader::NoteOfRecord(EntryNote note, absl::string_view text) {
  if (note == EntryNote::kBadRecord && first_problem_.empty()) {
    first_problem_ = absl::StrCat(Place(), ": ", text);
  }
  if (listener()) {
    Note(note, absl::StrCat(RecordName(), ": ", text));
  }
}

absl::StatusOr<std::optional<SourceDocument>> LineReader::Next() {
  can_continue_ = false;
  value_.reset();
  const auto next = [this]() -> absl::StatusOr<std::optional<SourceDocument>> {
    while (true) {
      if (!text_.is_open()) {
        QUIRE_ASSIGN_OR_RETURN(const bool is_open, OpenFile());
        if (!is_open) {
          QUIRE_RETURN_IF_ERROR(fields_.CheckFound(name_, first_problem_));
          return std::nullopt;
        }
      }
      QUIRE_ASSIGN_OR_RETURN(const bool has_record, records_.Next());
      if (!has_record) {
        text_.Close();
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

void LineReader::LeaveFile() {
  if (text_.is_open()) {
    can_continue_ = !text_.has_reader_failed();
    text_.Close();
  }
}

absl::StatusOr<bool> LineReader::OpenFile() {
  QUIRE_ASSIGN_OR_RETURN(const std::optional<SourceDocument> file,
                         reader_->Next());
  if (!file.has_value()) {
    return false;
  }
  file_id_ = file->id;
  fields_.StartFile();
  const std::string file_name = FileName();
  QUIRE_RETURN_IF_ERROR(text_.Start(*file, file_name));
  QUIRE_ASSIGN_OR_RETURN(
      const LineFormat format,
      DetectLineFormat(text_, !fields_.is_empty(), split_.delimiter, file_name,
                       [this](EntryNote note, absl::string_view text) {
                         NoteOfFile(note, text);
                       }));
  records_.Start(format);
  return true;
}

absl::StatusOr<std::optional<SourceDocument>> LineReader::DescribeRecord() {
  SourceDocument document;
  document.id = absl::StrCat(file_id_, ":", records_.line());
  if (!records_.is_open()) {
    document.size_bytes = records_.held().size();
  }
  if (fields_.is_empty()) {
    return document;
  }
  const absl::string_view record = records_.record();
  const bool is_csv = records_.format().kind == LineFormat::Kind::kCsv;
  const bool is_header = is_csv && !fields_.has_header();
  const bool repeats_header =
      is_csv && !records_.is_open() && fields_.IsHeader(record);
  const bool is_value =
      (records_.is_open() || !IsBlank(record)) && !is_header && !repeats_header;
  if (is_header && !IsBlank(record) && !TakeDelimiter(record)) {
    QUIRE_RETURN_IF_ERROR(ReadCsvHeader(record));
  } else if (repeats_header) {
    NoteOfRecord(EntryNote::kTolerated, "repeats the header line");
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
      records_.line() == 1 ? CsvDelimiterOf(record) : std::nullopt;
  if (delimiter.has_value() && !split_.delimiter.has_value()) {
    records_.SetDelimiter(*delimiter);
  }
  return delimiter.has_value();
}

absl::Status LineReader::ReadCsvHeader(absl::string_view record) {
  const absl::Status status =
      records_.is_open()
          ? absl::InvalidArgumentError(
                absl::StrCat("the header line is longer than ",
                             FormatByteSize(kRecordSizeBytesMax)))
          : fields_.ReadHeader(record, records_.format().dialect,
                               [this](EntryNote note, absl::string_view text) {
                                 NoteOfFile(note, text);
                               });
  return status.ok()
             ? status
             : absl::Status(status.code(),
                            absl::StrCat(RecordName(), ": ", status.message()));
}

void LineReader::ApplyFields(SourceDocument& document) {
  if (records_.is_open()) {
    fields_.PassRecord();
    NoteOfRecord(
        EntryNote::kBadRecord,
        absl::StrCat("is longer than ", FormatByteSize(kRecordSizeBytesMax)));
    return;
  }
  fields_.Apply(records_.record(), records_.format(), document, value_,
                [this](EntryNote note, absl::string_view text) {
                  NoteOfRecord(note, text);
                });
  if (value_.has_value()) {
    value_begin_ = 0;
    document.size_bytes = value_->size();
  }
}

absl::StatusOr<size_t> LineReader::Read(MutableByteView out) {
  if (value_.has_value()) {
    const size_t size = std::min(out.size(), value_->size() - value_begin_);
    std::memcpy(out.data(), value_->data() + value_begin_, size);
    value_begin_ += size;
    return size;
  }
  absl::StatusOr<size_t> size = records_.Read(out);
  if (!size.ok()) {
    LeaveFile();
  }
  return size;
}

absl::StatusOr<uint64_t> LineReader::Skip(uint64_t size_bytes) {
  if (value_.has_value() || records_.is_open()) {
    return SkipByReading(*this, size_bytes);
  }
  return records_.Skip(size_bytes);
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
