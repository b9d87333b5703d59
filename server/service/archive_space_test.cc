// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/service/archive_space.h"

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "gtest/gtest.h"

#include "server/service/catalog/catalog.h"
#include "server/service/catalog/wire_encoders.h"
#include "server/service/testing/server_fixture.h"
#include "testing/base/status_matchers.h"

namespace quire {
namespace {

class ArchiveSpaceTest : public ServerTest {
 protected:
  void SetUp() override {
    WriteArchive(archive_path(), MakeDocuments(50, 1));
    BlockStoreOptions options;
    options.cache_size_bytes = 0;
    options.engine = BlockStoreOptions::Engine::kPread;
    options.decode_threads = 1;
    QUIRE_ASSERT_OK_AND_ASSIGN(store_, BlockStore::Create(options));
    QUIRE_ASSERT_OK_AND_ASSIGN(outline_, Archive::ReadOutline(archive_path()));
    plan_.listed_bytes = 4 * outline_->memory_bytes + outline_->opening_bytes;
    space_ = std::make_unique<ArchiveSpace>(plan_, catalog_, *store_, nullptr);
  }

  // Opens the archive as the listed archive "docs".
  std::shared_ptr<ServedArchive> OpenDocs() {
    const ArchiveArgument argument = {
        .name = "docs", .path = archive_path(), .is_listed = true};
    auto opened = OpenServedArchive(
        argument, std::make_shared<DecodeWorkspaces>(uint64_t{1} << 24),
        std::make_shared<WireEncoders>(), {});
    QUIRE_EXPECT_OK(opened);
    catalog_.Add(argument, {});
    return *std::move(opened);
  }

  std::optional<ArchiveOutline> outline_;
  MemoryPlan plan_;
  Catalog catalog_;
  std::unique_ptr<BlockStore> store_;
  std::unique_ptr<ArchiveSpace> space_;
};

// Otherwise other archives would close for memory that nothing holds.
TEST_F(ArchiveSpaceTest, APublishedArchiveCountsOnceBesideItsReservation) {
  {
    QUIRE_ASSERT_OK_AND_ASSIGN(std::optional<ArchiveSpace::Reservation> held,
                               space_->ReserveListed(*outline_));
    ASSERT_TRUE(held.has_value());
    EXPECT_EQ(space_->FreeBytes(), 3 * outline_->memory_bytes);
    std::shared_ptr<ServedArchive> served = OpenDocs();
    QUIRE_ASSERT_OK(space_->Resize(*held, served->archive));
    const uint64_t free_bytes = space_->FreeBytes();
    EXPECT_LT(free_bytes, plan_.listed_bytes);
    catalog_.Publish(std::move(served));
    EXPECT_EQ(space_->FreeBytes(), free_bytes);
  }
  const std::shared_ptr<const ServedArchive> served = catalog_.FindOpen("docs");
  ASSERT_NE(served, nullptr);
  EXPECT_EQ(space_->FreeBytes(),
            plan_.listed_bytes - served->archive->memory_bytes_max());
}

TEST_F(ArchiveSpaceTest, MemoryOfAnOpeningThatFailedIsFree) {
  QUIRE_ASSERT_OK_AND_ASSIGN(std::optional<ArchiveSpace::Reservation> held,
                             space_->ReserveListed(*outline_));
  ASSERT_TRUE(held.has_value());
  QUIRE_ASSERT_OK(space_->Resize(*held, OpenDocs()->archive));
  EXPECT_LT(space_->FreeBytes(), plan_.listed_bytes);
  held.reset();
  EXPECT_EQ(space_->FreeBytes(), plan_.listed_bytes);
}

// Calls that read it hold the memory.
TEST_F(ArchiveSpaceTest, ARemovedArchiveCountsUntilItsLastReader) {
  catalog_.Publish(OpenDocs());
  std::shared_ptr<const ServedArchive> served = catalog_.FindOpen("docs");
  catalog_.RemoveAllBut([](const ArchiveArgument&) { return false; });
  EXPECT_EQ(space_->FreeBytes(),
            plan_.listed_bytes - served->archive->memory_bytes_max());
  served = nullptr;
  EXPECT_EQ(space_->FreeBytes(), plan_.listed_bytes);
}

// The cache is all that either may have.
TEST_F(ArchiveSpaceTest, ConnectionsAndArchivesShareTheCache) {
  plan_ = {.cache_bytes = outline_->memory_bytes + (uint64_t{9} << 20)};
  space_ = std::make_unique<ArchiveSpace>(plan_, catalog_, *store_, nullptr);
  constexpr uint64_t kOneMiB = uint64_t{1} << 20;
  const auto capacity = [&] { return store_->Stats().cache_capacity_bytes; };
  EXPECT_TRUE(space_->LendToConnections(kOneMiB));
  EXPECT_EQ(capacity(), plan_.cache_bytes - kOneMiB);
  {
    QUIRE_ASSERT_OK_AND_ASSIGN(const ArchiveSpace::Reservation held,
                               space_->Reserve(outline_->memory_bytes));
    EXPECT_EQ(capacity(), uint64_t{8} << 20);
    EXPECT_FALSE(space_->LendToConnections(kOneMiB + 1));
    EXPECT_EQ(capacity(), uint64_t{8} << 20);
  }
  EXPECT_TRUE(space_->LendToConnections(kOneMiB + 1));
  EXPECT_FALSE(space_->Reserve(outline_->memory_bytes).ok());
  EXPECT_TRUE(space_->LendToConnections(0));
  EXPECT_EQ(capacity(), plan_.cache_bytes);
}

// Memory may become free at any time, also while another archive's is sought.
TEST_F(ArchiveSpaceTest, ACallMayEndWhileMemoryIsSought) {
  // For one archive at a time.
  plan_.listed_bytes = outline_->memory_bytes;
  space_ = std::make_unique<ArchiveSpace>(plan_, catalog_, *store_, nullptr);
  std::atomic<std::shared_ptr<const ServedArchive>*> read = nullptr;
  std::atomic<bool> ends = false;
  std::jthread call([&] {
    while (!ends) {
      if (std::shared_ptr<const ServedArchive>* const served = read;
          served != nullptr) {
        served->reset();
        read = nullptr;
      }
    }
  });
  for (int i = 0; i < 100; ++i) {
    catalog_.Publish(OpenDocs());
    std::shared_ptr<const ServedArchive> served = catalog_.FindOpen("docs");
    catalog_.RemoveAllBut([](const ArchiveArgument&) { return false; });
    read = &served;
    while (true) {
      QUIRE_ASSERT_OK_AND_ASSIGN(
          const std::optional<ArchiveSpace::Reservation> held,
          space_->ReserveListed(*outline_));
      if (held.has_value()) {
        break;
      }
    }
    while (read.load() != nullptr) {
    }
  }
  ends = true;
}

}  // namespace
}  // namespace quire
