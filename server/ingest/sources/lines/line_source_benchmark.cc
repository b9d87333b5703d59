// SPDX-License-Identifier: GPL-3.0-or-later
//
// Cost of splitting 100,000 lines of some 200 bytes in memory, with and without
// ids from a field: input handling of one pass of a build.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "benchmark/benchmark.h"

#include "codecs/base/check.h"
#include "server/ingest/sources/lines/line_source.h"

namespace quire {
namespace {

constexpr int kLineCount = 100'000;

const std::string& JsonLines() {
  static const std::string& text = *[] {
    auto* const lines = new std::string;
    for (int i = 0; i < kLineCount; ++i) {
      absl::StrAppend(
          lines, "{\"id\":\"doc-", i, "\",\"time\":\"2024-05-01T10:00:00Z\",",
          "\"status\":", 200 + i % 4, ",\"ms\":", i % 977, ".25,",
          "\"message\":\"GET /products/item/", i * 7, "?session=", i * 31,
          " HTTP/1.1 agent Mozilla/5.0 (X11; Linux x86_64)\",",
          "\"tags\":[\"a\",\"b\"],\"referer\":\"http://example.org/\"}\n");
    }
    return lines;
  }();
  return text;
}

const std::string& Csv() {
  static const std::string& text = *[] {
    auto* const lines = new std::string("time,id,message,agent\n");
    for (int i = 0; i < kLineCount; ++i) {
      absl::StrAppend(lines, "2024-05-01T10:00:00Z,doc-", i,
                      ",\"GET \"\"/products/item/", i * 7, "\"\", session ",
                      i * 31, ", and text that makes the line as long as the ",
                      "others, which have about two hundred bytes\",",
                      "Mozilla/5.0 (X11; Linux x86_64)\n");
    }
    return lines;
  }();
  return text;
}

class TextReader final : public SourceReader {
 public:
  explicit TextReader(absl::string_view text) : text_(AsBytes(text)) {}

  absl::StatusOr<std::optional<SourceDocument>> Next() override {
    if (std::exchange(done_, true)) {
      return std::nullopt;
    }
    SourceDocument document;
    document.id = "file";
    return document;
  }

  std::string Place() const override { return "the file"; }

  absl::StatusOr<size_t> Read(MutableByteView out) override {
    const size_t size = std::min(out.size(), text_.size());
    std::copy_n(text_.begin(), size, out.begin());
    text_ = text_.subspan(size);
    return size;
  }

 private:
  ByteView text_;
  bool done_ = false;
};

void Split(benchmark::State& state, const std::string& text,
           const LineSplit& split) {
  std::vector<uint8_t> piece(64 << 10);
  for (auto _ : state) {
    LineReader reader(std::make_unique<TextReader>(text), "text", split,
                      nullptr, std::nullopt);
    uint64_t size_bytes = 0;
    while (true) {
      const auto document = reader.Next();
      QUIRE_CHECK(document.ok());
      if (!document->has_value()) {
        break;
      }
      for (size_t got = 1; got > 0; size_bytes += got) {
        got = reader.Read(piece).value_or(0);
      }
    }
    QUIRE_CHECK(size_bytes == text.size());
  }
  state.SetBytesProcessed(state.iterations() *
                          static_cast<int64_t>(text.size()));
}

void SplitLines(benchmark::State& state) {
  Split(state, JsonLines(), {});
}

void SplitJsonLines(benchmark::State& state) {
  Split(state, JsonLines(), {.id_field = "id"});
}

void SplitCsv(benchmark::State& state) {
  Split(state, Csv(), {.id_field = "id"});
}

BENCHMARK(SplitLines)->Unit(benchmark::kMillisecond);
BENCHMARK(SplitJsonLines)->Unit(benchmark::kMillisecond);
BENCHMARK(SplitCsv)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace quire
