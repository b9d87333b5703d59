// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/ingest/spilled_clusters.h"

#include <array>
#include <functional>
#include <random>
#include <vector>

#include "gtest/gtest.h"

#include "codecs/base/status_matchers.h"

namespace quire {
namespace {

using Features = std::array<uint64_t, 4>;

struct Case {
  const char* name;
  std::function<Features(std::mt19937_64&, uint64_t number)> features;
};

TEST(SpilledClustersTest, AreThoseInMemory) {
  const std::vector<Case> cases = {
      {"never again",
       [](auto& random, uint64_t) {
         return Features{random(), random(), random(), random()};
       }},
      {"all the same",
       [](auto&, uint64_t) {
         return Features{1, 2, 3, 4};
       }},
      {"none", [](auto&, uint64_t) { return Features{}; }},
      {"one of several, twice in a chunk, at any index",
       [](auto& random, uint64_t) {
         return Features{random() % 50, random() % 50, random() % 5000, 7};
       }},
      {"stretches",
       [](auto& random, uint64_t number) {
         return Features{1 + number % 700, random() % 300, random(),
                         random() % 4 == 0 ? number / 3 : 0};
       }},
      // Of a hash the table keeps the lower half and the ten upper bits.
      {"different in bits that are not kept",
       [](auto& random, uint64_t number) {
         return Features{(number % 400 + 1) | (random() % 1024) << 40,
                         random() % 100 << 32, uint64_t{1} << 63, random()};
       }},
  };
  for (const Case& tested : cases) {
    for (const uint32_t count : {0u, 1u, 3000u}) {
      for (const size_t memory_bytes : {1000u, 20'000u, 1u << 20}) {
        SCOPED_TRACE(testing::Message()
                     << tested.name << " " << count << " " << memory_bytes);
        std::mt19937_64 random(1);
        ChunkClusters expected;
        SpilledClusters spilled(::testing::TempDir(), memory_bytes);
        for (uint32_t i = 0; i < count; ++i) {
          const Features features = tested.features(random, i);
          expected.Add(features);
          QUIRE_ASSERT_OK(spilled.Add(features));
        }
        QUIRE_ASSERT_OK_AND_ASSIGN(const ChunkClusters clusters,
                                   spilled.Take());
        EXPECT_EQ(clusters.Leaders(), expected.Leaders());
        EXPECT_EQ(clusters.SharedCounts(), expected.SharedCounts());
      }
    }
  }
}

TEST(SpilledClustersTest, FailWhereFilesCannotBe) {
  SpilledClusters clusters("/nowhere", 64);
  absl::Status status = absl::OkStatus();
  for (uint64_t i = 0; i < 3 && status.ok(); ++i) {
    status = clusters.Add({1, 2, 3, 4});
  }
  EXPECT_EQ(status.message().substr(0, 8), "/nowhere") << status;
}

}  // namespace
}  // namespace quire
