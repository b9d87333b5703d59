// SPDX-License-Identifier: Apache-2.0
//
// FSST and LZ4 on one column of strings: the file QUIRE_BENCHMARK_FILE,
// repeated to 8 MiB, or a small generated text. As one text, and with each line
// as a separate string. One thread.
//
// The reference for decoding is Algorithm 1 of the FSST paper unchanged: one
// code at a time; it stores all eight bytes of a symbol, writes past the text
// and checks nothing.
//
// loadtest/papers/paper_fsst.py runs it over a directory of columns.
#include <benchmark/benchmark.h>
#include <lz4.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "codecs/base/bytes.h"
#include "codecs/base/check.h"
#include "codecs/base/endian.h"
#include "codecs/fsst/decode/fsst_decoder.h"
#include "codecs/fsst/encode/fsst_encoder.h"
#include "codecs/fsst/table/symbol_table.h"
#include "codecs/fsst/training/symbol_trainer.h"
#include "testing/codecs/codec_test_inputs.h"

namespace quire {
namespace {

constexpr size_t kColumnSize = 8 << 20;

struct Column {
  std::string text = {};
  // With their ends of line.
  std::vector<ByteView> lines = {};
};

Column MakeColumn() {
  std::string piece;
  size_t size = 64 << 10;
  if (const char* const path = std::getenv("QUIRE_BENCHMARK_FILE")) {
    std::ifstream file(path, std::ios::binary);
    piece.assign(std::istreambuf_iterator<char>(file), {});
    size = kColumnSize;
    QUIRE_CHECK(!piece.empty(), path, " cannot be read, or is empty");
  } else {
    TestRandom random(1);
    piece = RandomText(random, 30000);
  }
  Column column;
  while (column.text.size() < size) {
    column.text += piece.substr(0, size - column.text.size());
  }
  return column;
}

const Column& TheColumn() {
  static const Column* const column = [] {
    auto* const made = new Column(MakeColumn());
    const ByteView text = AsBytes(made->text);
    for (size_t begin = 0; begin < text.size();) {
      const size_t found = made->text.find('\n', begin);
      const size_t end = std::min(found, text.size() - 1) + 1;
      made->lines.push_back(text.subspan(begin, end - begin));
      begin = end;
    }
    return made;
  }();
  return *column;
}

ByteView TheText() {
  return AsBytes(TheColumn().text);
}

SymbolTable Train(FsstLevel level) {
  return TrainSymbolTable(std::array{TheText()}, {.level = level});
}

const SymbolTable& TheTable(FsstLevel level) {
  static const std::array<SymbolTable, 2> tables = {Train(FsstLevel::kDefault),
                                                    Train(FsstLevel::kHigh)};
  return tables[level == FsstLevel::kDefault ? 0 : 1];
}

// For lines as separate strings: no symbol crosses a line end.
const SymbolTable& TheLineTable() {
  static const SymbolTable table = TrainSymbolTable(TheColumn().lines);
  return table;
}

// The column and its lines, each by the encoder of the default level.
struct Encoded {
  std::vector<uint8_t> codes;
  std::vector<uint8_t> line_codes;
  std::vector<uint32_t> line_ends;
};

const Encoded& TheEncoded() {
  static const Encoded* const encoded = [] {
    auto* const made = new Encoded;
    const FsstEncoder encoder(TheTable(FsstLevel::kDefault));
    made->codes.resize(FsstEncoder::CodesSizeMax(TheText().size()));
    made->line_codes = made->codes;
    made->line_ends.resize(TheColumn().lines.size());
    made->codes.resize(encoder.Encode(TheText(), made->codes));
    made->line_codes.resize(FsstEncoder(TheLineTable())
                                .EncodeStrings(TheColumn().lines,
                                               made->line_codes,
                                               made->line_ends));
    return made;
  }();
  return *encoded;
}

void Report(benchmark::State& state, size_t stored_size) {
  const auto size = static_cast<double>(TheText().size());
  state.SetBytesProcessed(state.iterations() *
                          static_cast<int64_t>(TheText().size()));
  state.counters["factor"] = size / static_cast<double>(stored_size);
}

void Require(benchmark::State& state, bool is_right) {
  if (!is_right) {
    state.SkipWithError("wrong bytes");
  }
}

void BM_Train(benchmark::State& state, FsstLevel level) {
  for (auto _ : state) {
    benchmark::DoNotOptimize(Train(level));
  }
}

void BM_Encode(benchmark::State& state, FsstLevel level) {
  const FsstEncoder encoder(TheTable(level), level);
  std::vector<uint8_t> codes(FsstEncoder::CodesSizeMax(TheText().size()));
  size_t size = 0;
  for (auto _ : state) {
    size = encoder.Encode(TheText(), codes);
  }
  Report(state, size + TheTable(level).Serialise().size());
}

void BM_EncodeLines(benchmark::State& state) {
  const FsstEncoder encoder(TheLineTable());
  std::vector<uint8_t> codes(FsstEncoder::CodesSizeMax(TheText().size()));
  std::vector<uint32_t> ends(TheColumn().lines.size());
  size_t size = 0;
  for (auto _ : state) {
    size = encoder.EncodeStrings(TheColumn().lines, codes, ends);
  }
  Report(state, size + TheLineTable().Serialise().size());
}

// Algorithm 1. REQUIRES: valid codes, and 7 bytes of space after the text.
struct PlainDecoder {
  std::array<uint64_t, 256> symbols = {};
  std::array<uint8_t, 256> sizes = {};

