// SPDX-License-Identifier: GPL-3.0-or-later
//
// Cost of documents in RAM, on disk and in time: bits per document by part, and
// times of opening and of each look-up. The archive has
// QUIRE_BENCHMARK_DOCUMENTS documents (100,000 unless set, 150,000 in several
// segments) with URLs as ids, in random order and with capture times and media
// types, like a crawl.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "benchmark/benchmark.h"

#include "codecs/base/check.h"
#include "server/archive/archive.h"
#include "server/archive/archive_writer.h"
#include "testing/archive/archive_testing.h"
#include "testing/archive/sample_urls.h"

namespace quire {
namespace {

constexpr uint32_t kBlockSizeBytes = 65536;
constexpr uint64_t kDocumentSizeBytes = 2000;

uint64_t DocumentCount(uint64_t usual) {
  const char* const setting = std::getenv("QUIRE_BENCHMARK_DOCUMENTS");
  return setting == nullptr ? usual : std::strtoull(setting, nullptr, 10);
}

class CrawlArchive {
 public:
  static const CrawlArchive& Get() {
    static const CrawlArchive& archive = *new CrawlArchive;
    return archive;
  }

  const Archive& archive() const { return *archive_; }

  const std::string& path() const { return path_; }

  uint64_t count() const { return archive_->info().document_count; }

