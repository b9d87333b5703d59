// SPDX-License-Identifier: Apache-2.0
#include "codecs/zstd/decoder/sequence_reader.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <optional>
#include <utility>

#include "absl/base/attributes.h"

#include "codecs/base/endian.h"
#include "codecs/base/instruction_set.h"

namespace quire {
namespace {

struct Cells {
  const SequenceCell* literal_size;
  const SequenceCell* distance;
  const SequenceCell* match_size;
};

// A cell in one register; fields are extracted when needed.
class PackedCell {
 public:
  ABSL_ATTRIBUTE_ALWAYS_INLINE explicit PackedCell(const SequenceCell& cell) {
    std::memcpy(&word_, &cell, sizeof(word_));
  }

  ABSL_ATTRIBUTE_ALWAYS_INLINE size_t base() const {
    return static_cast<uint32_t>(word_);
  }

  ABSL_ATTRIBUTE_ALWAYS_INLINE size_t next_base() const {
    return word_ >> 32 & 0xFFFF;
  }

  ABSL_ATTRIBUTE_ALWAYS_INLINE unsigned bit_count() const {
    return word_ >> 48 & 0xFF;
  }

  ABSL_ATTRIBUTE_ALWAYS_INLINE unsigned extra_bits() const {
    return static_cast<unsigned>(word_ >> 56);
  }

 private:
  uint64_t word_;
};

static_assert(offsetof(SequenceCell, next_base) == 4 &&
              offsetof(SequenceCell, bit_count) == 6 &&
              offsetof(SequenceCell, extra_bits) == 7);

// Addresses of matches as numbers: a match is not always in the object that its
// distance is counted from.
struct Addresses {
  explicit Addresses(const CopySpace& space)
      : text(reinterpret_cast<uintptr_t>(space.output.data())),
        to_dictionary(reinterpret_cast<uintptr_t>(space.dictionary.data()) +
                      space.dictionary.size() - text),
        dictionary_size(space.dictionary.size()) {}

