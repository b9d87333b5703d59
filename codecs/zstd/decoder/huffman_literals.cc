// SPDX-License-Identifier: Apache-2.0
#include "codecs/zstd/decoder/huffman_literals.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "codecs/base/endian.h"
#include "codecs/base/instruction_set.h"
#include "codecs/zstd/decoder/backward_bits.h"

namespace quire {
namespace {

constexpr size_t kStreamCount = 4;
constexpr size_t kJumpTableSize = 6;
// Codes of a table's largest log that one refill provides.
constexpr size_t kSymbolsPerRefill = 5;

// A stream of codes. Unlike BackwardBits it keeps the next code in the highest
// bits and counts shifted bits by the lowest bit set. A step needs nothing
// else, so four streams fit in registers.
struct CodeStream {
  ABSL_ATTRIBUTE_ALWAYS_INLINE bool Open(ByteView stream) {
    const uint8_t top = stream.empty() ? 0 : stream.back();
    if (top == 0) {
      return false;
    }
    begin = stream.data();
    at = begin + stream.size() - sizeof(uint64_t);
    bits = (LoadLittleEndian<uint64_t>(at) | 1) << (std::countl_zero(top) + 1);
    return true;
  }

  ABSL_ATTRIBUTE_ALWAYS_INLINE void Refill() {
    const auto used = static_cast<unsigned>(std::countr_zero(bits));
    at -= used >> 3;
    bits = (LoadLittleEndian<uint64_t>(at) | 1) << (used & 7);
  }

  ABSL_ATTRIBUTE_ALWAYS_INLINE uint8_t Decode(const uint16_t* table,
                                              unsigned shift) {
    const uint16_t entry = table[bits >> shift];
    bits <<= entry & 63;
    return static_cast<uint8_t>(entry >> 8);
  }

  // Number of decodings of kSymbolsPerRefill symbols that need no check of the
  // stream's beginning: each moves by at most one word.
  ABSL_ATTRIBUTE_ALWAYS_INLINE size_t SafeSteps() const {
    return at < begin ? 0 : static_cast<size_t>(at - begin) / sizeof(uint64_t);
  }

  // Decodes `size` symbols, which must be the rest.
  ABSL_ATTRIBUTE_ALWAYS_INLINE bool Finish(const uint16_t* table,
                                           unsigned shift, uint8_t* to,
                                           size_t size) {
    uint8_t* const end = to + size;
    while (to < end) {
      const auto used = static_cast<unsigned>(std::countr_zero(bits));
      if (at - (used >> 3) < begin - BackwardBits::kBytesInFront) {
        return false;
      }
      Refill();
      const size_t count =
          std::min(static_cast<size_t>(end - to), kSymbolsPerRefill);
      for (size_t i = 0; i < count; ++i) {
        *to++ = Decode(table, shift);
      }
    }
    return (at - begin) * 8 + 64 - std::countr_zero(bits) == 0;
  }

