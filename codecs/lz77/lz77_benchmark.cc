// SPDX-License-Identifier: GPL-3.0-or-later
//
// Ranges of a block by recursive extraction, by decoding from the block's start
// ([0, b]), and by decoding all of it; over LZ4's parse (high compression) and
// over zlib's without Huffman codes. The block is the start of the file that
// QUIRE_BENCHMARK_FILE names, or generated. One thread. Counters: bits a
// phrase, percent of the text and microseconds to build, of each index.
#include <benchmark/benchmark.h>
#include <lz4.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

#include "codecs/base/check.h"
#include "codecs/block/deflate_check.h"
#include "codecs/block/deflate_decoder.h"
#include "codecs/codec_test_inputs.h"
#include "codecs/lz77/lz77_test_blocks.h"
#include "codecs/lz77/phrase_index.h"
#include "codecs/lz77/recursive_extractor.h"

namespace quire {
namespace {

constexpr size_t kBlockSize = 256 << 10;
constexpr size_t kOffsetCount = 1024;

struct Sample {
  std::string text;
  std::vector<uint8_t> stored;
  uint32_t match_size_min;

  PhraseBlock block() const {
    return *PhraseBlock::Check(stored, text.size(), match_size_min);
  }
};

const std::string& Text() {
  static const std::string text = [] {
    std::string read;
    if (const char* const path = std::getenv("QUIRE_BENCHMARK_FILE")) {
      std::ifstream file(path, std::ios::binary);
      read.assign(std::istreambuf_iterator<char>(file), {});
      read.resize(std::min(read.size(), kBlockSize));
      QUIRE_CHECK(!read.empty(), path);
    } else {
      TestRandom random(1);
      read = RandomText(random, kBlockSize);
    }
    return read;
  }();
  return text;
}

const Sample& Lz4Sample() {
  static const Sample sample{Text(), Lz4Block(Text()), kLz4MatchSizeMin};
  return sample;
}

const Sample& DeflateSample() {
  static const Sample sample{Text(), DeflateParse(Text()),
                             kDeflateMatchSizeMin};
  return sample;
}

std::vector<uint32_t> Offsets(size_t text_size, size_t size) {
  TestRandom random(2);
  std::vector<uint32_t> offsets;
  for (size_t i = 0; i < kOffsetCount; ++i) {
    offsets.push_back(
        static_cast<uint32_t>(RandomBelow(random, text_size - size + 1)));
  }
  return offsets;
}

template <class Index>
void BM_Recursive(benchmark::State& state, const Sample& sample) {
  const PhraseBlock block = sample.block();
  const std::vector<PhrasePlace> places = block.Places();
  const Index index(places, sample.text.size(), sample.stored.size());
  const auto size =
      std::min(static_cast<size_t>(state.range(0)), sample.text.size());
  const std::vector<uint32_t> offsets = Offsets(sample.text.size(), size);
  auto extractor = std::make_unique<RecursiveExtractor>();
  std::vector<uint8_t> out(size);
  size_t i = 0;
  uint64_t steps = 0;
  for (auto _ : state) {
    QUIRE_CHECK(
        extractor->Extract(block, index, offsets[i++ % kOffsetCount], out));
    benchmark::DoNotOptimize(out.data());
    steps += extractor->steps();
  }
  state.counters["steps"] = benchmark::Counter(
      static_cast<double>(steps), benchmark::Counter::kAvgIterations);
  state.counters["bits_a_phrase"] = static_cast<double>(index.MemoryBytes()) *
                                    8 / static_cast<double>(places.size());
  state.counters["percent_of_text"] = static_cast<double>(index.MemoryBytes()) *
                                      100 /
                                      static_cast<double>(sample.text.size());
}

template <class Index>
void BM_BuildIndex(benchmark::State& state, const Sample& sample) {
  for (auto _ : state) {
    const PhraseBlock block = sample.block();
    const std::vector<PhrasePlace> places = block.Places();
    const Index index(places, sample.text.size(), sample.stored.size());
    benchmark::DoNotOptimize(index.Find(0));
  }
}

void BM_Lz4FromStart(benchmark::State& state) {
  const Sample& sample = Lz4Sample();
  const auto size =
      std::min(static_cast<size_t>(state.range(0)), sample.text.size());
  const std::vector<uint32_t> offsets = Offsets(sample.text.size(), size);
  std::string text(sample.text.size(), '\0');
  size_t i = 0;
  for (auto _ : state) {
    const int end = static_cast<int>(offsets[i++ % kOffsetCount] + size);
    QUIRE_CHECK(LZ4_decompress_safe_partial(
                    reinterpret_cast<const char*>(sample.stored.data()),
                    text.data(), static_cast<int>(sample.stored.size()), end,
                    end) == end);
    benchmark::DoNotOptimize(text.data());
  }
}

void BM_InflateFromStart(benchmark::State& state) {
  const std::string stream = RawDeflate(Text(), "", 6);
  const auto size =
      std::min(static_cast<size_t>(state.range(0)), Text().size());
  const std::vector<uint32_t> offsets = Offsets(Text().size(), size);
  std::vector<uint8_t> text(Text().size());
  DeflateDecoder decoder;
  size_t i = 0;
  for (auto _ : state) {
    decoder.Start(AsBytes(stream), text);
    QUIRE_CHECK(decoder.DecodeTo(offsets[i++ % kOffsetCount] + size).ok());
    benchmark::DoNotOptimize(text.data());
  }
}

void AllSizes(benchmark::internal::Benchmark* benchmark) {
  benchmark->ArgName("bytes");
  for (int64_t size = 8; size <= 4096; size *= 2) {
    benchmark->Arg(size);
  }
}

template <class Index>
void RegisterIndex(const std::string& name) {
  const std::pair<std::string, const Sample& (*)()> samples[] = {
      {"lz4", Lz4Sample}, {"deflate", DeflateSample}};
  for (const auto& [parse, sample] : samples) {
    AllSizes(benchmark::RegisterBenchmark(
        absl::StrCat("BM_Recursive/", parse, "/", name).c_str(),
        [sample = sample](benchmark::State& state) {
          BM_Recursive<Index>(state, sample());
        }));
    benchmark::RegisterBenchmark(
        absl::StrCat("BM_BuildIndex/", parse, "/", name).c_str(),
        [sample = sample](benchmark::State& state) {
          BM_BuildIndex<Index>(state, sample());
        });
  }
}

[[maybe_unused]] const bool kIsRegistered = [] {
  RegisterIndex<PlainPhraseIndex>("plain");
  RegisterIndex<SparsePhraseIndex>("sparse");
  RegisterIndex<SampledPhraseIndex>("sampled");
  RegisterIndex<GridPhraseIndex>("grid");
  return true;
}();

BENCHMARK(BM_Lz4FromStart)->Apply(AllSizes);
BENCHMARK(BM_InflateFromStart)->Apply(AllSizes);

}  // namespace
}  // namespace quire
