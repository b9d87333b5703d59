// SPDX-License-Identifier: Apache-2.0
#include "codecs/fsst/encode/fsst_greedy_kernel.h"

#include <algorithm>
#include <bit>
#include <bitset>
#include <set>
#include <utility>

#include "codecs/base/endian.h"

namespace quire {
namespace {

constexpr size_t kShortSizeMax = 2;
// For 255 long symbols one try in 80 succeeds; for 120, one in three.
constexpr uint64_t kTriesMax = 2000;
constexpr size_t kLanes = 4;

constexpr uint16_t kEscapeInfo = 1 << 12 | 1 << 8 | kFsstEscape;

uint16_t MakeInfo(size_t code, size_t size) {
  return static_cast<uint16_t>(size << 12 | code);
}

// Ones except in the first `size` bytes.
uint64_t Pad(size_t size) {
  return size == kFsstSymbolSizeMax ? 0 : ~uint64_t{0} << (8 * size);
}

uint64_t Padded(const FsstSymbol& symbol) {
  return symbol.bytes | Pad(symbol.size);
}

// splitmix64 (S. Vigna), made odd.
uint64_t RandomFactor(uint64_t seed) {
  uint64_t value = (seed + 1) * 0x9e3779b97f4a7c15;
  value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9;
  value = (value ^ value >> 27) * 0x94d049bb133111eb;
  return (value ^ value >> 31) | 1;
}

// The paper's multiplier, for the first three bytes of a word.
size_t PrefixSlot(uint64_t word, int bits) {
  return static_cast<uint32_t>(word << 8) * 2971215073U >> (32 - bits);
}

}  // namespace

std::vector<FsstSymbol> GreedySymbols(const SymbolTable& table) {
  std::vector<FsstSymbol> symbols;
  std::set<std::pair<uint64_t, uint8_t>> known;
  for (size_t code = 0; code < table.symbol_count(); ++code) {
    const FsstSymbol& symbol = table.symbol(code);
    bool is_taken = known.emplace(symbol.bytes, symbol.size).second;
    for (size_t i = 0; table.zero_terminated() && i < symbol.size; ++i) {
      is_taken &= symbol.size == 1 || (symbol.bytes >> (8 * i) & 0xff) != 0;
    }
    symbols.push_back(is_taken ? symbol : FsstSymbol{});
  }
  return symbols;
}

std::shared_ptr<const FsstGreedyKernel> FsstGreedyKernel::Make(
    std::span<const FsstSymbol> symbols) {
  std::bitset<256> is_used;
  for (const FsstSymbol& symbol : symbols) {
    for (size_t i = 0; symbol.size > 1 && i < symbol.size; ++i) {
      is_used.set(symbol.bytes >> (8 * i) & 0xff);
    }
  }
  if (is_used.all()) {
    return nullptr;
  }
  std::shared_ptr<FsstGreedyKernel> kernel(new FsstGreedyKernel);
  while (is_used[kernel->terminator_]) {
    ++kernel->terminator_;
  }
  kernel->AddShortSymbols(symbols);
  if (!kernel->AddLongSymbols(symbols)) {
    return nullptr;
  }
  kernel->AddSizeSets(symbols);
  return kernel;
}

void FsstGreedyKernel::AddShortSymbols(std::span<const FsstSymbol> symbols) {
  pairs_.fill(kEscapeInfo);
  for (size_t code = 0; code < symbols.size(); ++code) {
    for (size_t i = 0; symbols[code].size == 1 && i < 256; ++i) {
      pairs_[symbols[code].bytes | i << 8] = MakeInfo(code, 1);
    }
  }
  for (size_t code = 0; code < symbols.size(); ++code) {
    if (symbols[code].size == 2) {
      pairs_[symbols[code].bytes] = MakeInfo(code, 2);
    }
  }
}

bool FsstGreedyKernel::AddLongSymbols(std::span<const FsstSymbol> symbols) {
  for (uint64_t seed = 0; seed < kTriesMax; ++seed) {
    if (TryFactors(symbols, seed)) {
      CloseFreeEntry();
      return true;
    }
  }
  return false;
}

bool FsstGreedyKernel::TryFactors(std::span<const FsstSymbol> symbols,
                                  uint64_t seed) {
  for (size_t size = 0; size < factors_.size(); ++size) {
    factors_[size] = RandomFactor(seed << 4 | size);
  }
  index_.fill(0);
  size_t entry_count = 1;
  for (size_t code = 0; code < symbols.size(); ++code) {
    const FsstSymbol& symbol = symbols[code];
    if (symbol.size <= kShortSizeMax) {
      continue;
    }
    uint8_t& entry = index_[Slot(Padded(symbol), factors_[symbol.size])];
    if (entry != 0) {
      return false;
    }
    entry = static_cast<uint8_t>(entry_count);
    entries_[entry_count++] = {Padded(symbol), MakeInfo(code, symbol.size)};
  }
  // Text padded to another size may look like the symbol if the differing bytes
  // are ones; it must hash to another entry.
  for (const FsstSymbol& symbol : symbols) {
    for (size_t size = kShortSizeMax + 1;
         symbol.size > kShortSizeMax && size <= kFsstSymbolSizeMax; ++size) {
      if (size != symbol.size &&
          index_[Slot(Padded(symbol), factors_[size])] ==
              index_[Slot(Padded(symbol), factors_[symbol.size])]) {
        return false;
      }
    }
  }
  return true;
}

void FsstGreedyKernel::CloseFreeEntry() {
  // Unused sizes look up a word of ones, which must find the free entry, ...
  unused_factor_ = 1;
  while (index_[Slot(~uint64_t{0}, unused_factor_)] != 0) {
    unused_factor_ = RandomFactor(unused_factor_);
  }
  // ... whose bytes only a word of eight bytes can have; such a word hashes
  // elsewhere. Without symbols nothing is looked up.
  if (std::any_of(index_.begin(), index_.end(),
                  [](uint8_t entry) { return entry != 0; })) {
    uint64_t seed = 0;
    do {
      entries_[0].bytes = RandomFactor(seed++) >> 1;
    } while (index_[Slot(entries_[0].bytes, factors_[8])] == 0);
  }
}

void FsstGreedyKernel::AddSizeSets(std::span<const FsstSymbol> symbols) {
  for (const FsstSymbol& symbol : symbols) {
    if (symbol.size > kShortSizeMax) {
      prefixes_[PrefixSlot(symbol.bytes, kPrefixBits)] |=
          static_cast<uint8_t>(1U << (symbol.size - kShortSizeMax - 1));
    }
  }
  for (unsigned bits = 0; bits < size_sets_.size(); ++bits) {
    SizeSet& set = size_sets_[bits];
    set.pads.fill(~uint64_t{0});
    set.factors.fill(unused_factor_);
    unsigned left = bits;
    for (size_t i = 0; i < kSizesMax && left != 0; ++i) {
      const auto bit = static_cast<unsigned>(std::bit_width(left)) - 1;
      const size_t size = bit + kShortSizeMax + 1;
      set.pads[i] = Pad(size);
      set.factors[i] = factors_[size];
      left &= ~(1U << bit);
    }
    set.next = static_cast<uint8_t>(left);
  }
  for (const uint8_t bits : prefixes_) {
    size_count_ = std::max(size_count_, std::popcount(bits));
  }
}

template <int kSizes>
inline FsstGreedyKernel::Info FsstGreedyKernel::Find(uint64_t word) const {
  Info info = pairs_[word & 0xffff];
  if constexpr (kSizes > 0) {
    const SizeSet& set = size_sets_[prefixes_[PrefixSlot(word, kPrefixBits)]];
    // Shortest first: a longer match replaces it.
    for (size_t i = kSizes; i-- > 0;) {
      const uint64_t padded = word | set.pads[i];
      const Entry& entry = entries_[index_[Slot(padded, set.factors[i])]];
      // Loaded unconditionally to avoid a branch.
      const Info found = entry.info;
      info = entry.bytes == padded ? found : info;
    }
    if constexpr (kSizes == kSizesMax) {
      if (set.next != 0 && info >> 12 <= int{kShortSizeMax}) [[unlikely]] {
        return FindInSet(word, size_sets_[set.next], info);
      }
    }
  }
  return info;
}

FsstGreedyKernel::Info FsstGreedyKernel::FindInSet(uint64_t word,
                                                   const SizeSet& set,
                                                   Info info) const {
  for (size_t i = 0; i < kSizesMax; ++i) {
    const uint64_t padded = word | set.pads[i];
    const Entry& entry = entries_[index_[Slot(padded, set.factors[i])]];
    if (entry.bytes == padded) {
      return entry.info;
    }
  }
  return info;
}

template <int kSizes>
void FsstGreedyKernel::Run(std::span<FsstJob> jobs) const {
  struct Lane {
    const uint8_t* text;
    const uint8_t* text_end;
    uint8_t* codes;
    FsstJob* job;
  };

  const auto step = [this](Lane& lane) {
    const auto word = LoadLittleEndian<uint64_t>(lane.text);
    const unsigned info = Find<kSizes>(word);
    // Store the byte itself too: it counts if the code is an escape.
    StoreLittleEndian(static_cast<uint16_t>((word & 0xff) << 8 | (info & 0xff)),
                      lane.codes);
    lane.text += info >> 12;
    lane.codes += 1 + (info >> 8 & 1);
  };
  FsstJob* next = jobs.data();
  FsstJob* const jobs_end = next + jobs.size();
  const auto start = [&](Lane& lane) {
    while (next != jobs_end && next->text == next->text_end) {
      next->codes_end = next->codes;
      ++next;
    }
    if (next == jobs_end) {
      return false;
    }
    lane = {next->text, next->text_end, next->codes, next};
    ++next;
    return true;
  };
  std::array<Lane, kLanes> lanes;
  size_t lane_count = 0;
  while (lane_count < kLanes && start(lanes[lane_count])) {
    ++lane_count;
  }
  while (lane_count == kLanes) {
    Lane a = lanes[0];
    Lane b = lanes[1];
    Lane c = lanes[2];
    Lane d = lanes[3];
    do {
      step(a);
      step(b);
      step(c);
      step(d);
    } while (static_cast<int>(a.text < a.text_end) &
             static_cast<int>(b.text < b.text_end) &
             static_cast<int>(c.text < c.text_end) &
             static_cast<int>(d.text < d.text_end));
    lanes = {a, b, c, d};
    for (size_t i = kLanes; i-- > 0;) {
      if (lanes[i].text >= lanes[i].text_end) {
        lanes[i].job->codes_end = lanes[i].codes;
        if (!start(lanes[i])) {
          lanes[i] = lanes[--lane_count];
        }
      }
    }
  }
  for (size_t i = 0; i < lane_count; ++i) {
    Lane lane = lanes[i];
    while (lane.text < lane.text_end) {
      step(lane);
    }
    lane.job->codes_end = lane.codes;
  }
}

void FsstGreedyKernel::Encode(std::span<FsstJob> jobs) const {
  switch (size_count_) {
    case 0:
      return Run<0>(jobs);
    case 1:
      return Run<1>(jobs);
    case 2:
      return Run<2>(jobs);
    default:
      return Run<3>(jobs);
  }
}

}  // namespace quire
