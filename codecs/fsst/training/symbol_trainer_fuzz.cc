// SPDX-License-Identifier: Apache-2.0
//
// Trains on arbitrary bytes, then encodes and decodes them. The first four
// bytes choose options and the ends of texts; the rest are the texts.
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "codecs/base/bytes.h"
#include "codecs/base/check.h"
#include "codecs/fsst/decode/fsst_decoder.h"
#include "codecs/fsst/encode/fsst_encoder.h"
#include "codecs/fsst/training/symbol_trainer.h"

namespace quire {
namespace {

constexpr size_t kHeaderSize = 4;
constexpr size_t kInputSizeMax = 8 << 10;

size_t RoundTrip(const SymbolTable& table, FsstLevel level, ByteView text) {
  std::vector<uint8_t> codes(FsstEncoder::CodesSizeMax(text.size()));
  codes.resize(FsstEncoder(table, level).Encode(text, codes));
  codes.shrink_to_fit();
  std::vector<uint8_t> decoded(text.size());
  QUIRE_CHECK(FsstDecoder(table).DecodeExactly(codes, decoded).ok());
  QUIRE_CHECK(std::ranges::equal(decoded, text));
  return codes.size();
}

void TrainAndUse(ByteView input) {
  if (input.size() < kHeaderSize || input.size() > kInputSizeMax) {
    return;
  }
  const bool high = (input[0] & 1) != 0;
  SymbolTrainerOptions options = {
      .rounds = 1 + input[1] % 8,
      .level = high ? FsstLevel::kHigh : FsstLevel::kDefault,
      .zero_terminated = (input[0] & 2) != 0};
  if ((input[0] & 4) != 0) {
    options.sample_size_bytes = size_t{input[2]} * 16;
  }
  const size_t text_size = 1 + size_t{input[3]} * 4;
  std::vector<ByteView> texts;
  for (ByteView left = input.subspan(kHeaderSize); !left.empty();) {
    texts.push_back(left.first(std::min(left.size(), text_size)));
    left = left.subspan(texts.back().size());
  }
  const SymbolTable table = TrainSymbolTable(texts, options);
  QUIRE_CHECK(TrainSymbolTable(texts, options) == table);
  const std::string serialised = table.Serialise();
  const auto parsed = SymbolTable::Parse(AsBytes(serialised));
  QUIRE_CHECK(parsed.ok() && *parsed == table);
  const ByteView all = input.subspan(kHeaderSize);
  QUIRE_CHECK(RoundTrip(table, FsstLevel::kHigh, all) <=
              RoundTrip(table, FsstLevel::kDefault, all));
}

}  // namespace
}  // namespace quire

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  quire::TrainAndUse({data, size});
  return 0;
}
