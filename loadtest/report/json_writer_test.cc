// SPDX-License-Identifier: Apache-2.0
#include "loadtest/report/json_writer.h"

#include <limits>

#include "gtest/gtest.h"

namespace quire {
namespace {

TEST(JsonWriterTest, NestsObjectsAndArrays) {
  JsonWriter json;
  json.BeginObject();
  json.Field("n", uint64_t{18446744073709551615u});
  json.Key("list");
  json.BeginArray();
  json.Value(0.1);
  json.Value(true);
  json.Null();
  json.BeginObject();
  json.EndObject();
  json.EndArray();
  json.Field("s", "x");
  json.EndObject();
  EXPECT_EQ(json.Take(), R"({
  "n": 18446744073709551615,
  "list": [
    0.1,
    true,
    null,
    {}
  ],
  "s": "x"
}
)");
}

TEST(JsonWriterTest, EscapesWhatJsonCannotHave) {
  JsonWriter json;
  json.Value(absl::string_view("a\"b\\c\nd\0e\xFF\xC2\x9B", 12));
  EXPECT_EQ(json.Take(), "\"a\\\"b\\\\c\\nd\\u0000e\xEF\xBF\xBD\\u009b\"\n");
}

TEST(JsonWriterTest, WritesNumbersThatReadBackTheSame) {
  JsonWriter json;
  json.BeginArray();
  json.Value(1.0);
  json.Value(1e300);
  json.Value(-2.5);
  json.Value(std::numeric_limits<double>::infinity());
  json.Value(std::numeric_limits<double>::quiet_NaN());
  json.EndArray();
  EXPECT_EQ(json.Take(), "[\n  1,\n  1e+300,\n  -2.5,\n  null,\n  null\n]\n");
}

}  // namespace
}  // namespace quire
