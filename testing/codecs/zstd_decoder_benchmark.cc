// SPDX-License-Identifier: Apache-2.0
//
// This decoder and libzstd on the same frames in one run: whole blocks and
// random ranges of 16 KiB, from blocks of 64 and 16 KiB stored by the codec rlz
// against a dictionary of 16 MiB. Blocks and dictionary samples are spread
// evenly over the file QUIRE_BENCHMARK_FILE; without it, all is small and
// generated. One thread.
//
// libzstd stops at the end of an inner block of up to 128 KiB: for it a range
// is a whole block.
#define ZSTD_STATIC_LINKING_ONLY
#include <benchmark/benchmark.h>
#include <zstd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

#include "codecs/base/bytes.h"
#include "codecs/block_codec.h"
#include "codecs/zstd/decoder/sequence_copy.h"
#include "codecs/zstd/decoder/zstd_decoder.h"
#include "testing/codecs/codec_test_inputs.h"

namespace quire {
namespace {

constexpr size_t kDictionarySize = 16 << 20;
constexpr size_t kSampleSize = 4 << 10;
constexpr size_t kTextSize = 32 << 20;
constexpr size_t kRangeSize = 16 << 10;

[[noreturn]] void Die(const std::string& message) {
  std::cerr << "zstd_decoder_benchmark: " << message << "\n";
  std::exit(1);
}

struct Corpus {
  std::shared_ptr<const CodecContext> context;
  std::string text;
};

// Pieces of `size` bytes spread evenly over `file`, `total` bytes in all.
std::string Spread(std::ifstream& file, uint64_t file_size, size_t size,
                   size_t total) {
  std::string text(total, '\0');
  const size_t count = total / size;
  for (size_t i = 0; i < count; ++i) {
    file.seekg(static_cast<std::streamoff>((file_size - size) / count * i));
    file.read(&text[i * size], static_cast<std::streamsize>(size));
  }
  return text;
}

Corpus MakeCorpus() {
  Corpus corpus;
  auto context = std::make_shared<CodecContext>();
  if (const char* const path = std::getenv("QUIRE_BENCHMARK_FILE")) {
    std::error_code error;
    const uint64_t size = std::filesystem::file_size(path, error);
    std::ifstream file(path, std::ios::binary);
    if (error || !file || size < 2 * kTextSize) {
      Die(absl::StrCat(path, " cannot be read, or is too small"));
    }
    context->dictionary = Spread(file, size, kSampleSize, kDictionarySize);
    corpus.text = Spread(file, size, 64 << 10, kTextSize);
  } else {
    TestRandom random(1);
    context->dictionary = RandomText(random, 256 << 10);
    corpus.text = EditedPieces(random, context->dictionary, 512 << 10);
  }
  corpus.context = std::move(context);
  return corpus;
}

const Corpus& TheCorpus() {
  static const auto* const corpus = new Corpus(MakeCorpus());
  return *corpus;
}

// The corpus as stored in blocks of one size.
const std::vector<std::vector<uint8_t>>& Frames(size_t block_size) {
  static auto* const all =
      new std::map<size_t, std::vector<std::vector<uint8_t>>>;
  std::vector<std::vector<uint8_t>>& frames = (*all)[block_size];
  if (!frames.empty()) {
    return frames;
  }
  const CodecInfo& info = *FindCodec(CodecId::kRlz);
  auto codec = MakeBlockCodec(DefaultCodecSpec(info), TheCorpus().context,
                              CodecUse::kEncodeAndDecode);
  if (!codec.ok()) {
    Die(codec.status().ToString());
  }
  const auto scratch = (*codec)->NewScratch();
  std::vector<uint8_t> buffer((*codec)->StoredSizeMax(block_size));
  const ByteView text = AsBytes(TheCorpus().text);
  for (size_t i = 0; i + block_size <= text.size(); i += block_size) {
    const auto size =
        (*codec)->Encode(text.subspan(i, block_size), buffer, *scratch);
    if (!size.ok()) {
      Die(size.status().ToString());
    }
    frames.emplace_back(buffer.begin(),
                        buffer.begin() + static_cast<ptrdiff_t>(*size));
  }
  return frames;
}

// Decoders of the first `size` bytes of a block to the front of `output`.
class OurDecoder {
 public:
  bool Decode(ByteView stored, size_t block_size, size_t size,
              MutableByteView output) {
    return decoder_.Decode(stored, AsBytes(TheCorpus().context->dictionary),
                           block_size, size, output);
  }

 private:
  ZstdDecoder decoder_;
};

class LibraryDecoder {
 public:
  bool Decode(ByteView stored, size_t block_size, size_t /*size*/,
              MutableByteView output) {
    return ZSTD_decompress_usingDDict(context_, output.data(), block_size,
                                      stored.data(), stored.size(),
                                      dictionary_) == block_size;
  }

 private:
  // Both live as long as the program.
  ZSTD_DCtx* const context_ = ZSTD_createDCtx();
  ZSTD_DDict* const dictionary_ = ZSTD_createDDict_advanced(
      TheCorpus().context->dictionary.data(),
      TheCorpus().context->dictionary.size(), ZSTD_dlm_byRef,
      ZSTD_dct_rawContent, ZSTD_customMem{});
};

template <typename Decoder>
void BM_Block(benchmark::State& state) {
  static auto* const decoder = new Decoder;
  const auto block_size = static_cast<size_t>(state.range(0));
  const auto& frames = Frames(block_size);
  std::vector<uint8_t> output(block_size);
  size_t next = 0;
  for (auto _ : state) {
    if (!decoder->Decode(frames[next], block_size, block_size, output)) {
      state.SkipWithError("a frame was refused");
      return;
    }
    next = (next + 1) % frames.size();
  }
  state.SetBytesProcessed(state.iterations() * state.range(0));
}

template <typename Decoder>
void BM_Range(benchmark::State& state) {
  static auto* const decoder = new Decoder;
  const auto block_size = static_cast<size_t>(state.range(0));
  const auto& frames = Frames(block_size);
  std::vector<uint8_t> output(block_size + kCopyExcess);
  std::vector<uint8_t> range(kRangeSize);
  TestRandom random(1);
  for (auto _ : state) {
    const auto& frame = frames[RandomBelow(random, frames.size())];
    const size_t offset = RandomBelow(random, block_size - kRangeSize + 1);
    if (!decoder->Decode(frame, block_size, offset + kRangeSize, output)) {
      state.SkipWithError("a frame was refused");
      return;
    }
    std::copy_n(&output[offset], kRangeSize, range.begin());
    benchmark::DoNotOptimize(range.data());
  }
  state.SetItemsProcessed(state.iterations());
}

BENCHMARK_TEMPLATE(BM_Block, OurDecoder)->Arg(64 << 10)->Arg(16 << 10);
BENCHMARK_TEMPLATE(BM_Block, LibraryDecoder)->Arg(64 << 10)->Arg(16 << 10);
BENCHMARK_TEMPLATE(BM_Range, OurDecoder)->Arg(64 << 10)->Arg(16 << 10);
BENCHMARK_TEMPLATE(BM_Range, LibraryDecoder)->Arg(64 << 10)->Arg(16 << 10);

}  // namespace
}  // namespace quire
