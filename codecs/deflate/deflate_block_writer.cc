// SPDX-License-Identifier: Apache-2.0
#include "codecs/deflate/deflate_block_writer.h"

#include <algorithm>
#include <bit>

#include "codecs/base/endian.h"
#include "codecs/deflate/deflate_tree.h"

namespace quire {
namespace {

constexpr size_t kEndOfBlock = 256;
constexpr size_t kFirstLength = 257;
constexpr size_t kLengthSymbols = 29;
constexpr size_t kStoredSizeMax = 65535;
// Size and inverted size, in bytes.
constexpr size_t kStoredOverhead = 4;
constexpr unsigned kCodeLengthMax = 15;
constexpr unsigned kLengthCodeLengthMax = 7;
// Symbols of the code of code lengths: repeat the last length 3 to 6 times; 3
// to 10 and 11 to 138 zeros.
constexpr size_t kRepeat = 16;
constexpr size_t kFewZeros = 17;
constexpr size_t kManyZeros = 18;
constexpr std::array<uint8_t, 19> kLengthOrder = {
    16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15};
constexpr std::array<uint8_t, 19> kLengthExtraBits = {
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 3, 7};

// RFC 1951, section 3.2.5, by length less 3.
struct LengthTable {
  std::array<uint8_t, 256> symbols = {};  // Less kFirstLength.
  std::array<uint8_t, 256> extra = {};
  std::array<uint8_t, kLengthSymbols> extra_bits = {};
};

constexpr LengthTable MakeLengthTable() {
  LengthTable table;
  size_t length = 0;
  for (size_t symbol = 0; symbol < kLengthSymbols - 1; ++symbol) {
    const size_t bits = symbol < 8 ? 0 : symbol / 4 - 1;
    table.extra_bits[symbol] = static_cast<uint8_t>(bits);
    for (size_t i = 0; i < size_t{1} << bits && length < 256; ++i) {
      table.symbols[length] = static_cast<uint8_t>(symbol);
      table.extra[length] = static_cast<uint8_t>(i);
      ++length;
    }
  }
  table.symbols[255] = kLengthSymbols - 1;
  table.extra[255] = 0;
  return table;
}

constexpr LengthTable kLengths = MakeLengthTable();

constexpr unsigned DistanceExtraBits(size_t symbol) {
  return symbol < 4 ? 0 : static_cast<unsigned>(symbol / 2 - 1);
}

// Returns the symbol of a distance less 1.
inline size_t DistanceSymbol(uint32_t distance) {
  if (distance < 4) {
    return distance;
  }
  const auto extra = static_cast<unsigned>(std::bit_width(distance)) - 2;
  return 2 * extra + (distance >> extra);
}

constexpr unsigned FixedLength(size_t symbol) {
  return symbol < 144 ? 8 : symbol < 256 ? 9 : symbol < 280 ? 7 : 8;
}

struct FixedCodes {
  std::array<uint8_t, 286> literal_lengths;
  std::array<uint16_t, 286> literal_codes;
  std::array<uint8_t, 30> distance_lengths;
  std::array<uint16_t, 30> distance_codes;
};

const FixedCodes& Fixed() {
  static const FixedCodes codes = [] {
    std::array<uint8_t, 288> lengths;
    for (size_t i = 0; i < lengths.size(); ++i) {
      lengths[i] = static_cast<uint8_t>(FixedLength(i));
    }
    std::array<uint16_t, 288> all;
    BuildDeflateCodes(lengths, all);
    FixedCodes made;
    std::copy_n(lengths.begin(), 286, made.literal_lengths.begin());
    std::copy_n(all.begin(), 286, made.literal_codes.begin());
    made.distance_lengths.fill(5);
    std::array<uint8_t, 32> fives;
    fives.fill(5);
    std::array<uint16_t, 32> distances;
    BuildDeflateCodes(fives, distances);
    std::copy_n(distances.begin(), 30, made.distance_codes.begin());
    return made;
  }();
  return codes;
}

// Appends the lengths of one code, with runs of equal lengths shortened, to
// `stored`.
size_t StoreLengths(std::span<const uint8_t> lengths,
                    std::span<uint16_t> stored) {
  size_t size = 0;
  const auto put = [&](size_t symbol, size_t extra) {
    stored[size++] = static_cast<uint16_t>(symbol | extra << 5);
  };
  for (size_t i = 0; i < lengths.size();) {
    const uint8_t length = lengths[i];
    size_t run = 1;
    while (i + run < lengths.size() && lengths[i + run] == length) {
      ++run;
    }
    i += run;
    if (length != 0) {
      put(length, 0);
      --run;
    }
    const size_t run_max = length == 0 ? 138 : 6;
    while (run > 0) {
      const size_t piece = std::min(run, run_max);
      if (piece < 3) {
        for (size_t k = 0; k < piece; ++k) {
          put(length, 0);
        }
      } else if (length != 0) {
        put(kRepeat, piece - 3);
      } else if (piece <= 10) {
        put(kFewZeros, piece - 3);
      } else {
        put(kManyZeros, piece - 11);
      }
      run -= piece;
    }
  }
  return size;
}

}  // namespace

// The sizes that zlib compares, in bytes.
struct DeflateBlockWriter::Costs {
  size_t dynamic_bytes = 0;
  size_t fixed_bytes = 0;
  size_t last_literal = 0;
  size_t last_distance = 0;
  size_t length_count = 0;
};

DeflateBlockWriter::DeflateBlockWriter() : symbols_(kSymbolsMax) {}

void DeflateBlockWriter::Start(bool fixed_only) {
  fixed_only_ = fixed_only;
  size_ = 0;
  counted_ = 0;
  literal_frequencies_.fill(0);
  distance_frequencies_.fill(0);
  buffered_ = 0;
  bits_ = 0;
  bit_count_ = 0;
}

void DeflateBlockWriter::CountSymbols() {
  for (; counted_ < size_; ++counted_) {
    const DeflateSymbol symbol = symbols_[counted_];
    const uint32_t distance = symbol >> 8;
    if (distance == 0) {
      ++literal_frequencies_[symbol];
    } else {
      ++literal_frequencies_[kFirstLength + kLengths.symbols[symbol & 0xFF]];
      ++distance_frequencies_[DistanceSymbol(distance - 1)];
    }
  }
}

DeflateBlockWriter::DistanceCost DeflateBlockWriter::CountDistances() {
  CountSymbols();
  DistanceCost cost;
  for (size_t i = 0; i < distance_frequencies_.size(); ++i) {
    cost.matches += distance_frequencies_[i];
    cost.bits += distance_frequencies_[i] * (size_t{5} + DistanceExtraBits(i));
  }
  return cost;
}

// Writes at least 8 bytes of the buffer, of which only whole bytes are kept.
inline void DeflateBlockWriter::PutWholeBytes() {
  StoreLittleEndian(bits_, buffer_.data() + buffered_);
  buffered_ += bit_count_ / 8;
  bits_ >>= bit_count_ & ~7U;
  bit_count_ &= 7;
}

// REQUIRES: count <= 56.
inline void DeflateBlockWriter::Put(uint64_t bits, unsigned count) {
  bits_ |= bits << bit_count_;
  bit_count_ += count;
  PutWholeBytes();
}

bool DeflateBlockWriter::Drain(Sink sink) {
  const size_t size = buffered_;
  buffered_ = 0;
  return size == 0 || sink(ByteView(buffer_).first(size));
}

DeflateBlockWriter::Costs DeflateBlockWriter::BuildCodes() {
  Costs costs;
  literal_frequencies_[kEndOfBlock] = 1;
  costs.last_literal = BuildDeflateLengths(literal_frequencies_, kCodeLengthMax,
                                           literal_lengths_);
  costs.last_distance = BuildDeflateLengths(distance_frequencies_,
                                            kCodeLengthMax, distance_lengths_);
  size_t dynamic_bits = 0;
  size_t fixed_bits = 0;
  for (size_t i = 0; i < literal_frequencies_.size(); ++i) {
    const size_t extra =
        i < kFirstLength ? 0 : kLengths.extra_bits[i - kFirstLength];
    const size_t frequency = literal_frequencies_[i];
    dynamic_bits += frequency * (literal_lengths_[i] + extra);
    fixed_bits += frequency * (FixedLength(i) + extra);
  }
  for (size_t i = 0; i < distance_frequencies_.size(); ++i) {
    const size_t frequency = distance_frequencies_[i];
    dynamic_bits += frequency * (distance_lengths_[i] + DistanceExtraBits(i));
    fixed_bits += frequency * (size_t{5} + DistanceExtraBits(i));
  }
  stored_lengths_size_ =
      StoreLengths(std::span(literal_lengths_).first(costs.last_literal + 1),
                   stored_lengths_);
  stored_lengths_size_ +=
      StoreLengths(std::span(distance_lengths_).first(costs.last_distance + 1),
                   std::span(stored_lengths_).subspan(stored_lengths_size_));
  std::array<uint16_t, 19> frequencies = {};
  for (size_t i = 0; i < stored_lengths_size_; ++i) {
    ++frequencies[stored_lengths_[i] & 31];
  }
  BuildDeflateLengths(frequencies, kLengthCodeLengthMax, length_lengths_);
  costs.length_count = kLengthOrder.size();
  while (costs.length_count > 4 &&
         length_lengths_[kLengthOrder[costs.length_count - 1]] == 0) {
    --costs.length_count;
  }
  for (size_t i = 0; i < frequencies.size(); ++i) {
    dynamic_bits +=
        frequencies[i] * (size_t{length_lengths_[i]} + kLengthExtraBits[i]);
  }
  dynamic_bits += 3 * costs.length_count + 5 + 5 + 4;
  // Including the 3 bits of the block's header.
  costs.dynamic_bytes = (dynamic_bits + 3 + 7) / 8;
  costs.fixed_bytes = (fixed_bits + 3 + 7) / 8;
  return costs;
}

bool DeflateBlockWriter::EndBlock(std::optional<ByteView> text, bool is_last,
                                  Sink sink) {
  CountSymbols();
  const Costs costs = BuildCodes();
  const bool is_fixed = fixed_only_ || costs.fixed_bytes <= costs.dynamic_bytes;
  const size_t coded_bytes = is_fixed ? costs.fixed_bytes : costs.dynamic_bytes;
  bool goes_on = true;
  if (text.has_value() && text->size() <= kStoredSizeMax &&
      text->size() + kStoredOverhead <= coded_bytes) {
    goes_on = WriteStored(*text, is_last, sink);
  } else if (is_fixed) {
    Put(uint64_t{1} << 1 | (is_last ? 1 : 0), 3);
    const FixedCodes& fixed = Fixed();
    literal_lengths_ = fixed.literal_lengths;
    literal_codes_ = fixed.literal_codes;
    distance_lengths_ = fixed.distance_lengths;
    distance_codes_ = fixed.distance_codes;
    goes_on = WriteSymbols(sink);
  } else {
    Put(uint64_t{2} << 1 | (is_last ? 1 : 0), 3);
    WriteCodes(costs);
    goes_on = WriteSymbols(sink);
  }
  size_ = 0;
  counted_ = 0;
  literal_frequencies_.fill(0);
  distance_frequencies_.fill(0);
  if (is_last) {
    bit_count_ = (bit_count_ + 7) & ~7U;
    PutWholeBytes();
  }
  if (goes_on && (is_last || buffered_ >= kBufferSize)) {
    goes_on = Drain(sink);
  }
  return goes_on;
}

bool DeflateBlockWriter::WriteStored(ByteView text, bool is_last, Sink sink) {
  Put(is_last ? 1 : 0, 3);
  bit_count_ = (bit_count_ + 7) & ~7U;
  PutWholeBytes();
  Put(text.size() | (~text.size() & 0xFFFF) << 16, 32);
  return Drain(sink) && (text.empty() || sink(text));
}

void DeflateBlockWriter::WriteCodes(const Costs& costs) {
  Put(costs.last_literal + 1 - kFirstLength, 5);
  Put(costs.last_distance, 5);
  Put(costs.length_count - 4, 4);
  for (size_t i = 0; i < costs.length_count; ++i) {
    Put(length_lengths_[kLengthOrder[i]], 3);
  }
  BuildDeflateCodes(length_lengths_, length_codes_);
  for (size_t i = 0; i < stored_lengths_size_; ++i) {
    const size_t symbol = stored_lengths_[i] & 31;
    const unsigned length = length_lengths_[symbol];
    Put(length_codes_[symbol] | uint64_t{stored_lengths_[i]} >> 5 << length,
        length + kLengthExtraBits[symbol]);
  }
  BuildDeflateCodes(literal_lengths_, literal_codes_);
  BuildDeflateCodes(distance_lengths_, distance_codes_);
}

bool DeflateBlockWriter::WriteSymbols(Sink sink) {
  // Per match length: its code with its extra bits.
  struct Coded {
    uint32_t bits;
    uint32_t count;
  };

  std::array<Coded, 256> lengths;
  for (size_t i = 0; i < lengths.size(); ++i) {
    const size_t symbol = kLengths.symbols[i];
    const uint32_t length = literal_lengths_[kFirstLength + symbol];
    lengths[i] = {literal_codes_[kFirstLength + symbol] |
                      uint32_t{kLengths.extra[i]} << length,
                  length + kLengths.extra_bits[symbol]};
  }
  // Local copies of the state of Put(): the compiler must assume that written
  // bytes alias members.
  uint64_t bits = bits_;
  unsigned bit_count = bit_count_;
  uint8_t* to = buffer_.data() + buffered_;
  uint8_t* const full = buffer_.data() + kBufferSize;
  const auto put = [&](uint64_t value, unsigned count) {
    bits |= value << bit_count;
    bit_count += count;
    StoreLittleEndian(bits, to);
    to += bit_count / 8;
    bits >>= bit_count & ~7U;
    bit_count &= 7;
  };
  for (const DeflateSymbol symbol : symbols()) {
    if (symbol < 256) {
      put(literal_codes_[symbol], literal_lengths_[symbol]);
    } else {
      const uint32_t distance = (symbol >> 8) - 1;
      const size_t distance_symbol = DistanceSymbol(distance);
      const unsigned extra_bits = DistanceExtraBits(distance_symbol);
      const Coded length = lengths[symbol & 0xFF];
      const unsigned distance_length = distance_lengths_[distance_symbol];
      const uint64_t extra = distance & ((uint32_t{1} << extra_bits) - 1);
      const uint64_t coded =
          distance_codes_[distance_symbol] | extra << distance_length;
      put(length.bits | coded << length.count,
          length.count + distance_length + extra_bits);
    }
    if (to >= full) [[unlikely]] {
      buffered_ = static_cast<size_t>(to - buffer_.data());
      if (!Drain(sink)) {
        return false;
      }
      to = buffer_.data();
    }
  }
  bits_ = bits;
  bit_count_ = bit_count;
  buffered_ = static_cast<size_t>(to - buffer_.data());
  Put(literal_codes_[kEndOfBlock], literal_lengths_[kEndOfBlock]);
  return true;
}

}  // namespace quire
