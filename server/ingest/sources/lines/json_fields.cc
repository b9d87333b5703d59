// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/ingest/sources/lines/json_fields.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "absl/strings/str_cat.h"

#include "codecs/base/printable_text.h"
#include "codecs/base/status_macros.h"

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

void AppendUtf8(uint32_t code, std::string& out) {
  const auto tail = [&out, code](int shift) {
    out.push_back(static_cast<char>(0x80 | ((code >> shift) & 0x3F)));
  };
  if (code < 0x80) {
    out.push_back(static_cast<char>(code));
  } else if (code < 0x800) {
    out.push_back(static_cast<char>(0xC0 | (code >> 6)));
    tail(0);
  } else if (code < 0x10000) {
    out.push_back(static_cast<char>(0xE0 | (code >> 12)));
    tail(6);
    tail(0);
  } else {
    out.push_back(static_cast<char>(0xF0 | (code >> 18)));
    tail(12);
    tail(6);
    tail(0);
  }
}

class JsonScanner {
 public:
  JsonScanner(absl::string_view text, absl::Span<RecordField> fields)
      : text_(text), fields_(fields) {}

  absl::Status Run() {
    for (RecordField& field : fields_) {
      field.state = RecordField::State::kMissing;
      field.value.clear();
    }
    SkipSpace();
    if (!Take('{')) {
      return Expected("an object, which begins with {");
    }
    QUIRE_RETURN_IF_ERROR(ScanMembers(1));
    SkipSpace();
    return position_ == text_.size() ? absl::OkStatus()
                                     : Expected("the end of the line");
  }

 private:
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

  // After the opening brace. Only members of the outermost object are fields.
  absl::Status ScanMembers(int depth) {
    SkipSpace();
    if (Take('}')) {
      return absl::OkStatus();
    }
    while (true) {
      SkipSpace();
      RecordField* field = nullptr;
      if (depth == 1) {
        QUIRE_RETURN_IF_ERROR(ScanString(&name_));
        field = FieldNamed(name_);
      } else {
        QUIRE_RETURN_IF_ERROR(ScanString(nullptr));
      }
      SkipSpace();
      if (!Take(':')) {
        return Expected("a colon");
      }
      QUIRE_RETURN_IF_ERROR(ScanValue(depth, field));
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
      QUIRE_RETURN_IF_ERROR(ScanValue(depth, nullptr));
      SkipSpace();
      if (Take(']')) {
        return absl::OkStatus();
      }
      if (!Take(',')) {
        return Expected("a comma or ]");
      }
    }
  }

  // `depth` is the number of objects and arrays around the value. `field` may
  // be null.
  absl::Status ScanValue(int depth, RecordField* field) {
    SkipSpace();
    const size_t begin = position_;
    const char first = Peek();
    if (field != nullptr) {
      field->value.clear();
      field->state = RecordField::State::kWrongType;
    }
    if (first == '"') {
      if (field != nullptr) {
        field->state = RecordField::State::kFound;
      }
      return ScanString(field != nullptr ? &field->value : nullptr);
    }
    if (first == '{' || first == '[') {
      if (depth == kJsonDepthMax) {
        return Expected(absl::StrCat("at most ", kJsonDepthMax,
                                     " objects and arrays inside each other"));
      }
      ++position_;
      return first == '{' ? ScanMembers(depth + 1) : ScanElements(depth + 1);
    }
    if (first == '-' || IsDigit(first)) {
      QUIRE_RETURN_IF_ERROR(ScanNumber());
      if (field != nullptr) {
        field->state = RecordField::State::kFound;
        const absl::string_view number = text_.substr(begin, position_ - begin);
        field->value.assign(number.data(), number.size());
      }
      return absl::OkStatus();
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

  RecordField* FieldNamed(absl::string_view name) {
    for (RecordField& field : fields_) {
      if (field.name == name) {
        return &field;
      }
    }
    return nullptr;
  }

  const absl::string_view text_;
  const absl::Span<RecordField> fields_;
  size_t position_ = 0;
  // Name of the current member.
  std::string name_;
};

}  // namespace

absl::Status ReadJsonFields(absl::string_view text,
                            absl::Span<RecordField> fields) {
  return JsonScanner(text, fields).Run();
}

}  // namespace quire
