// SPDX-License-Identifier: Apache-2.0
//
// Any bytes given to any codec's decoder, for the whole block and for a range
// of it. The first seven bytes choose codec, block size and range. Where both
// succeed they must agree, lz4 excepted (see MakeLz4Codec).
#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "codecs/base/bytes.h"
#include "codecs/base/check.h"
#include "codecs/base/endian.h"
#include "codecs/block_codec.h"
#include "testing/codecs/codec_test_inputs.h"

namespace quire {
namespace {

struct Decoder {
  CodecId id;
  std::unique_ptr<BlockCodec> codec;
  std::unique_ptr<BlockCodec::Scratch> scratch;
};

std::vector<Decoder> MakeDecoders() {
  std::vector<Decoder> decoders;
  const auto context = MakeTestContext(4096);
  for (const CodecInfo& info : AllCodecs()) {
    auto codec =
        MakeBlockCodec(DefaultCodecSpec(info), context, CodecUse::kDecode);
    QUIRE_CHECK(codec.ok());
    auto scratch = (*codec)->NewScratch();
    decoders.push_back({info.id, std::move(*codec), std::move(scratch)});
  }
  return decoders;
}

constexpr size_t kHeaderSize = 7;

void DecodeAny(ByteView input) {
  static const auto* const decoders = new std::vector<Decoder>(MakeDecoders());
  if (input.size() < kHeaderSize) {
    return;
  }
  const Decoder& decoder = (*decoders)[input[0] % decoders->size()];
  // Up to sizes at which a zstd frame has several inner blocks.
  const size_t raw_size = 1 + size_t{5} * LoadLittleEndian<uint16_t>(&input[1]);
  const size_t offset =
      size_t{5} * LoadLittleEndian<uint16_t>(&input[3]) % raw_size;
  const size_t size = size_t{5} * LoadLittleEndian<uint16_t>(&input[5]) %
                      (raw_size - offset + 1);
  // Memory of exactly the right size, for AddressSanitizer.
  const std::vector<uint8_t> stored(input.begin() + kHeaderSize, input.end());
  std::vector<uint8_t> raw(raw_size);
  std::vector<uint8_t> range(size);
  const bool whole_ok =
      decoder.codec->Decode(stored, raw, *decoder.scratch).ok();
  const bool range_ok =
      decoder.codec
          ->DecodeRange(stored, raw_size, offset, range, *decoder.scratch)
          .ok();
  QUIRE_CHECK(!whole_ok || range_ok);
  QUIRE_CHECK(!whole_ok || decoder.id == CodecId::kLz4 ||
              // Then its member is.
              (decoder.id == CodecId::kAuto &&
               stored[0] == static_cast<uint8_t>(CodecId::kLz4)) ||
              std::ranges::equal(range, ByteView(raw).subspan(offset, size)));
}

}  // namespace
}  // namespace quire

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  quire::DecodeAny({data, size});
  return 0;
}
