// SPDX-License-Identifier: Apache-2.0
#include "client/quire/payload/record_header.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

#include "codecs/base/arc_line.h"
#include "codecs/base/header_fields.h"
#include "codecs/base/printable_text.h"
#include "codecs/base/status_macros.h"

namespace quire {
namespace {

// Length of unexpected text in messages.
constexpr size_t kShownSizeBytes = 20;

std::optional<uint64_t> ParseLength(absl::string_view text) {
  uint64_t length = 0;
  const bool is_number = std::all_of(text.begin(), text.end(), [](char c) {
    return absl::ascii_isdigit(static_cast<unsigned char>(c));
  });
  return is_number && absl::SimpleAtoi(text, &length) ? std::optional(length)
                                                      : std::nullopt;
}

std::string WithoutAngles(absl::string_view uri) {
  if (uri.size() >= 2 && uri.front() == '<' && uri.back() == '>') {
    uri = uri.substr(1, uri.size() - 2);
  }
  return std::string(uri);
}

// Appends the names in a list such as "gzip, chunked", without parameters.
void AddCodings(absl::string_view list, std::vector<std::string>& codings) {
  for (const absl::string_view entry : absl::StrSplit(list, ',')) {
    const absl::string_view name =
        absl::StripAsciiWhitespace(entry.substr(0, entry.find(';')));
    if (!name.empty() && !absl::EqualsIgnoreCase(name, "identity")) {
      codings.push_back(absl::AsciiStrToLower(name));
    }
  }
}

// An interim response is followed by the final one; 101 is final.
bool IsInterim(int status_code) {
  return status_code / 100 == 1 && status_code != 101;
}

// True if `text` starts with `magic`, or ends before it can differ.
bool MayStartWith(absl::string_view text, absl::string_view magic) {
  return absl::StartsWith(text, magic.substr(0, text.size()));
}

// True if `text` may begin the line of an ARC record.
bool MayBeginUrl(absl::string_view text) {
  const size_t size = std::min(text.find(':'), text.size());
  return BeginsWithScheme(absl::StrCat(text.substr(0, size), ":"));
}

WarcFields FieldsOfArc(const ArcLine& line) {
  WarcFields fields;
  const bool is_description = absl::StartsWith(line.url, kArcMagic);
  fields.type = is_description ? "warcinfo" : "response";
  fields.target_uri = std::string(line.url);
  fields.date = ArcDateAsWarcDate(line.date);
  fields.content_type =
      is_description ? std::string(line.type) : std::string(kArcContentType);
  return fields;
}

absl::StatusOr<uint64_t> ParseRecordLength(absl::string_view text) {
  const std::optional<uint64_t> length = ParseLength(text);
  if (!length.has_value()) {
    return absl::DataLossError(absl::StrCat(
        "the record's Content-Length must be a number of bytes, got ",
        QuotedText(text, kShownSizeBytes)));
  }
  return *length;
}

// Returns the search's result where `bytes` end inside a header.
HttpStatusSearch AtHeaderCut(ByteView bytes) {
  return {.is_decided = bytes.size() >= kRecordHeaderSizeBytesMax};
}

}  // namespace

bool IsWarcRecord(absl::string_view record) {
  return absl::StartsWithIgnoreCase(record, kWarcMagic);
}

absl::StatusOr<WarcFields> ParseWarcFields(absl::string_view header) {
  absl::string_view rest = header;
  if (!IsWarcRecord(TakeHeaderLine(rest))) {
    const std::optional<ArcLine> arc =
        rest.empty() ? ParseArcLine(header) : std::nullopt;
    if (arc.has_value()) {
      WarcFields fields = FieldsOfArc(*arc);
      QUIRE_ASSIGN_OR_RETURN(fields.content_length,
                             ParseRecordLength(arc->length));
      return fields;
    }
    return absl::DataLossError(absl::StrCat("found ",
                                            QuotedText(header, kShownSizeBytes),
                                            " where a WARC record must start"));
  }
  WarcFields fields;
  std::string content_length;
  const std::pair<absl::string_view, std::string*> wanted[] = {
      {"WARC-Type", &fields.type},
      {"WARC-Target-URI", &fields.target_uri},
      {"WARC-Refers-To-Target-URI", &fields.refers_to_target_uri},
      {"WARC-Date", &fields.date},
      {"WARC-Refers-To-Date", &fields.refers_to_date},
      {"WARC-Payload-Digest", &fields.payload_digest},
      {"WARC-Truncated", &fields.truncated},
      {"Content-Type", &fields.content_type},
      {"Content-Length", &content_length}};
  while (std::optional<HeaderField> field = TakeHeaderField(rest)) {
    for (const auto& [name, value] : wanted) {
      if (value->empty() && absl::EqualsIgnoreCase(field->name, name)) {
        *value = field->value;
      }
    }
  }
  QUIRE_ASSIGN_OR_RETURN(fields.content_length,
                         ParseRecordLength(content_length));
  fields.type = absl::AsciiStrToLower(fields.type);
  fields.target_uri = WithoutAngles(fields.target_uri);
  fields.refers_to_target_uri = WithoutAngles(fields.refers_to_target_uri);
  return fields;
}

bool HoldsHttp(const WarcFields& warc) {
  const std::string media_type = absl::AsciiStrToLower(
      absl::StripAsciiWhitespace(absl::string_view(warc.content_type)
                                     .substr(0, warc.content_type.find(';'))));
  return (warc.type == "response" || warc.type == "request" ||
          warc.type == "revisit") &&
         (media_type == "application/http" || media_type.empty());
}

bool MayStartHttp(absl::string_view block) {
  const size_t blank_size = BlankLinesSize(block);
  const absl::string_view rest = block.substr(blank_size);
  return MayStartWith(rest, kHttpMagic) ||
         (rest == "\r" && blank_size < kBlankSizeBytesMax);
}

HttpFields ParseHttpFields(absl::string_view header) {
  absl::string_view rest = header.substr(BlankLinesSize(header));
  HttpFields fields;
  const absl::string_view first = TakeHeaderLine(rest);
  if (absl::StartsWithIgnoreCase(first, kHttpMagic)) {
    const size_t space = first.find(' ');
    int code = 0;
    if (space == absl::string_view::npos ||
        !absl::SimpleAtoi(first.substr(space + 1).substr(0, 3), &code)) {
      code = 0;
    }
    fields.status_code = code;
  }
  while (std::optional<HeaderField> field = TakeHeaderField(rest)) {
    if (absl::EqualsIgnoreCase(field->name, "Transfer-Encoding")) {
      AddCodings(field->value, fields.transfer_codings);
    } else if (absl::EqualsIgnoreCase(field->name, "Content-Encoding")) {
      AddCodings(field->value, fields.content_codings);
    } else if (absl::EqualsIgnoreCase(field->name, "Content-Length") &&
               !fields.content_length.has_value()) {
      fields.content_length = ParseLength(field->value);
    } else if (absl::EqualsIgnoreCase(field->name, "Content-Type") &&
               fields.content_type.empty()) {
      fields.content_type = std::move(field->value);
    }
  }
  return fields;
}

std::optional<size_t> FindRecordHeaderEnd(absl::string_view record) {
  if (IsWarcRecord(record) || absl::StartsWithIgnoreCase(kWarcMagic, record)) {
    return FindHeaderEnd(AsBytes(record));
  }
  const size_t line_end = record.find('\n');
  if (line_end != absl::string_view::npos) {
    return line_end + 1;
  }
  return MayBeginUrl(record) ? std::nullopt : std::optional(record.size());
}

HttpStatusSearch FindHttpStatus(ByteView record) {
  const std::optional<size_t> header_size = FindRecordHeaderEnd(AsText(record));
  if (!header_size.has_value()) {
    return AtHeaderCut(record);
  }
  const absl::StatusOr<WarcFields> warc =
      ParseWarcFields(AsText(record.first(*header_size)));
  if (!warc.ok() || warc->type == "request" || !HoldsHttp(*warc)) {
    return {};
  }
  ByteView block = record.subspan(*header_size);
  const bool is_whole = block.size() >= warc->content_length;
  block = block.first(static_cast<size_t>(
      std::min<uint64_t>(block.size(), warc->content_length)));
  for (HttpStatusSearch found;;) {
    if (!MayStartHttp(AsText(block))) {
      return found;
    }
    block = block.subspan(BlankLinesSize(AsText(block)));
    absl::string_view rest = AsText(block);
    if (!absl::StrContains(rest, '\n') && !is_whole) {
      return AtHeaderCut(block);
    }
    const HttpFields http = absl::StartsWith(rest, kHttpMagic)
                                ? ParseHttpFields(TakeHeaderLine(rest))
                                : HttpFields();
    const int code = http.status_code.value_or(0);
    if (code <= 0) {
      return found;
    }
    found.code = code;
    if (!IsInterim(code)) {
      return found;
    }
    const std::optional<size_t> interim_size = FindHeaderEnd(block);
    if (!interim_size.has_value()) {
      return is_whole ? found : AtHeaderCut(block);
    }
    block = block.subspan(*interim_size);
  }
}

}  // namespace quire