  __attribute__((noinline)) uint8_t* Decode(const uint8_t* in,
                                            const uint8_t* in_end,
                                            uint8_t* out) const {
    while (in < in_end) {
      const uint8_t code = *in++;
      if (code != kFsstEscape) {
        StoreLittleEndian(symbols[code], out);
        out += sizes[code];
      } else {
        *out++ = *in++;
      }
    }
    return out;
  }
};

void BM_DecodePlain(benchmark::State& state) {
  const SymbolTable& table = TheTable(FsstLevel::kDefault);
  PlainDecoder decoder;
  for (size_t code = 0; code < table.symbol_count(); ++code) {
    decoder.symbols[code] = table.symbol(code).bytes;
    decoder.sizes[code] = table.symbol(code).size;
  }
  const std::vector<uint8_t>& codes = TheEncoded().codes;
  std::vector<uint8_t> out(TheText().size() + 7);
  for (auto _ : state) {
    decoder.Decode(codes.data(), codes.data() + codes.size(), out.data());
  }
  Require(state, std::equal(TheText().begin(), TheText().end(), out.begin()));
  Report(state, codes.size());
}

void BM_Decode(benchmark::State& state, FsstInstructions instructions) {
  const FsstDecoder decoder(TheTable(FsstLevel::kDefault), instructions);
  std::vector<uint8_t> out(TheText().size());
  for (auto _ : state) {
    if (!decoder.DecodeExactly(TheEncoded().codes, out).ok()) {
      state.SkipWithError("refused");
      return;
    }
  }
  Require(state, std::equal(TheText().begin(), TheText().end(), out.begin()));
  Report(state, TheEncoded().codes.size());
}

void BM_DecodeLines(benchmark::State& state, FsstInstructions instructions) {
  const FsstDecoder decoder(TheLineTable(), instructions);
  std::vector<uint8_t> out(TheText().size());
  std::vector<uint32_t> ends(TheColumn().lines.size());
  for (auto _ : state) {
    if (!decoder
             .DecodeStrings(TheEncoded().line_codes, TheEncoded().line_ends,
                            out, ends)
             .ok()) {
      state.SkipWithError("refused");
      return;
    }
  }
  Require(state, std::equal(TheText().begin(), TheText().end(), out.begin()) &&
                     ends.back() == out.size());
  Report(state, TheEncoded().line_codes.size());
}

const char* Chars(ByteView bytes) {
  return reinterpret_cast<const char*>(bytes.data());
}

std::string Lz4Room() {
  const int size = LZ4_compressBound(static_cast<int>(TheText().size()));
  return std::string(static_cast<size_t>(size), '\0');
}

void BM_Lz4Encode(benchmark::State& state) {
  const ByteView text = TheText();
  std::string stored = Lz4Room();
  int size = 0;
  for (auto _ : state) {
    size = LZ4_compress_default(Chars(text), stored.data(),
                                static_cast<int>(text.size()),
                                static_cast<int>(stored.size()));
  }
  Report(state, static_cast<size_t>(size));
}

void BM_Lz4Decode(benchmark::State& state) {
  const ByteView text = TheText();
  std::string stored = Lz4Room();
  const int size = LZ4_compress_default(Chars(text), stored.data(),
                                        static_cast<int>(text.size()),
                                        static_cast<int>(stored.size()));
  std::string out(text.size(), '\0');
  for (auto _ : state) {
    LZ4_decompress_safe(stored.data(), out.data(), size,
                        static_cast<int>(out.size()));
  }
  Require(state, out == TheColumn().text);
  Report(state, static_cast<size_t>(size));
}

BENCHMARK_CAPTURE(BM_Train, default, FsstLevel::kDefault);
BENCHMARK_CAPTURE(BM_Train, high, FsstLevel::kHigh);
BENCHMARK_CAPTURE(BM_Encode, default, FsstLevel::kDefault);
BENCHMARK_CAPTURE(BM_Encode, high, FsstLevel::kHigh);
BENCHMARK(BM_EncodeLines);
BENCHMARK(BM_DecodePlain);
BENCHMARK_CAPTURE(BM_Decode, best, FsstInstructions::kBest);
BENCHMARK_CAPTURE(BM_Decode, plain, FsstInstructions::kPlain);
BENCHMARK_CAPTURE(BM_DecodeLines, best, FsstInstructions::kBest);
BENCHMARK_CAPTURE(BM_DecodeLines, plain, FsstInstructions::kPlain);
BENCHMARK(BM_Lz4Encode);
BENCHMARK(BM_Lz4Decode);

}  // namespace
}  // namespace quire
