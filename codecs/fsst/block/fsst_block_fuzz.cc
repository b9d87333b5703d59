// SPDX-License-Identifier: Apache-2.0
//
// Arbitrary bytes as an FSST block, with a table from the input. All ways of
// reading a valid block must agree, and every encoded text must be valid. The
// first six bytes choose the size of the text and a range.
#include <algorithm>
#include <cstdint>
#include <vector>

#include "codecs/base/bytes.h"
#include "codecs/base/check.h"
#include "codecs/base/endian.h"
#include "codecs/fsst/block/fsst_block.h"
#include "codecs/fsst/decode/fsst_decoder.h"
#include "codecs/fsst/encode/fsst_encoder.h"
#include "codecs/fsst/table/symbol_table.h"

namespace quire {
namespace {

constexpr size_t kHeaderSize = 6;

// Returns whether the block decodes.
bool ReadBlock(const FsstDecoder& decoder, ByteView bytes, size_t text_size,
               size_t offset, size_t size, std::vector<uint8_t>& text) {
  // Memory of exactly the right size, for AddressSanitizer.
  const std::vector<uint8_t> block(bytes.begin(), bytes.end());
  const auto view = FsstBlockView::Parse(block, text_size);
  if (!view.ok()) {
    return false;
  }
  text.resize(text_size);
  const bool whole_ok = view->DecodeRange(decoder, 0, text).ok();
  std::vector<uint8_t> range(size);
  const bool range_ok = view->DecodeRange(decoder, offset, range).ok();
  const auto found = view->Find(decoder, offset, size);
  if (!whole_ok) {
    return false;
  }
  QUIRE_CHECK(range_ok && found.ok());
  const ByteView expected = ByteView(text).subspan(offset, size);
  QUIRE_CHECK(std::ranges::equal(range, expected));
  QUIRE_CHECK(found->front_cut_size_bytes < 8 &&
              found->back_cut_size_bytes < 8);
  range.resize(size + found->front_cut_size_bytes + found->back_cut_size_bytes);
  QUIRE_CHECK(decoder.DecodeExactly(found->codes, range).ok());
  QUIRE_CHECK(std::ranges::equal(
      ByteView(range).subspan(found->front_cut_size_bytes, size), expected));
  return true;
}

void FuzzBlock(ByteView input, FsstInstructions instructions) {
  if (input.size() < kHeaderSize) {
    return;
  }
  const size_t text_size = LoadLittleEndian<uint16_t>(&input[0]);
  const size_t offset = LoadLittleEndian<uint16_t>(&input[2]) % (text_size + 1);
  const size_t size =
      LoadLittleEndian<uint16_t>(&input[4]) % (text_size - offset + 1);
  ByteView rest = input.subspan(kHeaderSize);
  size_t table_size = 0;
  const auto table = SymbolTable::ParsePrefix(rest, &table_size);
  if (!table.ok()) {
    return;
  }
  rest = rest.subspan(table_size);
  const FsstDecoder decoder(*table, instructions);
  std::vector<uint8_t> text;
  ReadBlock(decoder, rest, text_size, offset, size, text);
  // The input as a text.
  std::vector<uint8_t> block(FsstBlockSizeMax(rest.size()));
  block.resize(EncodeFsstBlock(FsstEncoder(*table), rest, block));
  const size_t from = offset % (rest.size() + 1);
  QUIRE_CHECK(ReadBlock(decoder, block, rest.size(), from,
                        size % (rest.size() - from + 1), text));
  QUIRE_CHECK(std::ranges::equal(text, rest));
}

}  // namespace
}  // namespace quire

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  quire::FuzzBlock({data, size}, quire::FsstInstructions::kBest);
  quire::FuzzBlock({data, size}, quire::FsstInstructions::kPlain);
  quire::FuzzBlock({data, size}, quire::FsstInstructions::kPortable);
  return 0;
}
