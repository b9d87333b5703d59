// SPDX-License-Identifier: Apache-2.0
#include "codecs/base/header_fields.h"

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace quire {
namespace {

bool ContinuesLine(absl::string_view rest) {
  return !rest.empty() && (rest[0] == ' ' || rest[0] == '\t');
}

}  // namespace

std::optional<size_t> FindHeaderEnd(ByteView bytes) {
  const absl::string_view text = AsText(bytes);
  size_t line_start = 0;
  while (true) {
    const size_t line_end = text.find('\n', line_start);
    if (line_end == absl::string_view::npos) {
      return std::nullopt;
    }
    const size_t length = line_end - line_start;
    if (length == 0 || (length == 1 && text[line_start] == '\r')) {
      return line_end + 1;
    }
    line_start = line_end + 1;
  }
}

size_t BlankLinesSize(absl::string_view text) {
  size_t size = 0;
  while (size < kBlankSizeBytesMax) {
    const absl::string_view rest = text.substr(size);
    const size_t line_size = absl::StartsWith(rest, "\r\n") ? 2
                             : absl::StartsWith(rest, "\n") ? 1
                                                            : 0;
    if (line_size == 0) {
      break;
    }
    size += line_size;
  }
  return size;
}

absl::string_view TakeHeaderLine(absl::string_view& rest) {
  const size_t end = rest.find('\n');
  absl::string_view line = rest.substr(0, end);
  rest.remove_prefix(end == absl::string_view::npos ? rest.size() : end + 1);
  absl::ConsumeSuffix(&line, "\r");
  return line;
}

std::optional<HeaderField> TakeHeaderField(absl::string_view& rest) {
  const absl::string_view line = TakeHeaderLine(rest);
  if (line.empty()) {
    return std::nullopt;
  }
  HeaderField field;
  const size_t colon = line.find(':');
  if (colon == absl::string_view::npos) {
    field.value = std::string(line);
    return field;
  }
  field.name = absl::StripTrailingAsciiWhitespace(line.substr(0, colon));
  field.value = std::string(absl::StripAsciiWhitespace(line.substr(colon + 1)));
  while (ContinuesLine(rest)) {
    absl::StrAppend(&field.value, field.value.empty() ? "" : " ",
                    absl::StripAsciiWhitespace(TakeHeaderLine(rest)));
  }
  return field;
}

}  // namespace quire