  uintptr_t text;
  // Distance from there to the dictionary's end, modulo 2^64.
  uintptr_t to_dictionary;
  size_t dictionary_size;
};

// With more extra bits than this, they and the next states' bits do not fit in
// one refill.
constexpr unsigned kExtraBitsPerRefill =
    BackwardBits::kBitsPerRefill - (9 + 9 + 8);

// Returns the distance for `number`, or 0 if invalid (RFC 8878, section
// 3.1.1.5).
ABSL_ATTRIBUTE_ALWAYS_INLINE inline size_t ResolveDistance(
    size_t number, bool has_literals, std::array<size_t, 3>& recent) {
  if (number > 3) [[likely]] {
    recent[2] = recent[1];
    recent[1] = recent[0];
    return recent[0] = number - 3;
  }
  const size_t index = has_literals ? number - 1 : number;
  if (index == 0) {
    return recent[0];
  }
  // No variable index: it would keep `recent` out of registers.
  const size_t distance = index == 1   ? recent[1]
                          : index == 2 ? recent[2]
                                       : recent[0] - 1;
  if (index != 1) {
    recent[2] = recent[1];
  }
  recent[1] = recent[0];
  return recent[0] = distance;
}

// Fills `sequence` and prefetches its match. Returns false if the match is not
// within dictionary and text.
ABSL_ATTRIBUTE_ALWAYS_INLINE inline bool Place(size_t literal_size,
                                               size_t match_size,
                                               size_t distance, size_t position,
                                               const Addresses& addresses,
                                               CopySequence& sequence) {
  if (distance - 1 >= position + addresses.dictionary_size) [[unlikely]] {
    return false;
  }
  // No branch: the outcome is unpredictable.
  const uintptr_t if_in_dictionary = distance > position ? ~uintptr_t{0} : 0;
  const uintptr_t address = addresses.text + position - distance +
                            (addresses.to_dictionary & if_in_dictionary);
  // In the dictionary, the distance from the match's end to the dictionary's
  // must be large enough.
  constexpr size_t kMore = kCopyExcess - kCopyDistanceMin;
  const auto clearance = static_cast<ptrdiff_t>(
      distance - ((position + match_size + kMore) & if_in_dictionary));
  const bool is_careful = clearance < ptrdiff_t{kCopyDistanceMin};
  // NOLINTNEXTLINE(performance-no-int-to-ptr): into one of two texts.
  sequence.match = reinterpret_cast<const uint8_t*>(address);
  sequence.literal_size =
      static_cast<uint32_t>(literal_size) | uint32_t{is_careful} << 31;
  sequence.match_size = static_cast<uint32_t>(match_size);
  __builtin_prefetch(sequence.match);
  __builtin_prefetch(sequence.match + match_size - 1);
  return true;
}

static_assert(CopySequence::kCarefully == uint32_t{1} << 31);

// Shortens a sequence by `excess` bytes at its end.
void CutSequence(size_t excess, CopySequence& sequence) {
  const size_t from_match = std::min<size_t>(excess, sequence.match_size);
  sequence.match_size -= static_cast<uint32_t>(from_match);
  sequence.literal_size -= static_cast<uint32_t>(excess - from_match);
  if (sequence.match_size == 0) {
    // Its address may now be after the text: do not even compute it.
    sequence.literal_size |= CopySequence::kCarefully;
  }
}

// Fields of a sequence before its distance is resolved.
struct Numbers {
  size_t literal_size;
  size_t distance;
  size_t match_size;
};

// Reads the next sequence and advances `state`. Returns false if there is none,
// or if bits remain after the last.
ABSL_ATTRIBUTE_ALWAYS_INLINE inline bool ReadNumbers(
    const Cells& cells, SequenceReader::State& state, Numbers& numbers) {
  const PackedCell literal(cells.literal_size[state.literal_size]);
  const PackedCell distant(cells.distance[state.distance]);
  const PackedCell match(cells.match_size[state.match_size]);
  if (!state.bits.Refill()) {
    return false;
  }
  numbers = {.literal_size = literal.base(),
             .distance = distant.base(),
             .match_size = match.base()};
  const unsigned two_extra =
      static_cast<unsigned>(distant.extra_bits() + match.extra_bits());
  const unsigned extra_bits = two_extra + literal.extra_bits();
  if (extra_bits <= kExtraBitsPerRefill) [[likely]] {
    numbers.distance += state.bits.Peek(0, distant.extra_bits());
    numbers.match_size +=
        state.bits.Peek(distant.extra_bits(), match.extra_bits());
    numbers.literal_size += state.bits.Peek(two_extra, literal.extra_bits());
    state.bits.Skip(extra_bits);
  } else {
    numbers.distance += state.bits.Read(distant.extra_bits());
    numbers.match_size += state.bits.Read(match.extra_bits());
    if (!state.bits.Refill()) {
      return false;
    }
    numbers.literal_size += state.bits.Read(literal.extra_bits());
  }
  --state.left;
  if (state.left == 0) [[unlikely]] {
    return state.bits.UnreadBits() == 0;
  }
  const unsigned two =
      static_cast<unsigned>(literal.bit_count() + match.bit_count());
  state.literal_size =
      literal.next_base() + state.bits.Peek(0, literal.bit_count());
  state.match_size = match.next_base() +
                     state.bits.Peek(literal.bit_count(), match.bit_count());
  state.distance =
      distant.next_base() + state.bits.Peek(two, distant.bit_count());
  state.bits.Skip(two + distant.bit_count());
  return true;
}

// Returns the number of sequences read; none if they are malformed.
ABSL_ATTRIBUTE_ALWAYS_INLINE inline std::optional<size_t> ReadSequences(
    const Cells& cells, const Addresses& addresses,
    SequenceReader::State& shared_state, SequenceProgress& progress,
    CopySequence* batch) {
  // A copy in registers.
  SequenceReader::State state = shared_state;
  size_t position = progress.position;
  size_t literal_count = progress.literal_count;
  const size_t count = std::min(state.left, SequenceReader::kBatchSizeMax);
  size_t read = 0;
  while (read < count) {
    Numbers numbers;
    if (!ReadNumbers(cells, state, numbers)) [[unlikely]] {
      return std::nullopt;
    }
    const size_t distance = ResolveDistance(
        numbers.distance, numbers.literal_size > 0, state.recent);
    if (numbers.literal_size > literal_count ||
        !Place(numbers.literal_size, numbers.match_size, distance,
               position + numbers.literal_size, addresses, batch[read]))
        [[unlikely]] {
      return std::nullopt;
    }
    literal_count -= numbers.literal_size;
    position += numbers.literal_size + numbers.match_size;
    ++read;
    if (position >= progress.wanted_end) [[unlikely]] {
      break;
    }
  }
  if (position > progress.position_max) {
    return std::nullopt;
  }
  if (position > progress.wanted_end) {
    CutSequence(position - progress.wanted_end, batch[read - 1]);
    position = progress.wanted_end;
  }
  progress.position = position;
  progress.literal_count = literal_count;
  shared_state = state;
  return read;
}

std::optional<size_t> ReadPlain(const Cells& cells, const Addresses& addresses,
                                SequenceReader::State& state,
                                SequenceProgress& progress,
                                CopySequence* batch) {
  return ReadSequences(cells, addresses, state, progress, batch);
}

#if defined(QUIRE_HAS_CLONES)
QUIRE_BMI2 std::optional<size_t> ReadBmi2(const Cells& cells,
                                          const Addresses& addresses,
                                          SequenceReader::State& state,
                                          SequenceProgress& progress,
                                          CopySequence* batch) {
  return ReadSequences(cells, addresses, state, progress, batch);
}
#else
constexpr auto ReadBmi2 = ReadPlain;
#endif

// Reads the number of sequences from the front of `section`; returns the size
// of that number in bytes, or 0 if it is malformed or unusual.
size_t ReadSequenceCount(ByteView section, size_t& count) {
  constexpr size_t kTwoBytesMin = 0x80;
  constexpr size_t kThreeBytes = 0xFF;
  constexpr size_t kThreeBytesBase = 0x7F00;
  if (section.empty()) {
    return 0;
  }
  const size_t first = section[0];
  if (first < kTwoBytesMin) {
    count = first;
    return 1;
  }
  const size_t size = first < kThreeBytes ? 2 : 3;
  if (section.size() < size) {
    return 0;
  }
  count = size == 2 ? (first - kTwoBytesMin) << 8 | section[1]
                    : kThreeBytesBase + LoadLittleEndian<uint16_t>(&section[1]);
  return count == 0 ? 0 : size;
}

}  // namespace

void SequenceReader::Reset() {
  literal_size_table_.Reset();
  distance_table_.Reset();
  match_size_table_.Reset();
  state_.recent = {1, 4, 8};
}

bool SequenceReader::Open(ByteView section) {
  const size_t count_size = ReadSequenceCount(section, state_.left);
  if (count_size == 0) {
    return false;
  }
  section = section.subspan(count_size);
  if (state_.left == 0) {
    return section.empty();
  }
  if (section.empty() || (section.front() & 3) != 0) {
    return false;
  }
  const unsigned modes = section.front();
  section = section.subspan(1);
  for (const auto& [table, shift] :
       {std::pair{&literal_size_table_, 6}, std::pair{&distance_table_, 4},
        std::pair{&match_size_table_, 2}}) {
    const std::optional<size_t> size = table->Read(modes >> shift & 3, section);
    if (!size.has_value()) {
      return false;
    }
    section = section.subspan(*size);
  }
  if (!state_.bits.Open(section)) {
    return false;
  }
  state_.literal_size = state_.bits.Read(literal_size_table_.log());
  state_.distance = state_.bits.Read(distance_table_.log());
  state_.match_size = state_.bits.Read(match_size_table_.log());
  return true;
}

bool SequenceReader::ReadBatch(const CopySpace& space,
                               SequenceProgress& progress) {
  const Cells cells = {.literal_size = literal_size_table_.cells(),
                       .distance = distance_table_.cells(),
                       .match_size = match_size_table_.cells()};
  const Addresses addresses(space);
  const auto read = HasBmi2() ? &ReadBmi2 : &ReadPlain;
  const std::optional<size_t> size =
      read(cells, addresses, state_, progress, batch_.data());
  batch_size_ = size.value_or(0);
  return size.has_value();
}

}  // namespace quire
