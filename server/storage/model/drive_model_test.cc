// SPDX-License-Identifier: GPL-3.0-or-later
//
// Modelled drives against data of the real ones: the RLZ paper ("Access Time
// Tradeoffs in Archive Compression", Table 1 and section 4) and data sheets.
#include "server/storage/model/drive_model.h"

#include <algorithm>
#include <memory>
#include <random>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "server/storage/model/drive_presets.h"
#include "server/storage/model/hard_disk_model.h"
#include "server/storage/model/solid_state_model.h"
#include "testing/base/status_matchers.h"

namespace quire {
namespace {

using ::testing::HasSubstr;

constexpr uint64_t kSmallExtent = uint64_t{13} << 29;  // 6.5 GiB
constexpr size_t kQueryCount = 10'000;

double Seconds(DriveTime time) {
  return std::chrono::duration<double>(time).count();
}

// Queries like the paper's: anywhere in the extent, 8 to 16 KiB, one in four
// over two blocks.
std::vector<DriveCommand> RandomQueries(uint64_t extent_size_bytes,
                                        size_t count, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<DriveCommand> queries;
  for (size_t i = 0; i < count; ++i) {
    const uint64_t blocks = random() % 4 == 0 ? 2 : 1;
    queries.push_back({.id = i,
                       .address = random() % (extent_size_bytes - (1 << 16)),
                       .size_bytes = static_cast<uint32_t>(
                           blocks * (8192 + random() % 8192))});
  }
  return queries;
}

void SortByAddress(std::vector<DriveCommand>& queries) {
  std::sort(queries.begin(), queries.end(),
            [](const DriveCommand& a, const DriveCommand& b) {
              return a.address < b.address;
            });
}

// Keeps `depth` commands in the drive; returns when the last one ended.
DriveTime RunAll(DriveModel& drive, const std::vector<DriveCommand>& commands,
                 size_t depth) {
  DriveTime now{0};
  size_t next = 0;
  std::vector<bool> ended(commands.size());
  for (size_t count = 0; count < commands.size();) {
    for (; next < commands.size() && drive.size() < depth; ++next) {
      DriveCommand command = commands[next];
      command.id = next;
      drive.Submit(now, command);
    }
    const DriveTime before = now;
    now = drive.NextEnd().value();
    EXPECT_GE(now, before);
    for (const uint64_t id : drive.Advance(now)) {
      EXPECT_FALSE(ended[id]);
      ended[id] = true;
      ++count;
    }
  }
  EXPECT_EQ(drive.size(), 0);
  EXPECT_FALSE(drive.NextEnd().has_value());
  return now;
}

double RatePerSecond(DriveModel& drive,
                     const std::vector<DriveCommand>& commands, size_t depth) {
  return static_cast<double>(commands.size()) /
         Seconds(RunAll(drive, commands, depth));
}

#define EXPECT_WITHIN(value, expected, share) \
  EXPECT_NEAR(value, expected, (expected) * (share))

TEST(DiskLayoutTest, HasTheDrivesSizeAndSeeks) {
  const DiskLayout layout{DiskGeometry()};
  EXPECT_WITHIN(static_cast<double>(layout.capacity_size_bytes()), 5e12, 0.01);
  EXPECT_EQ(layout.SeekMs(0U), 0);
  EXPECT_EQ(layout.SeekMs(1U), 1.0);
  EXPECT_WITHIN(layout.SeekMs(100U), 2.10, 0.01);
  EXPECT_WITHIN(layout.SeekMs(500U), 2.34, 0.01);
  EXPECT_WITHIN(layout.SeekMs(10'000U), 3.88, 0.01);
  EXPECT_WITHIN(layout.SeekMs(412'000U), 19.0, 0.001);
  std::mt19937_64 random(1);
  double sum = 0;
  for (int i = 0; i < 100'000; ++i) {
    const DiskPlace a = layout.Find(random() % layout.capacity_size_bytes());
    const DiskPlace b = layout.Find(random() % layout.capacity_size_bytes());
    EXPECT_EQ(layout.SeekMs(a, b), layout.SeekMs(b, a));
    sum += layout.SeekMs(a, b);
  }
  EXPECT_WITHIN(sum / 100'000, 9.3, 0.03);
}

TEST(DiskLayoutTest, PlacesGoOnWithoutAGap) {
  const DiskLayout layout{DiskGeometry()};
  const DiskPlace first = layout.Find(0);
  EXPECT_EQ(first.cylinder, 0);
  EXPECT_EQ(first.left_size_bytes, first.track_size_bytes);
  const auto track = static_cast<uint64_t>(first.track_size_bytes);
  EXPECT_EQ(layout.Find(track - 1).head, 0);
  EXPECT_EQ(layout.Find(track - 1).left_size_bytes, 1);
  EXPECT_EQ(layout.Find(track).head, 1);
  EXPECT_EQ(layout.Find(8 * track).cylinder, 1);
  EXPECT_EQ(layout.Find(8 * track).head, 0);
  const DiskPlace last = layout.Find(layout.capacity_size_bytes() - 1);
  EXPECT_EQ(last.head, 7);
  EXPECT_EQ(last.left_size_bytes, 1);
  EXPECT_WITHIN(last.track_size_bytes, 0.93e6, 0.001);
}

// Results of a reference simulation and of the paper's sections 3 and 4.
struct Expected {
  const char* name;
  uint64_t extent_size_bytes;  // 0: all of the drive
  bool sorted;
  size_t depth;
  double per_second;
};

class HardDiskRateTest : public ::testing::TestWithParam<Expected> {};

TEST_P(HardDiskRateTest, IsWhatIsKnownOfTheDrive) {
  const Expected& expected = GetParam();
  HardDiskModel drive{HardDiskOptions()};
  std::vector<DriveCommand> queries = RandomQueries(
      expected.extent_size_bytes == 0 ? drive.capacity_size_bytes()
                                      : expected.extent_size_bytes,
      kQueryCount, 7);
  if (expected.sorted) {
    SortByAddress(queries);
  }
  EXPECT_WITHIN(RatePerSecond(drive, queries, expected.depth),
                expected.per_second, 0.10);
}

INSTANTIATE_TEST_SUITE_P(
    Table, HardDiskRateTest,
    ::testing::Values(Expected{"RandomSmall", kSmallExtent, false, 1, 125},
                      Expected{"RandomWhole", 0, false, 1, 67},
                      Expected{"QueueSmall", kSmallExtent, false, 32, 325},
                      Expected{"QueueWhole", 0, false, 32, 145},
                      Expected{"SortedSmall", kSmallExtent, true, 1, 284},
                      Expected{"SortedWhole", 0, true, 1, 127},
                      Expected{"SortedSmall8", kSmallExtent, true, 8, 427},
                      Expected{"SortedWhole8", 0, true, 8, 238},
                      Expected{"SortedSmall32", kSmallExtent, true, 32, 489},
                      Expected{"SortedWhole32", 0, true, 32, 287}),
    [](const auto& test) { return test.param.name; });

TEST(HardDiskModelTest, WeakFirmwareIsSlowerInItsQueueAlone) {
  const std::vector<DriveCommand> queries =
      RandomQueries(kSmallExtent, kQueryCount, 8);
  QUIRE_ASSERT_OK_AND_ASSIGN(const auto good, MakeDriveModel("wd-red"));
  QUIRE_ASSERT_OK_AND_ASSIGN(const auto weak, MakeDriveModel("wd-red-weak"));
  EXPECT_EQ(RunAll(*good, queries, 1), RunAll(*weak, queries, 1));
  QUIRE_ASSERT_OK_AND_ASSIGN(const auto good_32, MakeDriveModel("wd-red"));
  QUIRE_ASSERT_OK_AND_ASSIGN(const auto weak_32, MakeDriveModel("wd-red-weak"));
  EXPECT_GT(RatePerSecond(*good_32, queries, 32),
            1.15 * RatePerSecond(*weak_32, queries, 32));
}

TEST(HardDiskModelTest, ReadsInOrderStream) {
  struct Case {
    size_t depth;
    uint32_t size_bytes;
  };

  // One at a time each small read would cost its command.
  for (const Case& c : {Case{1, 1 << 20}, Case{8, 1 << 14}}) {
    HardDiskModel drive{HardDiskOptions()};
    const uint64_t count = (uint64_t{1} << 28) / c.size_bytes;
    std::vector<DriveCommand> reads;
    for (uint64_t i = 0; i < count; ++i) {
      reads.push_back(
          {.id = i, .address = i * c.size_bytes, .size_bytes = c.size_bytes});
    }
    const double limit_ms = drive.SequentialMs(uint64_t{1} << 28);
    EXPECT_WITHIN(Seconds(RunAll(drive, reads, c.depth)) * 1e3, limit_ms, 0.03)
        << c.depth;
    EXPECT_WITHIN((uint64_t{1} << 28) / 1e3 / limit_ms, 170, 0.02);
  }
}

TEST(HardDiskModelTest, ReadAheadEndsAtItsLimit) {
  const HardDiskOptions options;
  HardDiskModel drive(options);
  const auto read = [&drive](DriveTime now, uint64_t address, uint32_t size) {
    drive.Submit(now, {.id = 1, .address = address, .size_bytes = size});
    const DriveTime end = drive.NextEnd().value();
    EXPECT_EQ(drive.Advance(end).size(), 1);
    return end;
  };
  const DriveTime first = read(DriveTime(0), 0, 4096);
  // After one second 2 MiB are read ahead; 8 MiB more must be read.
  const DriveTime later = first + std::chrono::seconds(1);
  const DriveTime buffered = read(later, 4096, 1 << 20);
  EXPECT_LT(Seconds(buffered - later), 0.0005);
  const DriveTime rest = read(buffered, 4096 + (1 << 20), 8 << 20);
  EXPECT_WITHIN(Seconds(rest - buffered) * 1e3, drive.SequentialMs(7 << 20),
                0.2);
}

TEST(HardDiskModelTest, NothingStarvesInTheQueue) {
  HardDiskModel drive{HardDiskOptions()};
  std::mt19937_64 random(3);
  DriveTime now{0};
  uint64_t next = 1;
  // One far away, and a constant supply of near ones.
  drive.Submit(now,
               {.id = 0, .address = 4'000'000'000'000, .size_bytes = 4096});
  bool ended = false;
  while (!ended) {
    while (drive.size() < 31) {
      drive.Submit(now, {.id = next++,
                         .address = random() % (uint64_t{1} << 30),
                         .size_bytes = 8192});
    }
    now = drive.NextEnd().value();
    for (const uint64_t id : drive.Advance(now)) {
      ended = ended || id == 0;
    }
    ASSERT_LT(next, 5'000);
  }
}

TEST(HardDiskModelTest, AddressesWrapAtTheCapacity) {
  HardDiskModel drive{HardDiskOptions()};
  const uint64_t capacity = drive.capacity_size_bytes();
  RunAll(drive,
         {{.id = 0, .address = capacity - 1, .size_bytes = 1 << 20},
          {.id = 1, .address = capacity + 5, .size_bytes = 1},
          {.id = 2, .address = ~uint64_t{0}, .size_bytes = UINT32_MAX}},
         3);
}

TEST(HardDiskModelTest, TheSameCallsGiveTheSameTimes) {
  const std::vector<DriveCommand> queries =
      RandomQueries(kSmallExtent, 1'000, 9);
  HardDiskModel a{HardDiskOptions()};
  HardDiskModel b{HardDiskOptions()};
  EXPECT_EQ(RunAll(a, queries, 32), RunAll(b, queries, 32));
}

TEST(DrivePresetsTest, Table1) {
  QUIRE_ASSERT_OK_AND_ASSIGN(const auto disk, MakeDriveModel("table1-hdd"));
  std::vector<DriveCommand> queries =
      RandomQueries(disk->capacity_size_bytes(), kQueryCount, 10);
  for (DriveCommand& query : queries) {
    query.size_bytes = 512;
  }
  EXPECT_WITHIN(1e3 / RatePerSecond(*disk, queries, 1), 8.5, 0.02);
  QUIRE_ASSERT_OK_AND_ASSIGN(const auto scan, MakeDriveModel("table1-hdd"));
  std::vector<DriveCommand> scanned;
  for (uint64_t i = 0; i < 1'000; ++i) {
    scanned.push_back({.id = i, .address = i << 20, .size_bytes = 1 << 20});
  }
  EXPECT_WITHIN(RatePerSecond(*scan, scanned, 1), 150, 0.02);
}

TEST(DrivePresetsTest, SolidStateDrivesReadSideBySide) {
  struct Case {
    const char* name;
    double latency_ms;
    double streaming_mb;
  };

  for (const Case& c :
       {Case{"evo-850", 0.25, 540}, Case{"table1-ssd", 0.12, 1048.6}}) {
    QUIRE_ASSERT_OK_AND_ASSIGN(const auto one, MakeDriveModel(c.name));
    std::vector<DriveCommand> queries =
        RandomQueries(one->capacity_size_bytes(), kQueryCount, 11);
    for (DriveCommand& query : queries) {
      query.size_bytes = 512;
    }
    EXPECT_WITHIN(1e3 / RatePerSecond(*one, queries, 1), c.latency_ms, 0.02);
    QUIRE_ASSERT_OK_AND_ASSIGN(const auto many, MakeDriveModel(c.name));
    EXPECT_WITHIN(RatePerSecond(*many, queries, 32), 24e3 / c.latency_ms, 0.03);
    QUIRE_ASSERT_OK_AND_ASSIGN(const auto scan, MakeDriveModel(c.name));
    for (DriveCommand& query : queries) {
      query.size_bytes = 1 << 20;
    }
    EXPECT_WITHIN(RatePerSecond(*scan, queries, 32) * 1.048576, c.streaming_mb,
                  0.02);
  }
}

TEST(DrivePresetsTest, AnUnknownNameIsToldTheKnownOnes) {
  EXPECT_THAT(MakeDriveModel("floppy"),
              FailsWith(absl::StatusCode::kInvalidArgument,
                        HasSubstr("there are wd-red, wd-red-weak")));
  for (const DrivePreset& preset : DrivePresets()) {
    QUIRE_EXPECT_OK(MakeDriveModel(preset.name));
  }
}

TEST(HardDiskModelTest, UrgentCommandsGoFirstWhereThereArePriorities) {
  for (const bool priorities : {false, true}) {
    HardDiskOptions options;
    options.priorities = priorities;
    HardDiskModel drive(options);
    EXPECT_EQ(drive.has_priorities(), priorities);
    for (uint64_t id = 0; id < 20; ++id) {
      drive.Submit(DriveTime(0), {.id = id,
                                  .address = id << 20,
                                  .size_bytes = 4096,
                                  .urgent = id == 19});
    }
    std::vector<uint64_t> order;
    while (const auto end = drive.NextEnd()) {
      for (const uint64_t id : drive.Advance(*end)) {
        order.push_back(id);
      }
    }
    ASSERT_EQ(order.size(), 20);
    // The first has begun when the others arrive.
    EXPECT_EQ(order[0], 0);
    EXPECT_EQ(order[1] == 19, priorities);
  }
}

}  // namespace
}  // namespace quire
