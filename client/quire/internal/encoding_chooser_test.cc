// SPDX-License-Identifier: Apache-2.0
#include "client/quire/internal/encoding_chooser.h"

#include <algorithm>
#include <array>
#include <map>
#include <random>

#include "gtest/gtest.h"

namespace quire {
namespace {

constexpr AnswerEncoding kIdentity = AnswerEncoding::kIdentity;
constexpr AnswerEncoding kFsst = AnswerEncoding::kFsst;
constexpr AnswerEncoding kStored = AnswerEncoding::kStored;

struct SimulatedEncoding {
  double rate = 1;
  // At the server and at the client together.
  double coding_byte_ns = 0;
  double decode_byte_ns = 0;
  // Text that is coded with each answer in addition to its own.
  double surplus_size_bytes = 0;
};

// A connection with the times of the paper's model, with noise.
class Simulation {
 public:
  Simulation() {
    encodings[IndexOf(kFsst)] = {
        .rate = 0.45, .coding_byte_ns = 3.4, .decode_byte_ns = 0.4};
    SetStored(0.5);
    archive.set_symbol_table_hash("1");
    archive.set_codec("rlz");
    archive.set_dictionary_hash("2");
    archive.set_dictionary_size_bytes(16 << 20);
    archive.set_block_size_bytes(65536);
    archive.set_size_bytes(1'000'000'000);
    archive.set_stored_size_bytes(90'000'000);
  }

  void SetStored(double decode_byte_ns) {
    encodings[IndexOf(kStored)] = {.rate = 0.09,
                                   .coding_byte_ns = decode_byte_ns,
                                   .decode_byte_ns = decode_byte_ns,
                                   .surplus_size_bytes = 65536};
  }

  void Start(bool holds_dictionary) {
    chooser.SetPriors(PriorsOf(archive, holds_dictionary, 256 << 20));
  }

  // Returns the mean time of windows of `answer_count` answers in an encoding.
  double MeanNs(AnswerEncoding encoding) const {
    const SimulatedEncoding& e = encodings[IndexOf(encoding)];
    const double coded = mean_size_bytes + e.surplus_size_bytes;
    return answer_ns + coded * e.rate * 1e9 / bytes_per_second +
           coded * e.coding_byte_ns;
  }

  AnswerEncoding Fastest() const {
    return std::min({kIdentity, kFsst, kStored},
                    [this](AnswerEncoding a, AnswerEncoding b) {
                      return MeanNs(a) < MeanNs(b);
                    });
  }

  // Returns the time of all windows divided by their time in the fastest
  // encoding.
  double Run(int window_count) {
    double all_ns = 0;
    double best_ns = 0;
    for (int i = 0; i < window_count; ++i) {
      const AnswerEncoding encoding = chooser.best();
      ++window_counts[encoding];
      const SimulatedEncoding& e = encodings[IndexOf(encoding)];
      WireWindow window{.encoding = encoding};
      window.traffic.answer_count = 48;
      double wire = 0;
      double coded = 0;
      double size = 0;
      for (int answer = 0; answer < 48; ++answer) {
        // Sizes like those of documents: half are small, a few are large.
        const double one =
            std::exponential_distribution<>(1 / mean_size_bytes)(random);
        size += one;
        wire += (one + e.surplus_size_bytes) * e.rate;
        coded += one + e.surplus_size_bytes;
      }
      const double noise = std::uniform_real_distribution<>(0.9, 1.1)(random);
      const double busy_ns =
          noise * (48 * answer_ns + wire * 1e9 / bytes_per_second +
                   coded * e.coding_byte_ns);
      window.traffic.decoded_size_bytes = static_cast<uint64_t>(size);
      window.traffic.wire_size_bytes = static_cast<uint64_t>(wire);
      window.traffic.decode_ns =
          static_cast<uint64_t>(coded * e.decode_byte_ns);
      window.busy_ns = static_cast<uint64_t>(busy_ns);
      all_ns += busy_ns;
      best_ns += busy_ns * MeanNs(Fastest()) / MeanNs(encoding);
      chooser.Take(window);
    }
    return all_ns / best_ns;
  }

  std::array<SimulatedEncoding, kAnswerEncodingCount> encodings;
  v1::ArchiveDescription archive;
  double answer_ns = 80'000;
  double bytes_per_second = 2e9;
  double mean_size_bytes = 20'000;
  EncodingChooser chooser;
  std::map<AnswerEncoding, int> window_counts;
  std::mt19937_64 random{7};
};

constexpr double k100Mbit = 12.5e6;
constexpr double k1Gbit = 125e6;

TEST(EncodingChooserTest, AsksForIdentityUntilItKnowsMore) {
  Simulation simulation;
  simulation.bytes_per_second = k100Mbit;
  EXPECT_EQ(simulation.chooser.best(), kIdentity);
  simulation.Run(100);
  EXPECT_EQ(simulation.window_counts[kIdentity], 100);
}

TEST(EncodingChooserTest, StaysWithIdentityOnLoopback) {
  for (const double answer_ns : {2'000.0, 80'000.0}) {
    for (const double size : {100.0, 20'000.0, 262'144.0}) {
      Simulation simulation;
      simulation.answer_ns = answer_ns;
      simulation.mean_size_bytes = size;
      simulation.bytes_per_second = 2e9;
      simulation.Start(true);
      ASSERT_EQ(simulation.Fastest(), kIdentity);
      simulation.Run(1000);
      // No encoding is tried out.
      EXPECT_EQ(simulation.window_counts[kIdentity], 1000) << size;
    }
  }
}

TEST(EncodingChooserTest, FindsWhatIsFastestOnASlowLink) {
  for (const double size : {2'000.0, 20'000.0, 262'144.0}) {
    for (const double speed : {k100Mbit / 10, k100Mbit, k1Gbit}) {
      Simulation simulation;
      simulation.bytes_per_second = speed;
      simulation.mean_size_bytes = size;
      simulation.answer_ns = 10'000;
      simulation.Start(true);
      simulation.Run(50);
      const double ratio = simulation.Run(500);
      EXPECT_LT(ratio, 1.12) << size << " bytes at " << speed;
      EXPECT_LT(simulation.MeanNs(simulation.chooser.best()),
                1.12 * simulation.MeanNs(simulation.Fastest()));
    }
  }
}

TEST(EncodingChooserTest, ReadsLargeAnswersStoredOnASlowLink) {
  Simulation simulation;
  simulation.bytes_per_second = k100Mbit;
  simulation.mean_size_bytes = 262'144;
  simulation.Start(true);
  simulation.Run(50);
  EXPECT_EQ(simulation.chooser.best(), kStored);
}

// Decoding xz takes about thirty times as long as rlz.
TEST(EncodingChooserTest, ChoosesSlowCodecsOnlyOnLinksThatAreSlower) {
  const auto xz = [](double bytes_per_second) {
    Simulation simulation;
    simulation.archive.set_codec("xz");
    simulation.archive.clear_dictionary_hash();
    simulation.SetStored(10);
    simulation.bytes_per_second = bytes_per_second;
    simulation.mean_size_bytes = 262'144;
    simulation.Start(true);
    return simulation;
  };
  Simulation fast = xz(k1Gbit);
  fast.Run(40);
  EXPECT_EQ(fast.window_counts[kStored], 0);
  Simulation slow = xz(k100Mbit / 10);
  slow.Run(40);
  EXPECT_EQ(slow.chooser.best(), kStored);
  // The faster link is slow enough where decoding is fast.
  Simulation rlz = xz(k1Gbit);
  rlz.archive.set_codec("rlz");
  rlz.SetStored(0.5);
  rlz.Start(true);
  rlz.Run(40);
  EXPECT_EQ(rlz.chooser.best(), kStored);
}

TEST(EncodingChooserTest, FetchesADictionaryOnlyForMuchReading) {
  Simulation simulation;
  simulation.bytes_per_second = k100Mbit;
  simulation.mean_size_bytes = 262'144;
  simulation.encodings[IndexOf(kFsst)].rate = 0.9;
  simulation.Start(false);
  // A window is 12.6 MB; `stored` saves most of it.
  simulation.Run(1);
  EXPECT_EQ(simulation.chooser.best(), kIdentity);
  simulation.Run(30);
  EXPECT_EQ(simulation.chooser.best(), kStored);

  Simulation announced;
  announced.bytes_per_second = k100Mbit;
  announced.mean_size_bytes = 20'000;
  announced.archive.set_block_size_bytes(4096);
  announced.encodings[IndexOf(kStored)].surplus_size_bytes = 4096;
  announced.Start(false);
  announced.Run(8);
  EXPECT_NE(announced.chooser.best(), kStored);
  announced.chooser.Expect(1'000'000'000);
  announced.Run(8);
  EXPECT_EQ(announced.chooser.best(), kStored);
}

TEST(EncodingChooserTest, FollowsALinkThatChangesItsSpeed) {
  Simulation simulation;
  simulation.mean_size_bytes = 262'144;
  simulation.answer_ns = 10'000;
  simulation.bytes_per_second = 10e9;
  simulation.Start(true);
  simulation.Run(300);
  EXPECT_EQ(simulation.chooser.best(), kIdentity);
  for (int i = 0; i < 3; ++i) {
    simulation.bytes_per_second = k100Mbit;
    simulation.Run(20);
    EXPECT_EQ(simulation.chooser.best(), kStored) << i;
    simulation.Run(200);
    simulation.bytes_per_second = 10e9;
    simulation.Run(20);
    EXPECT_EQ(simulation.chooser.best(), kIdentity) << i;
    simulation.Run(200);
  }
}

TEST(EncodingChooserTest, LeavesOutWhatIsNotPossible) {
  Simulation simulation;
  simulation.bytes_per_second = k100Mbit;
  simulation.archive.clear_symbol_table_hash();
  simulation.archive.set_codec("of-tomorrow");
  simulation.Start(true);
  simulation.Run(300);
  EXPECT_EQ(simulation.window_counts[kIdentity], 300);

  Simulation excluded = Simulation();
  excluded.bytes_per_second = k100Mbit;
  excluded.Start(true);
  while (excluded.chooser.best() == kIdentity) {
    excluded.Run(1);
  }
  // A server without encodings always answers in identity.
  const AnswerEncoding first = excluded.chooser.best();
  excluded.chooser.Exclude(first);
  EXPECT_EQ(excluded.chooser.best(), kIdentity);
  excluded.Start(true);
  excluded.Run(300);
  EXPECT_EQ(excluded.window_counts[first], 0);
  EXPECT_NE(excluded.chooser.best(), kIdentity);
  excluded.chooser.Exclude(kIdentity);
  excluded.chooser.Exclude(excluded.chooser.best());
  EXPECT_EQ(excluded.chooser.best(), kIdentity);
}

TEST(EncodingChooserTest, RefusesDictionariesOverTheLimit) {
  v1::ArchiveDescription archive = Simulation().archive;
  const auto may_store = [&](bool holds, uint64_t size_max) {
    return PriorsOf(archive, holds, size_max)[IndexOf(kStored)].is_possible;
  };
  EXPECT_TRUE(may_store(false, 16 << 20));
  EXPECT_FALSE(may_store(false, (16 << 20) - 1));
  EXPECT_TRUE(may_store(true, 0));
}

TEST(EncodingChooserTest, TakesEmptyAnswers) {
  EncodingChooser chooser;
  chooser.SetPriors(PriorsOf(Simulation().archive, true, 1 << 20));
  for (int i = 0; i < 100; ++i) {
    chooser.Take({.encoding = chooser.best(),
                  .busy_ns = 1000,
                  .traffic = {.answer_count = 10}});
    chooser.Take({.encoding = chooser.best()});
  }
  EXPECT_EQ(chooser.best(), kIdentity);
}

}  // namespace
}  // namespace quire
