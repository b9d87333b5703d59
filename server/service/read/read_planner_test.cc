// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/service/read/read_planner.h"

#include <cstdint>
#include <limits>
#include <optional>
#include <random>
#include <string>

#include "gtest/gtest.h"

namespace quire {
namespace {

constexpr uint64_t kU64Max = std::numeric_limits<uint64_t>::max();

// Returns protobuf's serialisation.
std::string Reference(const Document& document) {
  v1::Document proto;
  FillDocument(document, proto);
  return proto.SerializeAsString();
}

std::string RandomText(std::mt19937_64& random) {
  std::string text(random() % 200, '\0');
  for (char& c : text) {
    // Descriptions omit text that is not plain; ids keep it.
    c = static_cast<char>(random() % 50 == 0 ? random() : 'a' + random() % 26);
  }
  return text;
}

TEST(SerialiseDocumentTest, MakesTheBytesThatProtobufMakes) {
  Document document;
  EXPECT_EQ(SerialiseDocument(document), Reference(document));
  document = {.ordinal = {kU64Max},
              .id = std::string(65'535, '\xFF'),
              .range = {{kU64Max}, kU64Max},
              .capture_time_ms = std::numeric_limits<int64_t>::min(),
              .record_type = std::string(65'535, 'r'),
              .media_type = std::string(65'535, 'm')};
  EXPECT_EQ(SerialiseDocument(document), Reference(document));
  std::mt19937_64 random(12);
  for (int round = 0; round < 5'000; ++round) {
    const auto number = [&] { return random() >> (random() % 64); };
    document = {.ordinal = {number()},
                .id = RandomText(random),
                .range = {{number()}, number()},
                .capture_time_ms = std::nullopt,
                .record_type = RandomText(random),
                .media_type = RandomText(random)};
    if (random() % 2 == 0) {
      document.capture_time_ms = static_cast<int64_t>(number());
    }
    ASSERT_EQ(SerialiseDocument(document), Reference(document)) << round;
  }
}

}  // namespace
}  // namespace quire
