// SPDX-License-Identifier: Apache-2.0
//
// Fuzzing inputs that begin with a symbol table, in a form that any bytes have.
// A serialised table has rules that a fuzzer would hardly ever satisfy; here
// any bytes are some table, and a small change to them is a small change to the
// table.
//
// The form is used by fuzzing alone: a byte with the number of symbols; for
// each a byte whose low three bits are its size less one, and its bytes; then
// the text or the codes of the target. Missing bytes count as zeros.
#ifndef QUIRE_TESTING_CODECS_FSST_FUZZ_INPUTS_H_
#define QUIRE_TESTING_CODECS_FSST_FUZZ_INPUTS_H_

#include <cstdint>
#include <vector>

#include "codecs/base/bytes.h"
#include "codecs/fsst/table/symbol_table.h"

namespace quire {

// Removes one byte from the front of `input`; 0 if it is empty.
inline uint8_t TakeByte(ByteView& input) {
  const uint8_t byte = input.empty() ? uint8_t{0} : input.front();
  input = input.subspan(input.empty() ? 0 : 1);
  return byte;
}

// Removes a table from the front of `input`. Skips symbols that cannot join the
// earlier ones, such as duplicates, so that there always is a table, of 0 to
// 255 symbols. An odd number of given symbols makes it zero-terminated.
inline SymbolTable TakeTable(ByteView& input) {
  const uint8_t count = TakeByte(input);
  const bool zero_terminated = count % 2 == 1;
  std::vector<FsstSymbol> symbols;
  for (size_t i = 0; i < count && !input.empty(); ++i) {
    FsstSymbol symbol = {
        .size = static_cast<uint8_t>(TakeByte(input) % kFsstSymbolSizeMax + 1)};
    for (size_t k = 0; k < symbol.size; ++k) {
      symbol.bytes |= uint64_t{TakeByte(input)} << (8 * k);
    }
    symbols.push_back(symbol);
    if (!SymbolTable::FromSymbols(symbols, zero_terminated).ok()) {
      symbols.pop_back();
    }
  }
  return *SymbolTable::FromSymbols(symbols, zero_terminated);
}

}  // namespace quire

#endif  // QUIRE_TESTING_CODECS_FSST_FUZZ_INPUTS_H_