 private:
  CrawlArchive() {
    const uint64_t count = DocumentCount(100'000);
    path_ = directory_ / "crawl.quire";
    const auto start = std::chrono::steady_clock::now();
    Write(count);
    const std::chrono::duration<double> took =
        std::chrono::steady_clock::now() - start;
    archive_ = Archive::Open(path_).value();
    std::printf("writing %llu documents took %.1f s; %llu bytes on disk\n",
                static_cast<unsigned long long>(count), took.count(),  // NOLINT
                static_cast<unsigned long long>(                       // NOLINT
                    archive_->info().stored_size_bytes));
  }

  void Write(uint64_t count) {
    ArchiveWriterOptions options;
    options.codec = ParseCodecSpec("lz4").value();
    options.block_size_bytes = kBlockSizeBytes;
    const auto writer = ArchiveWriter::Create(path_, options, nullptr).value();
    std::mt19937_64 random(1);
    // Any permutation works: multiplication modulo 2^64 is one.
    for (uint64_t i = 0; i < count; ++i) {
      const std::string id = SampleUrl((i * 0x9E3779B97F4A7C15) >> 24);
      const int64_t time =
          1700000000000 +
          static_cast<int64_t>(i * 40 + random() % 60000) / 1000 * 1000;
      const absl::Status status = writer->AddDocument(
          {.id = id,
           .size_bytes = kDocumentSizeBytes,
           .capture_time_ms = time,
           .record_type = "response",
           .media_type = random() % 5 == 0 ? "text/css" : "text/html"});
      QUIRE_CHECK(status.ok());
    }
    // The text does not matter: one byte stands for each block.
    const std::vector<uint8_t> raw(kBlockSizeBytes);
    const std::vector<uint8_t> stored(1);
    uint64_t left = count * kDocumentSizeBytes;
    while (left > 0) {
      const uint64_t size = std::min<uint64_t>(left, kBlockSizeBytes);
      QUIRE_CHECK(
          writer->AppendBlock(ByteView(raw).first(size), {.bytes = stored})
              .ok());
      left -= size;
    }
    QUIRE_CHECK(writer->Commit().ok());
  }

  TemporaryDirectory directory_;
  std::string path_;
  std::shared_ptr<const Archive> archive_;
};

void Open(benchmark::State& state) {
  const CrawlArchive& crawl = CrawlArchive::Get();
  while (state.KeepRunning()) {
    benchmark::DoNotOptimize(Archive::Open(crawl.path()).value());
  }
  const ArchiveMemory& memory = crawl.archive().memory();
  const auto bits = [&](uint64_t size_bytes) {
    return 8 * static_cast<double>(size_bytes) /
           static_cast<double>(crawl.count());
  };
  state.counters["bits_starts"] = bits(memory.document_starts_bytes);
  state.counters["bits_ids"] = bits(memory.document_ids_bytes);
  state.counters["bits_attributes"] = bits(memory.document_attributes_bytes);
  state.counters["bits_disk"] = bits(crawl.archive().info().stored_size_bytes -
                                     crawl.archive().info().block_count * 13);
  state.counters["bits_per_block"] =
      8 * static_cast<double>(memory.block_index_bytes) /
      static_cast<double>(crawl.archive().info().block_count);
  state.counters["estimate_percent"] =
      100 *
      static_cast<double>(Archive::ReadOutline(crawl.path())->memory_bytes) /
      static_cast<double>(memory.total_bytes());
}

BENCHMARK(Open)->Unit(benchmark::kMillisecond);

void FindById(benchmark::State& state) {
  const CrawlArchive& crawl = CrawlArchive::Get();
  std::mt19937_64 random(2);
  while (state.KeepRunning()) {
    const std::string id =
        SampleUrl((random() % crawl.count() * 0x9E3779B97F4A7C15) >> 24);
    benchmark::DoNotOptimize(crawl.archive().FindDocuments(id).value());
  }
}

BENCHMARK(FindById);

// An id of one segment, by the number of segments.
void FindInSegments(benchmark::State& state) {
  const uint64_t total = DocumentCount(150'000);
  const auto segment_count = static_cast<uint64_t>(state.range(0));
  const TemporaryDirectory directory;
  ArchiveWriterOptions options;
  options.codec = ParseCodecSpec("copy").value();
  std::vector<TestSegment> segments(segment_count);
  for (uint64_t i = 0; i < total; ++i) {
    segments[i % segment_count].push_back(
        {.id = SampleUrl((i * 0x9E3779B97F4A7C15) >> 24)});
  }
  const std::string path = directory / "a.quire";
  QUIRE_CHECK(WriteTestArchive(path, options, segments).ok());
  const auto archive = Archive::Open(path).value();
  std::mt19937_64 random(2);
  while (state.KeepRunning()) {
    const std::string id =
        SampleUrl((random() % total * 0x9E3779B97F4A7C15) >> 24);
    benchmark::DoNotOptimize(archive->FindDocument(id, std::nullopt));
  }
  const ArchiveMemory& memory = archive->memory();
  state.counters["bits_ids"] = 8 *
                               static_cast<double>(memory.document_ids_bytes) /
                               static_cast<double>(total);
  state.counters["bits_filters"] =
      8 * static_cast<double>(memory.id_filters_bytes) /
      static_cast<double>(total);
}

BENCHMARK(FindInSegments)->Arg(1)->Arg(4)->Arg(12)->Arg(409);

// The capture at a time, by documents per id: up to 64 are compared one by one,
// more are kept in order.
void FindCapture(benchmark::State& state) {
  const TemporaryDirectory directory;
  const std::string path = directory / "a.quire";
  ArchiveWriterOptions options;
  options.codec = ParseCodecSpec("copy").value();
  const auto count = static_cast<uint64_t>(state.range(0));
  std::mt19937_64 random(5);
  TestSegment segment(count);
  for (TestDocument& document : segment) {
    document = {.id = "http://example.org/",
                .capture_time_ms = static_cast<int64_t>(random() % count),
                .record_type = random() % 2 == 0 ? "response" : "request"};
  }
  QUIRE_CHECK(WriteTestArchive(path, options, {segment}).ok());
  const auto archive = Archive::Open(path).value();
  const absl::string_view types[] = {"response", "resource", "conversion", ""};
  while (state.KeepRunning()) {
    benchmark::DoNotOptimize(archive->FindCapture(
        "http://example.org/",
        {.record_types = types,
         .at_time_ms = static_cast<int64_t>(random() % count)}));
  }
}

BENCHMARK(FindCapture)->Arg(1)->Arg(64)->Arg(65)->Arg(100'000);

void GetByOrdinal(benchmark::State& state) {
  const CrawlArchive& crawl = CrawlArchive::Get();
  std::mt19937_64 random(3);
  while (state.KeepRunning()) {
    benchmark::DoNotOptimize(
        crawl.archive().GetDocument({random() % crawl.count()}).value());
  }
}

BENCHMARK(GetByOrdinal);

void FindByOffset(benchmark::State& state) {
  const CrawlArchive& crawl = CrawlArchive::Get();
  std::mt19937_64 random(4);
  while (state.KeepRunning()) {
    benchmark::DoNotOptimize(
        crawl.archive()
            .DocumentAt({random() % crawl.archive().info().size_bytes})
            .value());
  }
}

BENCHMARK(FindByOffset);

void ListAThousand(benchmark::State& state) {
  const CrawlArchive& crawl = CrawlArchive::Get();
  std::mt19937_64 random(5);
  while (state.KeepRunning()) {
    const Archive::IdCursor after = {SampleUrl(random() >> 24), 0};
    int left = 1000;
    crawl.archive().VisitDocuments("http", after, [&](const Document& d) {
      benchmark::DoNotOptimize(d.range);
      return --left > 0;
    });
  }
}

BENCHMARK(ListAThousand)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace quire
