// SPDX-License-Identifier: Apache-2.0
//
// Heads of inflated blocks, which are untrusted: parsed, and followed with any
// text.
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "codecs/base/bytes.h"
#include "codecs/base/check.h"
#include "codecs/base/endian.h"
#include "codecs/base/varint.h"
#include "codecs/inflate/inflated_block.h"

namespace quire {
namespace {

void TakeAndFollow(ByteView input) {
  if (input.size() < sizeof(uint16_t)) {
    return;
  }
  const size_t raw_size = LoadLittleEndian<uint16_t>(input.data()) + size_t{1};
  ByteView stored = input.subspan(sizeof(uint16_t));
  const ByteView begin = stored;
  const auto count = TakeVarint(stored);
  InflatedHead head;
  if (!count.ok() || !TakeInflatedHead(stored, *count, raw_size, head).ok()) {
    return;
  }
  // There is one form of each head.
  std::string again;
  AppendInflatedHead(head, again);
  QUIRE_CHECK(std::ranges::equal(AsBytes(again), begin.first(again.size())));
  // The rest of the input as the text, over and over.
  std::vector<uint8_t> text(head.text_size_bytes);
  for (size_t i = 0; i < text.size() && !stored.empty(); ++i) {
    text[i] = stored[i % stored.size()];
  }
  static auto* const encoder = new DeflateEncoder;
  std::vector<uint8_t> raw(raw_size);
  RecreateBlock(
      head, [&] { return absl::StatusOr<ByteView>(text); }, *encoder, raw)
      .IgnoreError();
}

// A block with what the finder takes for members comes back.
void InflateAndRecreate(ByteView block) {
  if (block.empty() || block.size() > kBlockSizeBytesMax) {
    return;
  }
  static auto* const inflater = new BlockInflater(kInflatedLargeSizeMax);
  static auto* const encoder = new DeflateEncoder;
  if (!inflater->Inflate(block)) {
    return;
  }
  std::vector<uint8_t> raw(block.size());
  // In pieces that end anywhere.
  ByteView left = inflater->text();
  const auto next = [&] {
    const ByteView piece = left.first(std::min<size_t>(left.size(), 1009));
    left = left.subspan(piece.size());
    return absl::StatusOr<ByteView>(piece);
  };
  QUIRE_CHECK(RecreateBlock(inflater->head(), next, *encoder, raw).ok());
  QUIRE_CHECK(std::ranges::equal(raw, block));
}

}  // namespace
}  // namespace quire

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  quire::TakeAndFollow({data, size});
  quire::InflateAndRecreate({data, size});
  return 0;
}
