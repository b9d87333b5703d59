// SPDX-License-Identifier: Apache-2.0
#ifndef QUIRE_CODECS_RLZ_PARSE_SEQUENCE_PRICES_H_
#define QUIRE_CODECS_RLZ_PARSE_SEQUENCE_PRICES_H_

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "codecs/base/bytes.h"
#include "codecs/rlz/parse/recent_distances.h"
#include "codecs/rlz/parse/sequence.h"

namespace quire {

// Lengths and distances are coded by classes, each with extra bits (RFC 8878,
// section 3.1.1.3.2.1).
inline constexpr size_t kLiteralRunClassCount = 36;
inline constexpr size_t kMatchLengthClassCount = 53;
inline constexpr size_t kDistanceClassCount = 32;
inline constexpr uint32_t kMatchLengthMin = 3;

// Runs and lengths are in bytes. ...ExtraBits() returns the number of bits
// after the code of the class. REQUIRES: the class is below its ...ClassCount.
uint32_t LiteralRunClass(uint32_t literal_run);
uint32_t LiteralRunExtraBits(uint32_t run_class);
// REQUIRES: match_length >= kMatchLengthMin.
uint32_t MatchLengthClass(uint32_t match_length);
uint32_t MatchLengthExtraBits(uint32_t length_class);

// Class of a distance in full; also the number of its extra bits.
inline uint32_t DistanceClass(uint32_t distance) {
  return static_cast<uint32_t>(
             std::bit_width(static_cast<uint64_t>(distance) + 3)) -
         1;
}

// Class of a distance that RecentDistances knows by a number from 1 to 3.
inline uint32_t RecentDistanceClass(uint32_t number) {
  return number == 1 ? 0 : 1;
}

// Counts of each literal and class in a parse.
struct SequenceStatistics {
  std::array<uint32_t, 256> literals = {};
  std::array<uint32_t, kLiteralRunClassCount> literal_runs = {};
  std::array<uint32_t, kMatchLengthClassCount> match_lengths = {};
  std::array<uint32_t, kDistanceClassCount> distances = {};

  // Counts a step whose literals begin at `literals_at`. Updates `recent`.
  void Add(const uint8_t* literals_at, const Sequence& sequence,
           RecentDistances& recent);
};

// Statistics of a parse of typical text, without literals: for prices before
// the first parse. Distances depend on the dictionary's size.
SequenceStatistics TypicalStatistics(uint64_t dictionary_size);

// Prices of steps, in 1/256 bit, if literals and classes are coded by their
// counts in a parse. An unused one costs as much as half a use, so that all are
// comparable. Integers only: equal on every machine. Thread-compatible.
class SequencePrices {
 public:
  static constexpr size_t kMatchLengthsSize = 136;

  // Call it first; replaces all prices.
  void Set(const SequenceStatistics& statistics);

  int32_t Literal(uint8_t byte) const { return literals_[byte]; }

  int32_t LiteralRun(uint32_t run) const {
    return run < kTableSize ? literal_runs_[run] : LongLiteralRun(run);
  }

  int32_t MatchLength(uint32_t length) const {
    return length < kTableSize ? match_lengths_[length] : LongMatch(length);
  }

  // Sum over all literals and classes that a parse has, with their extra bits.
  int64_t Total(const SequenceStatistics& statistics) const;

  // MatchLength() of the lengths below kMatchLengthsSize.
  const int32_t* MatchLengths() const { return match_lengths_.data(); }

  int32_t Distance(uint32_t distance) const {
    return distances_[DistanceClass(distance)];
  }

  int32_t RecentDistance(uint32_t number) const {
    return distances_[RecentDistanceClass(number)];
  }

 private:
  static constexpr size_t kTableSize = kMatchLengthsSize;

  int32_t LongLiteralRun(uint32_t run) const {
    return literal_run_classes_[LiteralRunClass(run)];
  }

  int32_t LongMatch(uint32_t length) const {
    return match_length_classes_[MatchLengthClass(length)];
  }

  std::array<int32_t, 256> literals_ = {};
  std::array<int32_t, kLiteralRunClassCount> literal_run_classes_ = {};
  std::array<int32_t, kMatchLengthClassCount> match_length_classes_ = {};
  std::array<int32_t, kDistanceClassCount> distances_ = {};
  std::array<int32_t, kTableSize> literal_runs_ = {};
  std::array<int32_t, kTableSize> match_lengths_ = {};
};

}  // namespace quire

#endif  // QUIRE_CODECS_RLZ_PARSE_SEQUENCE_PRICES_H_
