// SPDX-License-Identifier: Apache-2.0
//
// Any text with any table, at both levels: it encodes to the same bytes alone
// and in a batch, decodes to itself, and is never shorter at the lower level.
#include <algorithm>
#include <cstdint>
#include <vector>

#include "codecs/base/bytes.h"
#include "codecs/base/check.h"
#include "codecs/fsst/decode/fsst_decoder.h"
#include "codecs/fsst/encode/fsst_encoder.h"
#include "testing/codecs/fsst_fuzz_inputs.h"

namespace quire {
namespace {

using Bytes = std::vector<uint8_t>;

Bytes Encode(const FsstEncoder& encoder, ByteView text) {
  // Memory of exactly the right size, for AddressSanitizer.
  const Bytes exact(text.begin(), text.end());
  Bytes codes(FsstEncoder::CodesSizeMax(exact.size()));
  codes.resize(encoder.Encode(exact, codes));
  return codes;
}

Bytes RoundTrip(const SymbolTable& table, FsstLevel level, ByteView text,
                size_t piece_size) {
  const FsstEncoder encoder(table, level);
  Bytes codes = Encode(encoder, text);

  std::vector<ByteView> pieces;
  for (size_t i = 0; i < text.size(); i += piece_size) {
    pieces.push_back(text.subspan(i, std::min(piece_size, text.size() - i)));
    pieces.push_back({});
  }
  Bytes batch(FsstEncoder::CodesSizeMax(text.size()));
  std::vector<uint32_t> ends(pieces.size());
  batch.resize(encoder.EncodeStrings(pieces, batch, ends));
  size_t begin = 0;
  for (size_t i = 0; i < pieces.size(); ++i) {
    QUIRE_CHECK(
        std::ranges::equal(ByteView(batch).subspan(begin, ends[i] - begin),
                           Encode(encoder, pieces[i])));
    begin = ends[i];
  }
  for (const FsstInstructions instructions :
       {FsstInstructions::kBest, FsstInstructions::kPlain,
        FsstInstructions::kPortable}) {
    const FsstDecoder decoder(table, instructions);
    Bytes out(text.size());
    QUIRE_CHECK(decoder.DecodeExactly(codes, out).ok());
    QUIRE_CHECK(std::ranges::equal(text, out));
    std::ranges::fill(out, uint8_t{0});
    std::vector<uint32_t> out_ends(ends.size());
    QUIRE_CHECK(decoder.DecodeStrings(batch, ends, out, out_ends).ok());
    QUIRE_CHECK(std::ranges::equal(text, out));
  }
  return codes;
}

void RoundTripAny(ByteView input) {
  const size_t piece_size = 1 + size_t{TakeByte(input)} * 3;
  const SymbolTable table = TakeTable(input);
  const Bytes fast = RoundTrip(table, FsstLevel::kDefault, input, piece_size);
  const Bytes high = RoundTrip(table, FsstLevel::kHigh, input, piece_size);
  QUIRE_CHECK(high.size() <= fast.size());
}

}  // namespace
}  // namespace quire

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  quire::RoundTripAny({data, size});
  return 0;
}
