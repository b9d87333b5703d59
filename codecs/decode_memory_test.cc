// SPDX-License-Identifier: Apache-2.0
#include <malloc.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "gtest/gtest.h"

#include "codecs/base/bytes.h"
#include "testing/base/status_matchers.h"
#include "testing/codecs/codec_test_inputs.h"
#include "testing/codecs/deflate_test_streams.h"

namespace quire {
namespace {

// Bytes of the heap in use; 0 under sanitizers with an allocator of their own.
size_t HeapBytes() {
  const struct mallinfo2 info = mallinfo2();
  return info.uordblks + info.hblkhd;
}

// The texts of a block, one with compressed members in it.
std::vector<std::string> BlockTexts(size_t size,
                                    const std::string& dictionary) {
  TestRandom random(1);
  std::vector<std::string> texts;
  for (TestInput& input : TestInputs(random, size, dictionary)) {
    texts.push_back(std::move(input.text));
  }
  std::string members;
  while (members.size() < size) {
    members +=
        ZlibStream({}, RandomText(random, size / 4), DeflateContainer::kZlib);
  }
  members.resize(size);
  texts.push_back(std::move(members));
  return texts;
}

size_t ScratchBytes(const BlockCodec& decoder,
                    const std::vector<std::vector<uint8_t>>& blocks,
                    size_t size) {
  std::vector<uint8_t> out(size);
  const size_t before = HeapBytes();
  const auto scratch = decoder.NewScratch();
  for (const std::vector<uint8_t>& stored : blocks) {
    QUIRE_EXPECT_OK(decoder.Decode(stored, out, *scratch));
    for (const size_t offset : {size_t{0}, size_t{1}, size / 2}) {
      QUIRE_EXPECT_OK(decoder.DecodeRange(
          stored, size, offset,
          MutableByteView(out).first(size - std::max(offset, size_t{1}) - 1),
          *scratch));
    }
  }
  const size_t after = HeapBytes();
  return after - std::min(before, after);
}

TEST(DecodeMemoryTest, BoundsTheScratchOfEachCodec) {
  const auto context = MakeTestContext(256 << 10);
  for (const size_t size : {size_t{64} << 10, kBlockSizeBytesMax}) {
    const std::vector<std::string> texts =
        BlockTexts(size, context->dictionary);
    for (const CodecInfo& info : AllCodecs()) {
      const CodecSpec spec = DefaultCodecSpec(info);
      QUIRE_ASSERT_OK_AND_ASSIGN(
          const auto encoder,
          MakeBlockCodec(spec, context, CodecUse::kEncodeAndDecode));
      QUIRE_ASSERT_OK_AND_ASSIGN(
          const auto decoder, MakeBlockCodec(spec, context, CodecUse::kDecode));
      const auto scratch = encoder->NewScratch();
      std::vector<std::vector<uint8_t>> blocks;
      for (const std::string& text : texts) {
        std::vector<uint8_t>& stored =
            blocks.emplace_back(encoder->StoredSizeMax(size));
        QUIRE_ASSERT_OK_AND_ASSIGN(
            const size_t stored_size,
            encoder->Encode(AsBytes(text), stored, *scratch));
        stored.resize(stored_size);
      }
      const size_t bytes = ScratchBytes(*decoder, blocks, size);
      EXPECT_LE(bytes, PartitionScratchBytesMax(info.id, size))
          << info.name << " " << size;
    }
  }
}

}  // namespace
}  // namespace quire
