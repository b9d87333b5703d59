// SPDX-License-Identifier: Apache-2.0
#include "codecs/fsst/encode/fsst_greedy_kernel.h"

#include <algorithm>
#include <cstring>
#include <set>
#include <utility>

#include "codecs/base/endian.h"

namespace quire {
namespace {

constexpr size_t kLanes = 4;

// Codes in one step.
constexpr size_t kStepCodesMax = 3;
constexpr int kSizeShift = 24;
constexpr int kStateShift = 32;
// Codes that do not fit. Its size exceeds all others.
constexpr uint64_t kRetreat = uint64_t{1} << 63 | uint64_t{0xff} << kSizeShift;

constexpr bool IsRetreat(uint64_t step) {
  return static_cast<int64_t>(step) < 0;
}

constexpr uint64_t MakeStep(uint64_t codes, size_t size, size_t state) {
  return codes | uint64_t{size} << kSizeShift | uint64_t{state} << kStateShift;
}

constexpr size_t SizeOf(uint64_t step) {
  return static_cast<uint32_t>(step) >> kSizeShift;
}

// Ones in the low `size` bytes. REQUIRES: size < 8.
constexpr uint64_t BytesMask(size_t size) {
  return (uint64_t{1} << (8 * size)) - 1;
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

// Where one text is: what StateAt() takes, and where its next codes go.
struct FsstGreedyKernel::Lane {
  uint64_t state = 0;
  uint8_t* codes = nullptr;
};

// Makes the states. Each retreats to states of shorter texts, so they are made
// in ascending order of size.
class FsstGreedyKernel::Builder {
 public:
  Builder(std::span<const FsstSymbol> symbols, FsstGreedyKernel& kernel)
      : symbols_(symbols), kernel_(kernel) {}

  void Build() {
    AddNodes();
    kernel_.states_.resize(nodes_.size());
    for (uint64_t byte = 0; byte < 256; ++byte) {
      kernel_.states_[0].steps[byte] =
          MakeStep(byte << 8 | kFsstEscape, /*size=*/2, /*state=*/0);
    }
    for (size_t size = 1; size <= kFsstSymbolSizeMax; ++size) {
      // Complete the steps of shorter texts.
      for (size_t i = begins_[size]; i < begins_[size + 1]; ++i) {
        StepTo(nodes_[i].text, size) = MakeStep(0, 0, i * sizeof(State));
        const Node& parent = nodes_[Find(nodes_[i].text, size - 1)];
        nodes_[i].code = parent.code;
        nodes_[i].code_size = parent.code_size;
      }
      for (size_t code = 0; code < symbols_.size(); ++code) {
        if (symbols_[code].size == size) {
          AddSymbol(static_cast<uint8_t>(code));
        }
      }
      for (size_t i = begins_[size]; i < begins_[size + 1]; ++i) {
        MakeState(nodes_[i], kernel_.states_[i]);
      }
    }
  }

 private:
  // The text of a state.
  struct Node {
    uint64_t text = 0;
    size_t size = 0;
    // The longest symbol at its front; if there is none, an escape.
    uint8_t code = kFsstEscape;
    size_t code_size = 1;
  };

  // All proper prefixes, by size and then by text. The first is empty.
  void AddNodes() {
    nodes_.emplace_back();
    begins_.fill(1);
    begins_[0] = 0;
    for (size_t size = 1; size < kFsstSymbolSizeMax; ++size) {
      std::set<uint64_t> texts;
      for (const FsstSymbol& symbol : symbols_) {
        if (symbol.size > size) {
          texts.insert(symbol.bytes & BytesMask(size));
        }
      }
      for (const uint64_t text : texts) {
        nodes_.push_back({.text = text, .size = size});
      }
      std::fill(begins_.begin() + static_cast<ptrdiff_t>(size) + 1,
                begins_.end(), nodes_.size());
    }
  }

  // Returns the node of the first `size` bytes of `text`; their number if there
  // is none.
  size_t Find(uint64_t text, size_t size) const {
    const uint64_t wanted =
        size < kFsstSymbolSizeMax ? text & BytesMask(size) : text;
    const auto begin = nodes_.begin() + static_cast<ptrdiff_t>(begins_[size]);
    const auto end = nodes_.begin() + static_cast<ptrdiff_t>(begins_[size + 1]);
    const auto found = std::lower_bound(
        begin, end, wanted,
        [](const Node& node, uint64_t value) { return node.text < value; });
    return found != end && found->text == wanted
               ? static_cast<size_t>(found - nodes_.begin())
               : nodes_.size();
  }

  // The step that the last byte of `text` takes.
  // REQUIRES: the bytes before it have a node.
  Step& StepTo(uint64_t text, size_t size) {
    return kernel_.states_[Find(text, size - 1)]
        .steps[text >> (8 * (size - 1)) & 0xff];
  }

  void AddSymbol(uint8_t code) {
    const FsstSymbol& symbol = symbols_[code];
    const size_t node = Find(symbol.bytes, symbol.size);
    if (node != nodes_.size()) {
      nodes_[node].code = code;
      nodes_[node].code_size = symbol.size;
    } else {
      // It begins no longer symbol.
      StepTo(symbol.bytes, symbol.size) =
          MakeStep(code, /*size=*/1, /*state=*/0);
    }
  }

  void MakeState(const Node& node, State& state) const {
    // Codes are written with padding.
    std::array<uint8_t, 2 * kPaddingSize> buffer = {node.code};
    Lane lane = {.codes = &buffer[1]};
    if (node.code == kFsstEscape) {
      *lane.codes++ = static_cast<uint8_t>(node.text);
    }
    for (size_t i = node.code_size; i < node.size; ++i) {
      Advance(kernel_.states_.data(),
              static_cast<uint8_t>(node.text >> (8 * i)), lane);
    }
    state.retreat_codes = MakeCodes(buffer, lane);
    state.retreat_state = static_cast<uint32_t>(lane.state);
    Finish(kernel_.states_.data(), lane);
    state.last_codes = MakeCodes(buffer, lane);
    state.steps.fill(kRetreat);
    const size_t size = state.retreat_codes.size;
    if (size > kStepCodesMax) {
      return;
    }
    // Steps that take the codes with them.
    const State& retreat = StateAt(kernel_.states_.data(), state.retreat_state);
    const uint64_t codes =
        LoadLittleEndian<uint32_t>(buffer.data()) & BytesMask(size);
    for (size_t byte = 0; byte < state.steps.size(); ++byte) {
      const Step step = retreat.steps[byte];
      if (SizeOf(step) + size <= kStepCodesMax) {
        const uint64_t next_codes = step & BytesMask(kStepCodesMax);
        state.steps[byte] = (step ^ next_codes) +
                            MakeStep(next_codes << (8 * size) | codes, size, 0);
      }
    }
  }

  static Codes MakeCodes(const std::array<uint8_t, 2 * kPaddingSize>& buffer,
                         const Lane& lane) {
    Codes codes;
    codes.size = static_cast<uint8_t>(lane.codes - buffer.data());
    std::copy_n(buffer.begin(), codes.size, codes.bytes.begin());
    return codes;
  }

  const std::span<const FsstSymbol> symbols_;
  FsstGreedyKernel& kernel_;
  std::vector<Node> nodes_;
  // By size of the text.
  std::array<size_t, kFsstSymbolSizeMax + 2> begins_ = {};
};

FsstGreedyKernel::FsstGreedyKernel(std::span<const FsstSymbol> symbols) {
  Builder(symbols, *this).Build();
}

inline void FsstGreedyKernel::Append(const Codes& codes, Lane& lane) {
  static_assert(sizeof(codes) == kPaddingSize);
  std::memcpy(lane.codes, &codes, sizeof(codes));
  lane.codes += codes.size;
}

inline void FsstGreedyKernel::Advance(const State* states, uint8_t byte,
                                      Lane& lane) {
  Step step = StateAt(states, lane.state).steps[byte];
  if (IsRetreat(step)) [[unlikely]] {
    do {
      const State& state = StateAt(states, lane.state);
      Append(state.retreat_codes, lane);
      lane.state = state.retreat_state;
      step = StateAt(states, lane.state).steps[byte];
    } while (IsRetreat(step));
  }
  // With bytes after the codes, which the next ones replace.
  StoreLittleEndian(static_cast<uint32_t>(step), lane.codes);
  lane.codes += SizeOf(step);
  lane.state = step >> kStateShift;
}

inline void FsstGreedyKernel::Finish(const State* states, Lane& lane) {
  Append(StateAt(states, lane.state).last_codes, lane);
  lane.state = 0;
}

void FsstGreedyKernel::Encode(std::span<FsstJob> jobs) const {
  // A lane and the rest of its text.
  struct Place {
    Lane lane = {};
    const uint8_t* text = nullptr;
    const uint8_t* text_end = nullptr;
    FsstJob* job = nullptr;
  };

  // Local variables: for the compiler codes may alias anything.
  const State* const states = states_.data();
  FsstJob* next = jobs.data();
  FsstJob* const jobs_end = next + jobs.size();
  // Takes a text that is not empty. Returns false if there is none.
  const auto start = [&](Place& place) {
    while (next != jobs_end && next->text == next->text_end) {
      next->codes_end = next->codes;
      ++next;
    }
    if (next == jobs_end) {
      return false;
    }
    place = {{.codes = next->codes}, next->text, next->text_end, next};
    ++next;
    return true;
  };
  std::array<Place, kLanes> places;
  size_t count = 0;
  while (count < kLanes && start(places[count])) {
    ++count;
  }
  while (count == kLanes) {
    ptrdiff_t size = places[0].text_end - places[0].text;
    for (const Place& place : places) {
      size = std::min(size, place.text_end - place.text);
    }
    Lane a = places[0].lane;
    Lane b = places[1].lane;
    Lane c = places[2].lane;
    Lane d = places[3].lane;
    for (Place& place : places) {
      place.text += size;
    }
    const uint8_t* const text_a = places[0].text;
    const uint8_t* const text_b = places[1].text;
    const uint8_t* const text_c = places[2].text;
    const uint8_t* const text_d = places[3].text;
    for (ptrdiff_t i = -size; i != 0; ++i) {
      Advance(states, text_a[i], a);
      Advance(states, text_b[i], b);
      Advance(states, text_c[i], c);
      Advance(states, text_d[i], d);
    }
    places[0].lane = a;
    places[1].lane = b;
    places[2].lane = c;
    places[3].lane = d;
    for (size_t i = kLanes; i-- > 0;) {
      if (places[i].text == places[i].text_end) {
        Finish(states, places[i].lane);
        places[i].job->codes_end = places[i].lane.codes;
        if (!start(places[i])) {
          places[i] = places[--count];
        }
      }
    }
  }
  for (size_t i = 0; i < count; ++i) {
    Lane lane = places[i].lane;
    for (const uint8_t* text = places[i].text; text != places[i].text_end;
         ++text) {
      Advance(states, *text, lane);
    }
    Finish(states, lane);
    places[i].job->codes_end = lane.codes;
  }
}

}  // namespace quire
