// SPDX-License-Identifier: Apache-2.0
//
// Arbitrary bytes as codes of any table. All ways of decoding, with and without
// AVX-512, agree on validity and text, in output buffers of exact size and in
// smaller ones.
#include <algorithm>
#include <cstdint>
#include <vector>

#include "codecs/base/bytes.h"
#include "codecs/base/check.h"
#include "codecs/fsst/decode/fsst_decoder.h"
#include "testing/codecs/fsst_fuzz_inputs.h"

namespace quire {
namespace {

using Bytes = std::vector<uint8_t>;

void DecodeStrings(const FsstDecoder& decoder, const Bytes& codes,
                   size_t period, const Bytes& text) {
  std::vector<uint32_t> ends;
  for (size_t end = 0; end < codes.size(); end += 1 + ends.size() % period) {
    ends.push_back(static_cast<uint32_t>(end));
  }
  ends.push_back(static_cast<uint32_t>(codes.size()));
  // Ends within an escape are wrong, all others right.
  bool is_right = true;
  std::vector<uint32_t> expected;
  size_t begin = 0;
  size_t size = 0;
  for (const uint32_t end : ends) {
    const auto decoded =
        decoder.DecodedSize(ByteView(codes).subspan(begin, end - begin));
    is_right = is_right && decoded.ok();
    size += decoded.ok() ? *decoded : 0;
    expected.push_back(static_cast<uint32_t>(size));
    begin = end;
  }
  Bytes out(text.size());
  std::vector<uint32_t> out_ends(ends.size());
  QUIRE_CHECK(decoder.DecodeStrings(codes, ends, out, out_ends).ok() ==
              is_right);
  QUIRE_CHECK(!is_right || (out == text && out_ends == expected));
}

void DecodeWith(const FsstDecoder& decoder, const Bytes& codes, size_t offset,
                size_t choice, Bytes& text) {
  const auto size = decoder.DecodedSize(codes);
  text.assign(codes.size() * kFsstExpansionMax, 0);
  const auto decoded = decoder.Decode(codes, text);
  QUIRE_CHECK(decoded.ok() == size.ok());
  if (!size.ok()) {
    Bytes small(offset);
    QUIRE_CHECK(!decoder.Decode(codes, small).ok());
    return;
  }
  QUIRE_CHECK(*decoded == *size);
  text.resize(*size);
  Bytes exact(*size);
  QUIRE_CHECK(decoder.DecodeExactly(codes, exact).ok() && exact == text);
  offset = std::min(offset, *size);
  Bytes part(std::min(choice * 7, *size - offset));
  QUIRE_CHECK(decoder.DecodeRange(codes, offset, part).ok());
  QUIRE_CHECK(std::equal(part.begin(), part.end(),
                         text.begin() + static_cast<ptrdiff_t>(offset)));
  const auto place = decoder.Find(codes, offset);
  QUIRE_CHECK(place.ok() && place->decoded_offset <= offset &&
              offset - place->decoded_offset < kFsstSymbolSizeMax);
  QUIRE_CHECK(*decoder.DecodedSize(ByteView(codes).first(place->code_offset)) ==
              place->decoded_offset);
  if (offset < *size) {
    Bytes small(offset);
    QUIRE_CHECK(!decoder.Decode(codes, small).ok());
  }
  DecodeStrings(decoder, codes, choice % 40 + 1, text);
}

void DecodeAny(ByteView input) {
  const size_t offset = 8 * size_t{TakeByte(input)} + TakeByte(input) % 8U;
  const size_t choice = TakeByte(input);
  const SymbolTable table = TakeTable(input);
  const Bytes codes(input.begin(), input.end());
  Bytes best;
  DecodeWith(FsstDecoder(table), codes, offset, choice, best);
  const bool is_right = FsstDecoder(table).DecodedSize(codes).ok();
  for (const FsstInstructions instructions :
       {FsstInstructions::kPlain, FsstInstructions::kPortable}) {
    Bytes other;
    DecodeWith(FsstDecoder(table, instructions), codes, offset, choice, other);
    QUIRE_CHECK(is_right ? best == other : true);
  }
}

}  // namespace
}  // namespace quire

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  quire::DecodeAny({data, size});
  return 0;
}
