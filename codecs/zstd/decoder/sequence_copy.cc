// SPDX-License-Identifier: Apache-2.0
#include "codecs/zstd/decoder/sequence_copy.h"

#include <algorithm>
#include <cstring>
#include <functional>

namespace quire {
namespace {

constexpr size_t kStep = 16;
static_assert(kCopyExcess >= 2 * kStep && kCopyDistanceMin >= kStep);

// Copies exactly `size` bytes, from any distance before `to`.
void CopyText(const uint8_t* from, uint8_t* to, size_t size) {
  const auto distance = static_cast<size_t>(to - from);
  // A repeating text also repeats at multiples of the distance: use one wide
  // enough for wide steps.
  const size_t wide = (kStep + distance - 1) / distance * distance;
  size_t done = 0;
  while (done < size && done < wide - distance) {
    to[done] = from[done];
    ++done;
  }
  for (; size - done >= kStep; done += kStep) {
    std::memcpy(to + done, to + done - wide, kStep);
  }
  for (; done < size; ++done) {
    to[done] = from[done];
  }
}

void CopyMatch(const uint8_t* from, const CopySpace& space, uint8_t* to,
               size_t size) {
  const uint8_t* const dictionary_end =
      space.dictionary.data() + space.dictionary.size();
  // std::less is defined for pointers into different objects.
  const bool is_in_dictionary = !std::less<>()(from, space.dictionary.data()) &&
                                std::less<>()(from, dictionary_end);
  if (is_in_dictionary) {
    const size_t part =
        std::min(size, static_cast<size_t>(dictionary_end - from));
    std::memcpy(to, from, part);
    to += part;
    size -= part;
    from = space.output.data();
  }
  if (size > 0) {
    CopyText(from, to, size);
  }
}

}  // namespace

size_t AppendSequences(std::span<const CopySequence> sequences,
                       const CopySpace& space, size_t size,
                       const uint8_t*& literals) {
  uint8_t* to = space.output.data() + size;
  uint8_t* const end = space.output.data() + space.output.size();
  const uint8_t* literal = literals;
  for (const CopySequence& sequence : sequences) {
    const size_t literal_size = sequence.literal_size;
    const size_t match_size = sequence.match_size;
    // A careful sequence fails this test: its literal_size is huge.
    if (literal_size + match_size + kCopyExcess > static_cast<size_t>(end - to))
        [[unlikely]] {
      const size_t exact_size = literal_size & ~CopySequence::kCarefully;
      if (exact_size > 0) {
        std::memcpy(to, literal, exact_size);
      }
      literal += exact_size;
      to += exact_size;
      CopyMatch(sequence.match, space, to, match_size);
      to += match_size;
      continue;
    }
    std::memcpy(to, literal, kStep);
    if (literal_size > kStep) [[unlikely]] {
      for (size_t done = kStep; done < literal_size; done += kStep) {
        std::memcpy(to + done, literal + done, kStep);
      }
    }
    literal += literal_size;
    to += literal_size;
    const uint8_t* const match = sequence.match;
    std::memcpy(to, match, kStep);
    std::memcpy(to + kStep, match + kStep, kStep);
    for (size_t done = 2 * kStep; done < match_size; done += 2 * kStep) {
      std::memcpy(to + done, match + done, kStep);
      std::memcpy(to + done + kStep, match + done + kStep, kStep);
    }
    to += match_size;
  }
  literals = literal;
  return static_cast<size_t>(to - space.output.data());
}

}  // namespace quire
