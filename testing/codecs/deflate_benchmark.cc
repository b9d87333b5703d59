// SPDX-License-Identifier: Apache-2.0
//
// Compares our encoder with zlib's deflate(), and the search for members with a
// copy of the document. The text is the file that QUIRE_BENCHMARK_FILE names
// (at most its first 16 MiB), or a small generated text, in pieces of 32 KiB, a
// typical size of members.
#include <benchmark/benchmark.h>

#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "codecs/base/bytes.h"
#include "codecs/base/check.h"
#include "codecs/deflate/deflate_encoder.h"
#include "codecs/deflate/deflate_finder.h"
#include "testing/codecs/deflate_test_streams.h"

namespace quire {
namespace {

constexpr size_t kTextSizeMax = size_t{16} << 20;
constexpr size_t kPieceSize = size_t{32} << 10;

const std::string& Text() {
  static const std::string text = [] {
    std::string read;
    if (const char* const path = std::getenv("QUIRE_BENCHMARK_FILE")) {
      std::ifstream file(path, std::ios::binary);
      read.resize(kTextSizeMax);
      file.read(read.data(), static_cast<std::streamsize>(read.size()));
      read.resize(static_cast<size_t>(file.gcount()));
      QUIRE_CHECK(!read.empty(), path, " cannot be read, or is empty");
    } else {
      TestRandom random(1);
      read = RandomText(random, 300000);
    }
    return read;
  }();
  return text;
}

std::vector<std::string> Pieces() {
  std::vector<std::string> pieces;
  for (size_t at = 0; at < Text().size(); at += kPieceSize) {
    pieces.push_back(Text().substr(at, kPieceSize));
  }
  return pieces;
}

DeflateParameters Parameters(const benchmark::State& state) {
  return {.level = static_cast<uint8_t>(state.range(0))};
}

void SetBytes(benchmark::State& state) {
  state.SetBytesProcessed(static_cast<int64_t>(
      static_cast<size_t>(state.iterations()) * Text().size()));
}

void BM_Zlib(benchmark::State& state) {
  const std::vector<std::string> pieces = Pieces();
  for (auto _ : state) {
    for (const std::string& piece : pieces) {
      benchmark::DoNotOptimize(ZlibStream(Parameters(state), piece));
    }
  }
  SetBytes(state);
}

BENCHMARK(BM_Zlib)->DenseRange(1, 9);

void BM_Encoder(benchmark::State& state) {
  const std::vector<std::string> pieces = Pieces();
  DeflateEncoder encoder;
  for (auto _ : state) {
    for (const std::string& piece : pieces) {
      benchmark::DoNotOptimize(
          EncodedStream(encoder, Parameters(state), piece));
    }
  }
  SetBytes(state);
}

BENCHMARK(BM_Encoder)->DenseRange(1, 9);

// Documents without members, the usual case.
void BM_FindNothing(benchmark::State& state) {
  DeflateFinder finder;
  for (auto _ : state) {
    finder.Find(AsBytes(Text()), [](const DeflateMember& member) {
      benchmark::DoNotOptimize(member.offset);
    });
  }
  SetBytes(state);
}

BENCHMARK(BM_FindNothing);

// Documents that are members, for each level; bytes are of their text.
void BM_FindMembers(benchmark::State& state) {
  std::vector<std::string> documents;
  for (const std::string& piece : Pieces()) {
    documents.push_back(
        ZlibStream(Parameters(state), piece, DeflateContainer::kZlib));
  }
  DeflateFinder finder;
  for (auto _ : state) {
    for (const std::string& document : documents) {
      finder.Find(AsBytes(document), [](const DeflateMember& member) {
        benchmark::DoNotOptimize(member.offset);
      });
    }
  }
  SetBytes(state);
}

BENCHMARK(BM_FindMembers)->Arg(1)->Arg(6)->Arg(9);

}  // namespace
}  // namespace quire
