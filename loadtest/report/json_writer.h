// SPDX-License-Identifier: Apache-2.0
#ifndef QUIRE_LOADTEST_REPORT_JSON_WRITER_H_
#define QUIRE_LOADTEST_REPORT_JSON_WRITER_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace quire {

// Writes one JSON value, two spaces a level, members of an object in the order
// in which they are written.
//
//   JsonWriter json;
//   json.BeginObject();
//   json.Field("requests", uint64_t{7});
//   json.Key("errors");
//   json.BeginObject();
//   json.EndObject();
//   json.EndObject();
//
// Strings may be any bytes, as ids of documents need not be text: they are
// written by JsonString() (codecs/base/json_text.h). Numbers that are not
// finite become null. Thread-compatible.
class JsonWriter {
 public:
  void BeginObject();
  void EndObject();
  void BeginArray();
  void EndArray();
  // REQUIRES: directly in an object; a value follows.
  void Key(absl::string_view key);

  void Value(absl::string_view text);

  void Value(const char* text) { Value(absl::string_view(text)); }

  void Value(uint64_t number);

  void Value(uint32_t number) { Value(uint64_t{number}); }

  // The shortest digits that read back as the same number.
  void Value(double number);
  void Value(bool truth);
  void Null();

  template <typename T>
  void Field(absl::string_view key, const T& value) {
    Key(key);
    Value(value);
  }

  // What was written, with a line end.
  // REQUIRES: all that was begun has ended.
  std::string Take();

 private:
  // What goes before a value or a key.
  void Separate();
  void Indent();
  void Begin(char bracket);
  void End(char bracket);

  std::string out_;
  size_t depth_ = 0;
  bool is_first_ = true;
  bool after_key_ = false;
};

}  // namespace quire

#endif  // QUIRE_LOADTEST_REPORT_JSON_WRITER_H_
