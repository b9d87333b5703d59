// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/service/catalog/decode_workspaces.h"

#include <array>
#include <atomic>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace quire {
namespace {

constexpr uint64_t kLimit = 1000;

// Counts its instances.
class CountedScratch : public BlockCodec::Scratch {
 public:
  explicit CountedScratch(int& count) : count_(count) { ++count_; }

  ~CountedScratch() override { --count_; }

 private:
  int& count_;
};

class DecodeWorkspacesTest : public ::testing::Test {
 protected:
  // Takes a workspace, made if none is kept, and returns it.
  void Use(size_t owner, uint64_t size_bytes = 100) {
    const auto lease = pool_.Take(&owners_[owner], size_bytes, [this] {
      ++made_;
      return std::make_unique<CountedScratch>(alive_);
    });
  }

  std::array<char, 1000> owners_ = {};
  int alive_ = 0;
  int made_ = 0;
  DecodeWorkspaces pool_{kLimit};
};

TEST_F(DecodeWorkspacesTest, KeepsThoseUsedLastWithinTheLimit) {
  for (size_t owner = 0; owner < 200; ++owner) {
    Use(owner);
    EXPECT_LE(pool_.size_bytes(), kLimit);
    EXPECT_LE(alive_, 10);
  }
  EXPECT_EQ(made_, 200);
  for (size_t owner = 190; owner < 200; ++owner) {
    Use(owner);
  }
  EXPECT_EQ(made_, 200);
  Use(0);
  EXPECT_EQ(made_, 201);
  Use(190);
  EXPECT_EQ(made_, 202);
  // A large workspace takes the space of several.
  Use(500, kLimit);
  EXPECT_EQ(alive_, 1);
  EXPECT_EQ(pool_.size_bytes(), kLimit);
}

TEST_F(DecodeWorkspacesTest, BoundsTheNumberOfThoseKept) {
  for (size_t owner = 0; owner < 200; ++owner) {
    Use(owner, 1);
  }
  EXPECT_EQ(alive_, static_cast<int>(DecodeWorkspaces::kIdleMax));
  EXPECT_EQ(pool_.size_bytes(), DecodeWorkspaces::kIdleMax);
}

TEST_F(DecodeWorkspacesTest, FreesThoseOfAnOwnerThatEnds) {
  Use(0);
  Use(1);
  pool_.Forget(&owners_[0]);
  EXPECT_EQ(alive_, 1);
  EXPECT_EQ(pool_.size_bytes(), 100u);
  Use(1);
  EXPECT_EQ(made_, 2);
}

TEST(DecodeWorkspacesThreadsTest, ThoseInUseNeverExceedTheLimit) {
  DecodeWorkspaces pool(kLimit);
  std::array<char, 8> owners = {};
  std::atomic<uint64_t> in_use = 0;
  std::atomic<uint64_t> most = 0;
  {
    std::vector<std::jthread> threads;
    for (size_t i = 0; i < owners.size(); ++i) {
      threads.emplace_back([&, i] {
        // 300 to 1,000 bytes.
        const uint64_t size_bytes = 300 + 100 * i;
        for (int round = 0; round < 200; ++round) {
          const auto lease = pool.Take(&owners[i], size_bytes, [] {
            return std::make_unique<BlockCodec::Scratch>();
          });
          const uint64_t now = in_use += size_bytes;
          uint64_t seen = most;
          while (seen < now && !most.compare_exchange_weak(seen, now)) {
          }
          in_use -= size_bytes;
        }
      });
    }
  }
  EXPECT_LE(most, kLimit);
  EXPECT_LE(pool.size_bytes(), kLimit);
}

}  // namespace
}  // namespace quire
