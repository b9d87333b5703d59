// SPDX-License-Identifier: Apache-2.0
//
// Decodes any bytes as a payload of partitions, with or without a recipe:
// decoding the whole block accepts it exactly if decoding each partition alone
// does, and gives the same text. With a recipe, parts may be accepted if the
// whole is not. The text with members inflated is decoded, too. The first four
// bytes choose codec, form and block size; the rest is the payload.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "codecs/base/bytes.h"
#include "codecs/base/check.h"
#include "codecs/base/endian.h"
#include "codecs/block_codec.h"
#include "codecs/payload/payload_codec.h"
#include "codecs/payload/recipe.h"
#include "testing/codecs/codec_test_inputs.h"

namespace quire {
namespace {

struct Subject {
  CodecId id;
  std::unique_ptr<PayloadCodec> codec;
  std::unique_ptr<PayloadCodec::Scratch> scratch;
};

std::vector<Subject> MakeSubjects() {
  std::vector<Subject> subjects;
  const auto context = MakeTestContext(16 << 10);
  for (const CodecInfo& info : AllCodecs()) {
    CodecSpec spec = DefaultCodecSpec(info);
    if (!info.takes_partitions) {
      continue;
    }
    spec.partition_size_bytes = kPartitionSizeBytesMin;
    auto codec = MakePayloadCodec(spec, context, CodecUse::kDecode,
                                  kInflatedLargeSizeMax);
    QUIRE_CHECK(codec.ok());
    auto scratch = (*codec)->NewScratch();
    subjects.push_back({info.id, std::move(*codec), std::move(scratch)});
  }
  return subjects;
}

void Compare(ByteView input) {
  static const auto* const subjects = new std::vector<Subject>(MakeSubjects());
  constexpr size_t kHeaderSize = 4;
  if (input.size() < kHeaderSize) {
    return;
  }
  const Subject& subject = (*subjects)[input[0] % subjects->size()];
  const size_t raw_size = 1 + LoadLittleEndian<uint16_t>(&input[2]);
  // Memory of the exact size, for AddressSanitizer.
  const std::vector<uint8_t> stored(input.begin() + kHeaderSize, input.end());
  const Payload payload = {.bytes = stored, .has_recipe = (input[1] & 1) != 0};
  std::vector<uint8_t> raw(raw_size);
  const bool whole_ok =
      subject.codec->Decode(payload, raw, *subject.scratch).ok();
  bool parts_ok = true;
  for (size_t begin = 0; begin < raw_size; begin += kPartitionSizeBytesMin) {
    std::vector<uint8_t> part(
        std::min<size_t>(kPartitionSizeBytesMin, raw_size - begin));
    const bool part_ok =
        subject.codec
            ->DecodeRange(payload, raw_size, begin, part, *subject.scratch)
            .ok();
    parts_ok = parts_ok && part_ok;
    // LZ4 leaves the bytes of a match at distance 0 unspecified.
    QUIRE_CHECK(
        !whole_ok || subject.id == CodecId::kLz4 ||
        std::ranges::equal(part, ByteView(raw).subspan(begin, part.size())));
  }
  QUIRE_CHECK(whole_ok == parts_ok || (payload.has_recipe && parts_ok));
  // Reproducing members can fail where inflating does not.
  std::vector<uint8_t> text;
  Recipe recipe;
  const bool inflated_ok =
      subject.codec
          ->DecodeInflated(payload, raw_size, text, recipe, *subject.scratch)
          .ok();
  QUIRE_CHECK(inflated_ok || !whole_ok);
  if (inflated_ok && !payload.has_recipe) {
    QUIRE_CHECK(recipe.members.empty() && text.size() == raw_size);
    QUIRE_CHECK(subject.id == CodecId::kLz4 || text == raw);
  }
}

}  // namespace
}  // namespace quire

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  quire::Compare({data, size});
  return 0;
}
