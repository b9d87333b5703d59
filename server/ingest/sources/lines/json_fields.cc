// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/ingest/sources/lines/json_fields.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

#include "codecs/base/printable_text.h"
#include "codecs/base/status_macros.h"
#include "server/ingest/sources/lines/utf16_stream.h"

namespace quire {
namespace {

// Bytes of a string that need no attention: ASCII except controls, quote and
// backslash.
constexpr std::array<bool, 256> MakePlain() {
  std::array<bool, 256> plain = {};
  for (size_t byte = 0x20; byte < 0x80; ++byte) {
    plain[byte] = byte != '"' && byte != '\\';
  }
  return plain;
}

constexpr std::array<bool, 256> kPlain = MakePlain();

bool IsDigit(char byte) {
  return byte >= '0' && byte <= '9';
}

class JsonScanner {
 public:
  JsonScanner(absl::string_view text, absl::Span<RecordField> fields)
      : text_(text), fields_(fields) {}

  absl::Status Run() {
    Paths paths;
    for (RecordField& field : fields_) {
      field.state = RecordField::State::kMissing;
      field.value.clear();
      field.is_member = false;
      paths.push_back(field.name);
    }
    SkipSpace();
    if (!Take('{')) {
      return Expected("an object, which begins with {");
    }
    QUIRE_RETURN_IF_ERROR(ScanMembers(1, paths));
    SkipSpace();
    return position_ == text_.size() ? absl::OkStatus()
                                     : Expected("the end of the line");
  }

  // The first problem of a part that is no field; OK if there is none.
  const absl::Status& tolerated() const { return tolerated_; }

 private:
  // For each field the rest of its path inside an object; no data if it is not
  // in there.
  using Paths = absl::InlinedVector<absl::string_view, 2>;

  absl::Status Expected(absl::string_view what) const {
    return absl::InvalidArgumentError(absl::StrCat(
        "is not JSON: expected ", what, " at byte ", position_ + 1, ", found ",
        position_ == text_.size() ? "the end"
                                  : QuotedText(text_.substr(position_), 20)));
  }

  char Peek() const {
    return position_ < text_.size() ? text_[position_] : '\0';
  }

  bool Take(char byte) {
    if (position_ < text_.size() && text_[position_] == byte) {
      ++position_;
      return true;
    }
    return false;
  }

  void SkipSpace() {
    while (position_ < text_.size() &&
           (text_[position_] == ' ' || text_[position_] == '\t' ||
            text_[position_] == '\n' || text_[position_] == '\r')) {
      ++position_;
    }
  }

  // After the opening brace of an object that may have fields.
  absl::Status ScanMembers(int depth, const Paths& paths) {
    SkipSpace();
    if (Take('}')) {
      return absl::OkStatus();
    }
    while (true) {
      SkipSpace();
      QUIRE_RETURN_IF_ERROR(ScanName());
      Paths inner;
      RecordField* const field = FindField(depth, paths, inner);
      SkipSpace();
      if (!Take(':')) {
        return Expected("a colon");
      }
      QUIRE_RETURN_IF_ERROR(ScanValue(depth, field, inner));
      SkipSpace();
      if (Take('}')) {
        return absl::OkStatus();
      }
      if (!Take(',')) {
        return Expected("a comma or }");
      }
    }
  }

  // Sets `name_`, and `has_name_` unless the name is malformed.
  absl::Status ScanName() {
    const size_t begin = position_;
    absl::Status status = ScanString(&name_);
    has_name_ = status.ok();
    if (!status.ok() && begin < text_.size() && text_[begin] == '"') {
      Tolerate(std::move(status));
      position_ = begin;
      return PassString();
    }
    return status;
  }

  // Returns the field that is the member `name_` of an object, or null. `inner`
  // becomes the paths that continue in the member, or stays empty.
  RecordField* FindField(int depth, const Paths& paths, Paths& inner) {
    RecordField* found = nullptr;
    for (size_t i = 0; i < fields_.size() && has_name_; ++i) {
      RecordField& field = fields_[i];
      absl::string_view path = paths[i];
      if (path.data() == nullptr || (field.is_member && depth > 1)) {
        continue;
      }
      if (path == name_) {
        field.is_member = depth == 1;
        found = &field;
      } else if (!field.is_member && absl::ConsumePrefix(&path, name_) &&
                 absl::ConsumePrefix(&path, ".")) {
        // An earlier member of this name does not count.
        Drop(field);
        inner.resize(fields_.size());
        inner[i] = path;
      }
    }
    return found;
  }

