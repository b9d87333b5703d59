// SPDX-License-Identifier: Apache-2.0
//
// Ranges of 64 bytes to 64 KiB out of blocks of 64 KiB, in random order, by
// fsst with the archive's table (level 1), with a table in each block, as codes
// that are found and copied, and by codecs that decode the block up to the
// range's end. The text is that of QUIRE_BENCHMARK_FILE, or made up.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "benchmark/benchmark.h"

#include "codecs/base/bytes.h"
#include "codecs/base/check.h"
#include "codecs/block_codec.h"
#include "codecs/codec_test_inputs.h"
#include "codecs/fsst/block/fsst_block.h"
#include "codecs/fsst/block/fsst_codec.h"
#include "codecs/fsst/training/symbol_trainer.h"

namespace quire {
namespace {

constexpr size_t kBlockSize = 64 << 10;
constexpr size_t kTextSize = 16 << 20;

const std::string& Text() {
  static const auto& text = *new std::string([] {
    const char* const path = std::getenv("QUIRE_BENCHMARK_FILE");
    std::string read;
    if (path != nullptr) {
      std::ifstream file(path, std::ios::binary);
      read.assign(std::istreambuf_iterator<char>(file), {});
    }
    TestRandom random(1);
    return read.size() < kBlockSize ? RandomText(random, kTextSize, 2000)
                                    : read.substr(0, kTextSize);
  }());
  return text;
}

std::vector<ByteView> Blocks() {
  std::vector<ByteView> blocks;
  for (size_t at = 0; at + kBlockSize <= Text().size(); at += kBlockSize) {
    blocks.push_back(AsBytes(Text()).subspan(at, kBlockSize));
  }
  return blocks;
}

const std::shared_ptr<const CodecContext>& ContextOfText() {
  static const auto& context = *new std::shared_ptr<const CodecContext>([] {
    auto made = std::make_shared<CodecContext>();
    made->symbol_table = TrainSymbolTable(Blocks()).Serialise();
    return made;
  }());
  return context;
}

// A text's blocks as a codec stores them.
struct StoredText {
  StoredText(const std::string& spec,
             std::shared_ptr<const CodecContext> context)
      : codec(MakeBlockCodec(ParseCodecSpec(spec).value(), std::move(context),
                             CodecUse::kEncodeAndDecode)
                  .value()),
        scratch(codec->NewScratch()) {
    std::vector<uint8_t> stored(codec->StoredSizeMax(kBlockSize));
    for (const ByteView raw : Blocks()) {
      const size_t size = codec->Encode(raw, stored, *scratch).value();
      blocks.emplace_back(stored.begin(),
                          stored.begin() + static_cast<ptrdiff_t>(size));
      stored_size += size;
    }
  }

  std::unique_ptr<BlockCodec> codec;
  std::unique_ptr<BlockCodec::Scratch> scratch;
  std::vector<std::vector<uint8_t>> blocks;
  size_t stored_size = 0;
};

void DecodeRanges(benchmark::State& state, const std::string& spec,
                  bool has_table) {
  const StoredText text(spec, has_table ? ContextOfText() : nullptr);
  const auto size = static_cast<size_t>(state.range(0));
  std::vector<uint8_t> out(size);
  TestRandom random(2);
  while (state.KeepRunning()) {
    const auto& block = text.blocks[RandomBelow(random, text.blocks.size())];
    const size_t offset = RandomBelow(random, kBlockSize - size + 1);
    QUIRE_CHECK(
        text.codec->DecodeRange(block, kBlockSize, offset, out, *text.scratch)
            .ok());
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * state.range(0));
  state.counters["rate_percent"] =
      100 * static_cast<double>(text.stored_size) /
      static_cast<double>(text.blocks.size() * kBlockSize);
}

// What a server does that answers in FSST.
void CopyCodes(benchmark::State& state) {
  const SymbolTable table =
      SymbolTable::Parse(AsBytes(ContextOfText()->symbol_table)).value();
  const FsstEncoder encoder(table);
  const FsstDecoder decoder(table);
  std::vector<std::vector<uint8_t>> blocks;
  for (const ByteView raw : Blocks()) {
    std::vector<uint8_t> block(FsstBlockSizeMax(kBlockSize));
    block.resize(EncodeFsstBlock(encoder, raw, block));
    blocks.push_back(block);
  }
  const auto size = static_cast<size_t>(state.range(0));
  std::vector<uint8_t> out(2 * kBlockSize);
  TestRandom random(2);
  while (state.KeepRunning()) {
    const auto& block = blocks[RandomBelow(random, blocks.size())];
    const size_t offset = RandomBelow(random, kBlockSize - size + 1);
    const auto view = FsstBlockView::Parse(block, kBlockSize);
    const auto found = view->Find(decoder, offset, size);
    std::ranges::copy(found->codes, out.begin());
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * state.range(0));
}

BENCHMARK_CAPTURE(DecodeRanges, fsst_archive_table, "fsst:1", true)
    ->RangeMultiplier(4)
    ->Range(64, kBlockSize);
BENCHMARK_CAPTURE(DecodeRanges, fsst_own_tables, "fsst:2", true)
    ->RangeMultiplier(4)
    ->Range(64, kBlockSize);
BENCHMARK(CopyCodes)->RangeMultiplier(4)->Range(64, kBlockSize);
BENCHMARK_CAPTURE(DecodeRanges, copy, "copy", false)
    ->RangeMultiplier(4)
    ->Range(64, kBlockSize);
BENCHMARK_CAPTURE(DecodeRanges, lz4, "lz4", false)
    ->RangeMultiplier(4)
    ->Range(64, kBlockSize);
BENCHMARK_CAPTURE(DecodeRanges, zstd, "zstd", false)
    ->RangeMultiplier(4)
    ->Range(64, kBlockSize);

}  // namespace
}  // namespace quire
