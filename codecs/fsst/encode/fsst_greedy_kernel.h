// SPDX-License-Identifier: Apache-2.0
//
// The hot loop of fsst_encoder.h at its default level, for no other code.
//
// A finite-state transducer in place of the paper's hash table (section 5.3): a
// state is the text since the last code, a proper prefix of some symbol. Each
// byte of text costs one load, whatever symbols begin alike, without a branch
// in the common case. Four texts are encoded side by side, since each load
// waits for the one before it: the idea of section 5.4, with integer registers
// as lanes.
#ifndef QUIRE_CODECS_FSST_ENCODE_FSST_GREEDY_KERNEL_H_
#define QUIRE_CODECS_FSST_ENCODE_FSST_GREEDY_KERNEL_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "codecs/fsst/table/symbol_table.h"

namespace quire {

// A text to encode and the buffer for its codes. The buffer needs the space
// that FsstGreedyKernel::Encode requires.
struct FsstJob {
  const uint8_t* text = nullptr;
  const uint8_t* text_end = nullptr;
  uint8_t* codes = nullptr;
  // Set by Encode().
  uint8_t* codes_end = nullptr;
};

// Returns the symbols by code. Symbols that the longest match never takes have
// size 0: duplicates of a lower code, and in a zero-terminated table longer
// symbols with 00, so that codes end where the text does.
std::vector<FsstSymbol> GreedySymbols(const SymbolTable& table);

// Encodes by longest match. Immutable: thread-safe. 2 KB for each proper prefix
// of a symbol: 200 to 900 KB with tables for text, at most 4 MB.
class FsstGreedyKernel {
 public:
  // Bytes of arbitrary content that Encode() may write after the codes.
  static constexpr size_t kPaddingSize = 16;

  // `symbols` are by code; size 0 means none.
  // REQUIRES: symbols.size() <= kFsstSymbolCountMax.
  explicit FsstGreedyKernel(std::span<const FsstSymbol> symbols);

  // Upper bound on the memory of the states, for symbols of this size together.
  static constexpr size_t MemoryBytesMax(size_t symbols_size) {
    return (1 + symbols_size - symbols_size / kFsstSymbolSizeMax) *
           sizeof(State);
  }

  // Encodes all jobs. Reads the texts only. The codes have space for 2 bytes
  // per byte of text, plus kPaddingSize.
  void Encode(std::span<FsstJob> jobs) const;

 private:
  // The effect of a byte in a state: bits 0-23 the codes to write, 24-31 their
  // size, 32-62 the next state; or kRetreat.
  using Step = uint64_t;

  // Codes of up to seven bytes of text. All of it is copied.
  struct Codes {
    std::array<uint8_t, kPaddingSize - 1> bytes = {};
    uint8_t size = 0;
  };

  // Begins a cache line and has an odd number of them, so that the steps for
  // one byte are in different sets of a cache.
  struct alignas(64) State {
    std::array<Step, 256> steps = {};
    // For a byte that continues no symbol: the codes of the start of the text,
    // and the state for the rest.
    Codes retreat_codes;
    uint32_t retreat_state = 0;
    // Codes of the text if nothing follows.
    Codes last_codes;
  };

  struct Lane;
  class Builder;

  static const State& StateAt(const State* states, uint64_t offset) {
    return *reinterpret_cast<const State*>(
        reinterpret_cast<const uint8_t*>(states) + offset);
  }

  static void Append(const Codes& codes, Lane& lane);
  // Takes the next byte of a text.
  static void Advance(const State* states, uint8_t byte, Lane& lane);
  // Takes the end of a text.
  static void Finish(const State* states, Lane& lane);

  // By offset in bytes. The first is the state without text.
  std::vector<State> states_;
};

}  // namespace quire

#endif  // QUIRE_CODECS_FSST_ENCODE_FSST_GREEDY_KERNEL_H_