  // `depth` is the number of objects and arrays around the value. `field` may
  // be null, and `inner` empty.
  absl::Status ScanValue(int depth, RecordField* field, const Paths& inner) {
    SkipSpace();
    const size_t begin = position_;
    const char first = Peek();
    if (field != nullptr) {
      Drop(*field);
      field->state = RecordField::State::kWrongType;
    }
    const bool is_text = first == '"' && field != nullptr;
    absl::Status problem;
    if (first == '{' && !inner.empty() && depth < kJsonDepthMax) {
      ++position_;
      problem = ScanMembers(depth + 1, inner);
    } else {
      problem =
          CheckEnd(is_text ? ScanString(&field->value) : ScanPlainValue(depth));
    }
    if (!problem.ok()) {
      position_ = begin;
      QUIRE_RETURN_IF_ERROR(PassLoosely());
      // Objects and arrays are values as they are written.
      if (field != nullptr && first != '{' && first != '[') {
        field->state = RecordField::State::kMalformed;
        field->value = std::string(problem.message());
        return absl::OkStatus();
      }
      Tolerate(std::move(problem));
    }
    if (is_text) {
      field->state = RecordField::State::kFound;
      field->form = RecordField::Form::kString;
      return absl::OkStatus();
    }
    const absl::string_view value = text_.substr(begin, position_ - begin);
    const bool is_number = first == '-' || IsDigit(first);
    if (field != nullptr &&
        (is_number || (field->takes_any && value != "null"))) {
      field->state = RecordField::State::kFound;
      field->value.assign(value.data(), value.size());
      field->form = is_number ? RecordField::Form::kNumber
                    : first == '{' || first == '['
                        ? RecordField::Form::kNested
                        : RecordField::Form::kBoolean;
    }
    return absl::OkStatus();
  }

  // Returns the problem of a value that was scanned with `status`, or that of
  // what follows it.
  absl::Status CheckEnd(absl::Status status) {
    if (!status.ok()) {
      return status;
    }
    const size_t end = position_;
    SkipSpace();
    if (position_ == text_.size() || Peek() == ',' || Peek() == '}') {
      position_ = end;
      return absl::OkStatus();
    }
    return Expected("a comma or }");
  }

  // Forgets the value of an earlier member.
  void Drop(RecordField& field) {
    if (field.state == RecordField::State::kMalformed) {
      Tolerate(absl::InvalidArgumentError(field.value));
    }
    field.state = RecordField::State::kMissing;
    field.value.clear();
  }

  void Tolerate(absl::Status problem) {
    if (tolerated_.ok()) {
      tolerated_ = std::move(problem);
    }
  }

  // A word, a string, or brackets with anything between them that has matching
  // brackets.
  absl::Status PassLoosely() {
    constexpr absl::string_view kWordEnds = " \t\r\n,:\"[]{}";
    std::string closers;
    do {
      SkipSpace();
      const char first = Peek();
      if (first == '"') {
        QUIRE_RETURN_IF_ERROR(PassString());
      } else if (first == '{' || first == '[') {
        closers.push_back(first == '{' ? '}' : ']');
        ++position_;
      } else if (!closers.empty() && first == closers.back()) {
        closers.pop_back();
        ++position_;
      } else if (!closers.empty() && (first == ',' || first == ':')) {
        ++position_;
      } else {
        const size_t end =
            std::min(text_.find_first_of(kWordEnds, position_), text_.size());
        if (end == position_) {
          return closers.empty()
                     ? Expected("a value")
                     : Expected(absl::StrCat(
                           "a value or ", closers.substr(closers.size() - 1)));
        }
        position_ = end;
      }
    } while (!closers.empty());
    return absl::OkStatus();
  }

  // A string up to its closing quote. REQUIRES: a quote is next.
  absl::Status PassString() {
    for (++position_;; position_ += 2) {
      position_ = text_.find_first_of("\"\\", position_);
      if (position_ == text_.npos || position_ + 1 == text_.size()) {
        const bool is_closed =
            position_ != text_.npos && text_[position_] == '"';
        position_ = text_.size();
        return is_closed ? absl::OkStatus() : Expected("the end of a string");
      }
      if (text_[position_] == '"') {
        ++position_;
        return absl::OkStatus();
      }
    }
  }

  // After the opening brace.
  absl::Status ScanPlainMembers(int depth) {
    SkipSpace();
    if (Take('}')) {
      return absl::OkStatus();
    }
    while (true) {
      SkipSpace();
      QUIRE_RETURN_IF_ERROR(ScanString(nullptr));
      SkipSpace();
      if (!Take(':')) {
        return Expected("a colon");
      }
      QUIRE_RETURN_IF_ERROR(ScanPlainValue(depth));
      SkipSpace();
      if (Take('}')) {
        return absl::OkStatus();
      }
      if (!Take(',')) {
        return Expected("a comma or }");
      }
    }
  }

  // After the opening bracket.
  absl::Status ScanElements(int depth) {
    SkipSpace();
    if (Take(']')) {
      return absl::OkStatus();
    }
    while (true) {
      QUIRE_RETURN_IF_ERROR(ScanPlainValue(depth));
      SkipSpace();
      if (Take(']')) {
        return absl::OkStatus();
      }
      if (!Take(',')) {
        return Expected("a comma or ]");
      }
    }
  }

