// SPDX-License-Identifier: Apache-2.0
#include "loadtest/report/json_writer.h"

#include <array>
#include <charconv>
#include <cmath>
#include <utility>

#include "codecs/base/json_text.h"

namespace quire {

void JsonWriter::Indent() {
  out_ += '\n';
  out_.append(2 * depth_, ' ');
}

void JsonWriter::Separate() {
  if (after_key_) {
    after_key_ = false;
    return;
  }
  if (depth_ > 0) {
    if (!is_first_) {
      out_ += ',';
    }
    Indent();
  }
  is_first_ = false;
}

void JsonWriter::Begin(char bracket) {
  Separate();
  out_ += bracket;
  ++depth_;
  is_first_ = true;
}

void JsonWriter::End(char bracket) {
  --depth_;
  if (!is_first_) {
    Indent();
  }
  out_ += bracket;
  is_first_ = false;
}

void JsonWriter::BeginObject() {
  Begin('{');
}

void JsonWriter::EndObject() {
  End('}');
}

void JsonWriter::BeginArray() {
  Begin('[');
}

void JsonWriter::EndArray() {
  End(']');
}

void JsonWriter::Key(absl::string_view key) {
  Separate();
  out_ += JsonString(key);
  out_ += ": ";
  after_key_ = true;
}

void JsonWriter::Value(absl::string_view text) {
  Separate();
  out_ += JsonString(text);
}

void JsonWriter::Value(uint64_t number) {
  Separate();
  out_ += std::to_string(number);
}

void JsonWriter::Value(double number) {
  if (!std::isfinite(number)) {
    Null();
    return;
  }
  Separate();
  std::array<char, 64> digits;
  const std::to_chars_result end =
      std::to_chars(digits.data(), digits.data() + digits.size(), number);
  out_.append(digits.data(), end.ptr);
}

void JsonWriter::Value(bool truth) {
  Separate();
  out_ += truth ? "true" : "false";
}

void JsonWriter::Null() {
  Separate();
  out_ += "null";
}

std::string JsonWriter::Take() {
  out_ += '\n';
  return std::exchange(out_, {});
}

}  // namespace quire
