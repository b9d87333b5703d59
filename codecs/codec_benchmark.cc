// SPDX-License-Identifier: Apache-2.0
//
// Speed and size of every registered codec at its default level, on blocks of
// 64 KiB spread evenly over the file that QUIRE_BENCHMARK_FILE names, against a
// dictionary of 16 MiB sampled from all of it; without a file, on generated
// text (which says nothing about sizes). One thread.
//
// bytes_per_second counts decoded bytes; "rate" is what the blocks take as
// stored, in percent, without the dictionary.
#include <benchmark/benchmark.h>

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
#include "codecs/codec_test_inputs.h"
#include "codecs/rlz/uniform_dictionary.h"

namespace quire {
namespace {

constexpr size_t kBlockSize = 64 << 10;
constexpr size_t kRangeSize = 16 << 10;

[[noreturn]] void Die(const std::string& message) {
  std::cerr << "codec_benchmark: " << message << "\n";
  std::exit(1);
}

struct Corpus {
  std::vector<std::string> blocks;
  std::shared_ptr<const CodecContext> context;
};

std::string Sample(const UniformDictionaryOptions& options, uint64_t text_size,
                   std::istream& text) {
  auto builder = MakeUniformDictionaryBuilder(options, text_size);
  if (!builder.ok()) {
    Die(builder.status().ToString());
  }
  std::string piece(1 << 20, '\0');
  while (text.read(piece.data(), static_cast<std::streamsize>(piece.size())),
         text.gcount() > 0) {
    const absl::Status status = (*builder)->Add(
        AsBytes(piece).first(static_cast<size_t>(text.gcount())));
    if (!status.ok()) {
      Die(status.ToString());
    }
  }
  if (const absl::Status status = (*builder)->FinishPass(); !status.ok()) {
    Die(status.ToString());
  }
  return (*builder)->Take();
}

Corpus ReadCorpus(const std::string& path) {
  const uint64_t text_size = std::filesystem::file_size(path);
  std::ifstream file(path, std::ios::binary);
  Corpus corpus;
  auto context = std::make_shared<CodecContext>();
  context->dictionary = Sample({}, text_size, file);
  corpus.context = std::move(context);
  file.clear();
  const uint64_t block_count = text_size / kBlockSize;
  const uint64_t wanted = std::min<uint64_t>(block_count, 256);
  for (uint64_t i = 0; i < wanted; ++i) {
    std::string block(kBlockSize, '\0');
    file.seekg(
        static_cast<std::streamoff>(i * block_count / wanted * kBlockSize));
    if (!file.read(block.data(), kBlockSize)) {
      Die(absl::StrCat("cannot read ", path));
    }
    corpus.blocks.push_back(std::move(block));
  }
  if (corpus.blocks.empty()) {
    Die(absl::StrCat(path, " is smaller than a block"));
  }
  return corpus;
}

Corpus GenerateCorpus() {
  TestRandom random(1);
  Corpus corpus;
  auto context = std::make_shared<CodecContext>();
  context->dictionary = RandomText(random, 256 << 10);
  for (int i = 0; i < 8; ++i) {
    corpus.blocks.push_back(
        EditedPieces(random, context->dictionary, kBlockSize));
  }
  corpus.context = std::move(context);
  return corpus;
}

const Corpus& TheCorpus() {
  static const auto* const corpus = [] {
    const char* const path = std::getenv("QUIRE_BENCHMARK_FILE");
    return new Corpus(path == nullptr ? GenerateCorpus() : ReadCorpus(path));
  }();
  return *corpus;
}

// A codec with the corpus in its stored form.
struct Subject {
  explicit Subject(const CodecInfo& info) {
    auto made = MakeBlockCodec({.id = info.id, .level = info.level_default},
                               TheCorpus().context, CodecUse::kEncodeAndDecode);
    if (!made.ok()) {
      Die(made.status().ToString());
    }
    codec = std::move(*made);
    scratch = codec->NewScratch();
    std::vector<uint8_t> buffer(codec->StoredSizeMax(kBlockSize));
    for (const std::string& block : TheCorpus().blocks) {
      const auto size = codec->Encode(AsBytes(block), buffer, *scratch);
      if (!size.ok()) {
        Die(size.status().ToString());
      }
      stored_size += *size;
      stored.emplace_back(buffer.begin(),
                          buffer.begin() + static_cast<ptrdiff_t>(*size));
    }
  }

  double RatePercent() const {
    return 100.0 * static_cast<double>(stored_size) /
           static_cast<double>(stored.size() * kBlockSize);
  }

  std::unique_ptr<BlockCodec> codec;
  std::unique_ptr<BlockCodec::Scratch> scratch;
  std::vector<std::vector<uint8_t>> stored;
  size_t stored_size = 0;
};

Subject& SubjectFor(const CodecInfo& info) {
  static auto* const subjects = new std::map<CodecId, Subject>;
  return subjects->try_emplace(info.id, info).first->second;
}

void BM_Encode(benchmark::State& state, const CodecInfo* info) {
  Subject& subject = SubjectFor(*info);
  std::vector<uint8_t> buffer(subject.codec->StoredSizeMax(kBlockSize));
  size_t next = 0;
  for (auto _ : state) {
    const std::string& block = TheCorpus().blocks[next];
    next = (next + 1) % subject.stored.size();
    const auto size =
        subject.codec->Encode(AsBytes(block), buffer, *subject.scratch);
    if (!size.ok()) {
      state.SkipWithError(std::string(size.status().message()).c_str());
      return;
    }
  }
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations()) *
                          static_cast<int64_t>(kBlockSize));
  state.counters["rate"] = subject.RatePercent();
}

void BM_Decode(benchmark::State& state, const CodecInfo* info) {
  Subject& subject = SubjectFor(*info);
  std::vector<uint8_t> raw(kBlockSize);
  size_t next = 0;
  for (auto _ : state) {
    const std::vector<uint8_t>& stored = subject.stored[next];
    next = (next + 1) % subject.stored.size();
    const absl::Status status =
        subject.codec->Decode(stored, raw, *subject.scratch);
    if (!status.ok()) {
      state.SkipWithError(std::string(status.message()).c_str());
      return;
    }
  }
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations()) *
                          static_cast<int64_t>(kBlockSize));
}

// Ranges at random, unaligned, within one block.
void BM_DecodeRange(benchmark::State& state, const CodecInfo* info) {
  Subject& subject = SubjectFor(*info);
  std::vector<uint8_t> raw(kRangeSize);
  TestRandom random(1);
  for (auto _ : state) {
    const size_t block = RandomBelow(random, subject.stored.size());
    const size_t offset = RandomBelow(random, kBlockSize - kRangeSize + 1);
    const absl::Status status = subject.codec->DecodeRange(
        subject.stored[block], kBlockSize, offset, raw, *subject.scratch);
    if (!status.ok()) {
      state.SkipWithError(std::string(status.message()).c_str());
      return;
    }
  }
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations()) *
                          static_cast<int64_t>(kRangeSize));
  state.SetItemsProcessed(static_cast<int64_t>(state.iterations()));
}

// Run before main(), as the macros of the library do it.
[[maybe_unused]] const bool kRegistered = [] {
  for (const CodecInfo& info : AllCodecs()) {
    for (const auto& [name, function] :
         {std::pair{"encode", &BM_Encode}, std::pair{"decode", &BM_Decode},
          std::pair{"range", &BM_DecodeRange}}) {
      benchmark::RegisterBenchmark(
          absl::StrCat(name, "/", std::string(info.name)).c_str(), function,
          &info);
    }
  }
  return true;
}();

}  // namespace
}  // namespace quire