  // `depth` is the number of objects and arrays around the value.
  absl::Status ScanPlainValue(int depth) {
    SkipSpace();
    const char first = Peek();
    if (first == '"') {
      return ScanString(nullptr);
    }
    if (first == '{' || first == '[') {
      if (depth == kJsonDepthMax) {
        return Expected(absl::StrCat("at most ", kJsonDepthMax,
                                     " objects and arrays inside each other"));
      }
      ++position_;
      return first == '{' ? ScanPlainMembers(depth + 1)
                          : ScanElements(depth + 1);
    }
    if (first == '-' || IsDigit(first)) {
      return ScanNumber();
    }
    for (const absl::string_view word : {"true", "false", "null"}) {
      if (text_.substr(position_, word.size()) == word) {
        position_ += word.size();
        return absl::OkStatus();
      }
    }
    return Expected("a value");
  }

  absl::Status ScanNumber() {
    Take('-');
    if (!Take('0')) {
      QUIRE_RETURN_IF_ERROR(ScanDigits());
    }
    if (Take('.')) {
      QUIRE_RETURN_IF_ERROR(ScanDigits());
    }
    if (Take('e') || Take('E')) {
      if (!Take('+')) {
        Take('-');
      }
      QUIRE_RETURN_IF_ERROR(ScanDigits());
    }
    return absl::OkStatus();
  }

  absl::Status ScanDigits() {
    if (!IsDigit(Peek())) {
      return Expected("a digit");
    }
    while (IsDigit(Peek())) {
      ++position_;
    }
    return absl::OkStatus();
  }

  // `value`, which may be null, becomes the string without escapes.
  absl::Status ScanString(std::string* value) {
    if (!Take('"')) {
      return Expected("a string");
    }
    if (value != nullptr) {
      value->clear();
    }
    while (true) {
      const size_t begin = position_;
      while (position_ < text_.size() &&
             kPlain[static_cast<uint8_t>(text_[position_])]) {
        ++position_;
      }
      Append(text_.substr(begin, position_ - begin), value);
      if (Take('"')) {
        return absl::OkStatus();
      }
      if (position_ == text_.size()) {
        return Expected("the end of a string");
      }
      if (Take('\\')) {
        QUIRE_RETURN_IF_ERROR(ScanEscape(value));
        continue;
      }
      const size_t size = static_cast<uint8_t>(Peek()) < 0x80
                              ? 0
                              : Utf8SequenceSize(text_.substr(position_));
      if (size == 0) {
        return Expected("a character in UTF-8, and no control character");
      }
      Append(text_.substr(position_, size), value);
      position_ += size;
    }
  }

  static void Append(absl::string_view text, std::string* value) {
    if (value != nullptr) {
      value->append(text.data(), text.size());
    }
  }

  // After the backslash.
  absl::Status ScanEscape(std::string* value) {
    constexpr absl::string_view kEscapes = "\"\\/bfnrt";
    constexpr absl::string_view kMeanings = "\"\\/\b\f\n\r\t";
    if (Take('u')) {
      return ScanUnicodeEscape(value);
    }
    const size_t index =
        position_ == text_.size() ? kEscapes.npos : kEscapes.find(Peek());
    if (index == kEscapes.npos) {
      return Expected("one of \"\\/bfnrtu after a backslash");
    }
    ++position_;
    Append(kMeanings.substr(index, 1), value);
    return absl::OkStatus();
  }

  absl::Status ScanUnicodeEscape(std::string* value) {
    std::optional<uint32_t> code = TakeHex();
    if (!code.has_value()) {
      return Expected("four hexadecimal digits");
    }
    if (*code >= 0xDC00 && *code < 0xE000) {
      return Expected("the first half of a pair before its second half");
    }
    if (*code >= 0xD800 && *code < 0xDC00) {
      const std::optional<uint32_t> low =
          Take('\\') && Take('u') ? TakeHex() : std::nullopt;
      if (!low.has_value() || *low < 0xDC00 || *low >= 0xE000) {
        return Expected("\\uDC00 to \\uDFFF, the second half of a pair");
      }
      code = 0x10000 + ((*code - 0xD800) << 10) + (*low - 0xDC00);
    }
    if (value != nullptr) {
      AppendUtf8(*code, *value);
    }
    return absl::OkStatus();
  }

  std::optional<uint32_t> TakeHex() {
    if (text_.size() - position_ < 4) {
      return std::nullopt;
    }
    uint32_t code = 0;
    for (const char digit : text_.substr(position_, 4)) {
      const char lower = static_cast<char>(digit | 0x20);
      if (IsDigit(digit)) {
        code = code * 16 + static_cast<uint32_t>(digit - '0');
      } else if (lower >= 'a' && lower <= 'f') {
        code = code * 16 + static_cast<uint32_t>(lower - 'a' + 10);
      } else {
        return std::nullopt;
      }
    }
    position_ += 4;
    return code;
  }

  const absl::string_view text_;
  const absl::Span<RecordField> fields_;
  size_t position_ = 0;
  // Name of the current member of an object that may have fields.
  std::string name_;
  bool has_name_ = false;
  absl::Status tolerated_;
};

}  // namespace

absl::Status ReadJsonFields(absl::string_view text,
                            absl::Span<RecordField> fields,
                            std::string* tolerated) {
  JsonScanner scanner(text, fields);
  absl::Status status = scanner.Run();
  if (tolerated != nullptr) {
    *tolerated = status.ok() ? std::string(scanner.tolerated().message()) : "";
  }
  return status;
}

}  // namespace quire
