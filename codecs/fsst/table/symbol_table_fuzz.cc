// SPDX-License-Identifier: Apache-2.0
//
// Arbitrary bytes as a serialised symbol table. An accepted table serialises to
// the same bytes, has valid symbols, and decodes and encodes.
#include <algorithm>
#include <cstdint>
#include <vector>

#include "codecs/base/bytes.h"
#include "codecs/base/check.h"
#include "codecs/fsst/decode/fsst_decoder.h"
#include "codecs/fsst/encode/fsst_encoder.h"
#include "codecs/fsst/table/symbol_table.h"
#include "testing/codecs/fsst_fuzz_inputs.h"

namespace quire {
namespace {

void ImportAny(ByteView input) {
  // Memory of exactly the right size, for AddressSanitizer.
  const std::vector<uint8_t> bytes(input.begin(), input.end());
  size_t size_bytes = 0;
  const auto table = SymbolTable::ParsePrefix(bytes, &size_bytes);
  QUIRE_CHECK(SymbolTable::Parse(bytes).ok() ==
              (table.ok() && size_bytes == bytes.size()));
  if (!table.ok()) {
    return;
  }
  QUIRE_CHECK(size_bytes <= kSerialisedSymbolTableSizeMax);
  QUIRE_CHECK(AsText(bytes).substr(0, size_bytes) == table->Serialise());
  for (size_t code = 0; code < table->symbol_count(); ++code) {
    const FsstSymbol& symbol = table->symbol(code);
    QUIRE_CHECK(symbol.size >= 1 && symbol.size <= kFsstSymbolSizeMax);
    QUIRE_CHECK(symbol.size == 8 || symbol.bytes >> (8 * symbol.size) == 0);
  }
  // The rest of the input as a text.
  const ByteView text = ByteView(bytes).subspan(size_bytes);
  std::vector<uint8_t> codes(FsstEncoder::CodesSizeMax(text.size()));
  codes.resize(FsstEncoder(*table).Encode(text, codes));
  std::vector<uint8_t> again(text.size());
  QUIRE_CHECK(FsstDecoder(*table).DecodeExactly(codes, again).ok());
  QUIRE_CHECK(std::equal(text.begin(), text.end(), again.begin()));
}

}  // namespace
}  // namespace quire

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  quire::ImportAny({data, size});
  return 0;
}
