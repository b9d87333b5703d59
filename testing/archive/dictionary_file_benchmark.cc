// SPDX-License-Identifier: GPL-3.0-or-later
//
// Cost of an archive's dictionary at the levels of codec rlz: the size of its
// file, and the CPU time of writing it, of opening it, and of opening it by
// that of reading the file. The text is that of the file
// QUIRE_BENCHMARK_DICTIONARY, which is required for realistic figures, or 16
// MiB of generated words.
#include <fcntl.h>
#include <sys/resource.h>

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "benchmark/benchmark.h"

#include "codecs/base/bytes.h"
#include "codecs/base/check.h"
#include "codecs/base/memory/huge_pages.h"
#include "codecs/base/unique_fd.h"
#include "server/archive/files/dictionary_file.h"
#include "testing/archive/archive_testing.h"

namespace quire {
namespace {

constexpr size_t kGeneratedSizeBytes = size_t{16} << 20;

double CpuSeconds() {
  rusage usage = {};
  QUIRE_CHECK(getrusage(RUSAGE_SELF, &usage) == 0, "getrusage() failed");
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) +
           static_cast<double>(time.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

std::string GeneratedText() {
  std::mt19937_64 random(1);  // NOLINT(cert-msc32-c,cert-msc51-cpp)
  std::vector<std::string> words(20'000);
  for (std::string& word : words) {
    for (uint64_t left = 2 + random() % 8; left > 0; --left) {
      word += static_cast<char>('a' + random() % 26);
    }
  }
  std::string text;
  while (text.size() < kGeneratedSizeBytes) {
    // Low numbers are frequent, like words of a language.
    const uint64_t below = 1 + random() % 20'000;
    text += words[random() % below];
    text += ' ';
  }
  text.resize(kGeneratedSizeBytes);
  return text;
}

std::shared_ptr<const CodecContext> MakeContext() {
  auto context = std::make_shared<CodecContext>();
  const char* const path = std::getenv("QUIRE_BENCHMARK_DICTIONARY");
  if (path == nullptr) {
    context->dictionary = GeneratedText();
    return context;
  }
  std::ifstream file(path, std::ios::binary);
  context->dictionary.assign(std::istreambuf_iterator<char>(file), {});
  QUIRE_CHECK(file.good() && !context->dictionary.empty(),
              "QUIRE_BENCHMARK_DICTIONARY names no file with a text");
  return context;
}

void OpenDictionary(benchmark::State& state) {
  static const auto& context = *new auto(MakeContext());
  const TemporaryDirectory directory;
  const UniqueFd fd(open(directory.path().c_str(), O_RDONLY));
  const double start = CpuSeconds();
  DictionaryFileWriter writer(
      fd.get(), directory.path(),
      {.id = CodecId::kRlz, .level = static_cast<int>(state.range(0))},
      context);
  const ManifestDictionary written = writer.Finish().value();
  const double write_seconds = CpuSeconds() - start;
  const std::string path = directory / DictionaryFileName(written.hash);
  double read_seconds = 0;
  double open_seconds = 0;
  for ([[maybe_unused]] const auto _ : state) {
    const ReadableFile file = OpenReadableFile(AT_FDCWD, path, path).value();
    std::string stored(written.file_size_bytes, '\0');
    const double before = CpuSeconds();
    QUIRE_CHECK(
        ReadExactly(file.fd.get(), 0, AsMutableBytes(stored), path).ok(),
        "cannot read the dictionary");
    const double between = CpuSeconds();
    std::string text = ReadDictionaryFile(file, written).value();
    PreferHugePages(AsBytes(text));
    read_seconds += between - before;
    open_seconds += CpuSeconds() - between;
  }
  const auto count = static_cast<double>(state.iterations());
  state.counters["file_bytes"] = static_cast<double>(written.file_size_bytes);
  state.counters["write_s"] = write_seconds;
  state.counters["open_ms"] = open_seconds / count * 1e3;
  state.counters["open_by_read"] = open_seconds / read_seconds;
}

BENCHMARK(OpenDictionary)
    ->ArgName("rlz")
    ->Arg(1)
    ->Arg(2)
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace quire