  const uint8_t* begin;
  const uint8_t* at;
  uint64_t bits;
};

struct FourStreams {
  CodeStream streams[kStreamCount];
  const uint16_t* table;
  unsigned shift;
};

// `segment` is the text size of each of the first three streams.
ABSL_ATTRIBUTE_ALWAYS_INLINE inline bool DecodeInterleaved(
    const FourStreams& four, MutableByteView out, size_t segment) {
  CodeStream a = four.streams[0];
  CodeStream b = four.streams[1];
  CodeStream c = four.streams[2];
  CodeStream d = four.streams[3];
  const uint16_t* const table = four.table;
  const unsigned shift = four.shift;
  uint8_t* to = out.data();
  const size_t last_segment = out.size() - 3 * segment;
  size_t done = 0;
  for (;;) {
    const size_t steps =
        std::min({a.SafeSteps(), b.SafeSteps(), c.SafeSteps(), d.SafeSteps(),
                  (last_segment - done) / kSymbolsPerRefill});
    if (steps == 0) {
      break;
    }
    uint8_t* const end = to + steps * kSymbolsPerRefill;
    while (to < end) {
      a.Refill();
      b.Refill();
      c.Refill();
      d.Refill();
#pragma GCC unroll 5
      for (size_t i = 0; i < kSymbolsPerRefill; ++i) {
        to[i] = a.Decode(table, shift);
        to[i + segment] = b.Decode(table, shift);
        to[i + 2 * segment] = c.Decode(table, shift);
        to[i + 3 * segment] = d.Decode(table, shift);
      }
      to += kSymbolsPerRefill;
    }
    done += steps * kSymbolsPerRefill;
  }
  return a.Finish(table, shift, to, segment - done) &&
         b.Finish(table, shift, to + segment, segment - done) &&
         c.Finish(table, shift, to + 2 * segment, segment - done) &&
         d.Finish(table, shift, to + 3 * segment, last_segment - done);
}

bool DecodeFourPlain(const FourStreams& four, MutableByteView out,
                     size_t segment) {
  return DecodeInterleaved(four, out, segment);
}

#if defined(QUIRE_HAS_CLONES)
QUIRE_BMI2 bool DecodeFourBmi2(const FourStreams& four, MutableByteView out,
                               size_t segment) {
  return DecodeInterleaved(four, out, segment);
}
#else
constexpr auto DecodeFourBmi2 = DecodeFourPlain;
#endif

}  // namespace

size_t HuffmanLiterals::ReadTable(ByteView stored) {
  log_ = 0;
  Weights weights;
  const size_t size = ReadWeights(stored, weights);
  return size != 0 && BuildTable(weights) ? size : 0;
}

bool HuffmanLiterals::DecodeOne(ByteView stored, MutableByteView out) const {
  CodeStream stream;
  return stream.Open(stored) &&
         stream.Finish(table_.data(), 64 - log_, out.data(), out.size());
}

bool HuffmanLiterals::DecodeFour(ByteView stored, MutableByteView out) const {
  const size_t segment = (out.size() + kStreamCount - 1) / kStreamCount;
  if (stored.size() < kJumpTableSize + kStreamCount ||
      out.size() <= 3 * segment) {
    return false;
  }
  FourStreams four;
  four.table = table_.data();
  four.shift = 64 - log_;
  ByteView rest = stored.subspan(kJumpTableSize);
  for (size_t i = 0; i < kStreamCount; ++i) {
    const size_t size = i + 1 < kStreamCount
                            ? LoadLittleEndian<uint16_t>(&stored[2 * i])
                            : rest.size();
    if (size > rest.size() || !four.streams[i].Open(rest.first(size))) {
      return false;
    }
    rest = rest.subspan(size);
  }
  return HasBmi2() ? DecodeFourBmi2(four, out, segment)
                   : DecodeFourPlain(four, out, segment);
}

size_t HuffmanLiterals::ReadWeights(ByteView stored, Weights& weights) {
  constexpr unsigned kDirectMin = 128;
  constexpr unsigned kFseLog = 6;
  if (stored.empty()) {
    return 0;
  }
  const unsigned header = stored.front();
  stored = stored.subspan(1);
  if (header >= kDirectMin) {
    // Two weights of four bits per byte.
    weights.count = header - kDirectMin + 1;
    const size_t size = (weights.count + 1) / 2;
    if (size > stored.size()) {
      return 0;
    }
    for (unsigned i = 0; i < weights.count; ++i) {
      weights.weights[i] = static_cast<uint8_t>(
          i % 2 == 0 ? stored[i / 2] >> 4 : stored[i / 2] & 15);
    }
    return 1 + size;
  }
  if (header > stored.size()) {
    return 0;
  }
  stored = stored.first(header);
  FseCounts counts;
  const size_t counts_size = ReadFseCounts(stored, kFseLog, kLogMax, counts);
  if (counts_size == 0) {
    return 0;
  }
  std::array<FseStep, size_t{1} << kFseLog> steps;
  BuildFseTable(
      counts, [&](size_t state, const FseStep& step) { steps[state] = step; });
  return ReadFseWeights(stored.subspan(counts_size), counts.log, steps, weights)
             ? 1 + header
             : 0;
}

// Two states alternate, each giving a symbol and then moving. When the bits end
// in a move, the other state's symbol is the last.
bool HuffmanLiterals::ReadFseWeights(ByteView stream, unsigned log,
                                     std::span<const FseStep> steps,
                                     Weights& weights) {
  constexpr unsigned kCountMax = 255;
  BackwardBits bits;
  if (!bits.Open(stream)) {
    return false;
  }
  size_t state = bits.Read(log);
  size_t other = bits.Read(log);
  if (bits.UnreadBits() < 0) {
    return false;
  }
  weights.count = 0;
  for (;;) {
    if (weights.count + 2 > kCountMax || !bits.Refill()) {
      return false;
    }
    const FseStep& step = steps[state];
    weights.weights[weights.count++] = static_cast<uint8_t>(step.symbol);
    state = step.next_base + bits.Read(step.bit_count);
    if (bits.UnreadBits() < 0) {
      weights.weights[weights.count++] =
          static_cast<uint8_t>(steps[other].symbol);
      return true;
    }
    std::swap(state, other);
  }
}

bool HuffmanLiterals::BuildTable(Weights& weights) {
  // Share of the code space for the symbols of each weight.
  std::array<uint32_t, kLogMax + 1> starts = {};
  uint32_t total = 0;
  for (unsigned i = 0; i < weights.count; ++i) {
    const unsigned weight = weights.weights[i];
    if (weight > kLogMax) {
      return false;
    }
    starts[weight] += (1u << weight) >> 1;
    total += (1u << weight) >> 1;
  }
  const auto log = static_cast<unsigned>(std::bit_width(total));
  const uint32_t rest = (1u << log) - total;
  if (total == 0 || log > kLogMax || !std::has_single_bit(rest)) {
    return false;
  }
  const auto last = static_cast<unsigned>(std::bit_width(rest));
  weights.weights[weights.count++] = static_cast<uint8_t>(last);
  starts[last] += rest;
  // The longest codes come in pairs.
  if (starts[1] < 2 || starts[1] % 2 != 0) {
    return false;
  }
  uint32_t start = 0;
  for (unsigned weight = 1; weight <= log; ++weight) {
    start += std::exchange(starts[weight], start);
  }
  for (unsigned i = 0; i < weights.count; ++i) {
    const unsigned weight = weights.weights[i];
    if (weight == 0) {
      continue;
    }
    const uint32_t size = (1u << weight) >> 1;
    std::fill_n(&table_[starts[weight]], size,
                static_cast<uint16_t>(i << 8 | (log + 1 - weight)));
    starts[weight] += size;
  }
  log_ = log;
  return true;
}

}  // namespace quire
