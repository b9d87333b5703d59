// SPDX-License-Identifier: Apache-2.0
//
// Measures bgzip and RocksDB on the same text as codec_figures measures codecs:
// one thread, CPU time, from memory or the page cache, all bytes compared with
// the text. archive_bench.py compiles this, as no other program needs
// libdeflate and RocksDB.
//
//   archive_peers bgzf TEXT FILE.gz FILE.gz.gzi SECONDS
//   archive_peers rocksdb TEXT DOCUMENTS.tsv DIRECTORY BLOCK_SIZE SECONDS
//
// Prints one JSON object.
#include <libdeflate.h>
#include <rocksdb/db.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/options.h>
#include <rocksdb/table.h>
#include <time.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <memory>
#include <random>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {

constexpr size_t kRangeSize = 16 << 10;
// Upper bound on the text of a BGZF member (SAM specification, 4.1).
constexpr size_t kMemberTextMax = 64 << 10;

[[noreturn]] void Die(const std::string& message) {
  std::cerr << "archive_peers: " << message << "\n";
  std::exit(1);  // NOLINT(concurrency-mt-unsafe): one thread.
}

std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream contents;
  contents << file.rdbuf();
  if (!file) {
    Die(path + ": cannot be read");
  }
  return std::move(contents).str();
}

double CpuSeconds(clockid_t clock) {
  timespec now = {};
  clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) +
         static_cast<double>(now.tv_nsec) * 1e-9;
}

// Calls `step(i)` for `seconds` of this thread's CPU time, three times. Returns
// the best rate, in calls per second.
template <typename Step>
double BestRate(double seconds, Step step) {
  double best = 0;
  uint64_t i = 0;
  for (int repetition = 0; repetition < 3; ++repetition) {
    const double started = CpuSeconds(CLOCK_THREAD_CPUTIME_ID);
    uint64_t count = 0;
    double elapsed = 0;
    while (elapsed < seconds) {
      for (int batch = 0; batch < 64; ++batch, ++count, ++i) {
        step(i);
      }
      elapsed = CpuSeconds(CLOCK_THREAD_CPUTIME_ID) - started;
    }
    best = std::max(best, static_cast<double>(count) / elapsed);
  }
  return best;
}

// A BGZF file in memory: gzip members of up to 64 KiB of text, and their
// offsets, from the index that `bgzip -i` writes.
class Bgzf {
 public:
  Bgzf(std::string file, const std::string& index)
      : file_(std::move(file)), decompressor_(libdeflate_alloc_decompressor()) {
    uint64_t count = 0;
    if (index.size() < sizeof(count)) {
      Die("the index of the bgzip file is cut");
    }
    std::memcpy(&count, index.data(), sizeof(count));
    if (count > (index.size() - sizeof(count)) / sizeof(Start)) {
      Die("the index of the bgzip file is cut");
    }
    starts_.push_back({0, 0});
    for (uint64_t i = 0; i < count; ++i) {
      Start start = {};
      std::memcpy(&start, index.data() + sizeof(count) + i * sizeof(start),
                  sizeof(start));
      if (start.stored > file_.size() || start.text < starts_.back().text) {
        Die("the index of the bgzip file is damaged");
      }
      starts_.push_back(start);
    }
    member_.resize(kMemberTextMax);
  }

  ~Bgzf() { libdeflate_free_decompressor(decompressor_); }

  Bgzf(const Bgzf&) = delete;
  Bgzf& operator=(const Bgzf&) = delete;

  size_t member_count() const { return starts_.size(); }

  // Returns the text of a member, valid until the next call.
  std::string_view Member(size_t index) {
    const char* const at = file_.data() + starts_[index].stored;
    size_t text_size = 0;
    if (libdeflate_gzip_decompress_ex(decompressor_, at,
                                      file_.size() - starts_[index].stored,
                                      member_.data(), member_.size(), nullptr,
                                      &text_size) != LIBDEFLATE_SUCCESS) {
      Die("a member of the bgzip file cannot be decoded");
    }
    return {member_.data(), text_size};
  }

  void Read(uint64_t offset, char* out, size_t size) {
    auto start = std::upper_bound(
        starts_.begin(), starts_.end(), offset,
        [](uint64_t at, const Start& s) { return at < s.text; });
    for (--start; size > 0; ++start) {
      const std::string_view text =
          Member(static_cast<size_t>(start - starts_.begin()));
      const size_t skip = offset - start->text;
      if (skip >= text.size()) {
        Die("the index is not that of the bgzip file");
      }
      const size_t part = std::min(size, text.size() - skip);
      std::memcpy(out, text.data() + skip, part);
      offset += part;
      out += part;
      size -= part;
    }
  }

 private:
  // Layout of the index: two 64-bit little-endian integers.
  struct Start {
    uint64_t stored;
    uint64_t text;
  };

  std::string file_;
  libdeflate_decompressor* decompressor_;
  std::vector<Start> starts_;
  std::vector<char> member_;
};

void MeasureBgzf(const std::string& text_path, const std::string& path,
                 const std::string& index_path, double seconds) {
  const std::string text = ReadFile(text_path);
  Bgzf bgzf(ReadFile(path), ReadFile(index_path));
  std::string whole;
  for (size_t i = 0; i < bgzf.member_count(); ++i) {
    whole += bgzf.Member(i);
  }
  if (whole != text || text.size() < kRangeSize) {
    Die("the bgzip file is not the text, or too small");
  }
  std::mt19937_64 random(1);
  std::string range(kRangeSize, '\0');
  const auto read = [&](uint64_t) {
    const uint64_t offset = random() % (text.size() - kRangeSize + 1);
    bgzf.Read(offset, range.data(), range.size());
    return offset;
  };
  for (int i = 0; i < 2000; ++i) {
    const uint64_t offset = read(0);
    if (text.compare(offset, kRangeSize, range) != 0) {
      Die("a range of the bgzip file differs from the text");
    }
  }
  const double ranges = BestRate(seconds, read);
  std::printf("{\"reads_per_second\": %.1f}\n", ranges);
}

struct Row {
  uint64_t offset = 0;
  uint64_t size = 0;
  std::string id;
};

std::vector<Row> ReadRows(const std::string& path, size_t text_size) {
  std::ifstream file(path);
  std::vector<Row> rows;
  std::string line;
  while (std::getline(file, line)) {
    Row row;
    std::istringstream words(line);
    if (!(words >> row.offset >> row.size)) {
      Die(path + ": a line is not offset, size and id: " + line);
    }
    words.ignore(1);
    std::getline(words, row.id);
    if (row.offset > text_size || row.size > text_size - row.offset) {
      Die(path + ": a document lies outside of the text");
    }
    rows.push_back(std::move(row));
  }
  if (rows.empty()) {
    Die(path + ": no documents");
  }
  return rows;
}

// zstd at its default level with a dictionary trained for each file: the
// settings of RocksDB's notes on dictionary compression.
rocksdb::Options StoreOptions(size_t block_size) {
  rocksdb::Options options;
  options.create_if_missing = true;
  options.compression = rocksdb::kZSTD;
  options.compression_opts.level = 3;
  options.compression_opts.max_dict_bytes = 112 << 10;
  options.compression_opts.zstd_max_train_bytes = 100 * (112 << 10);
  options.max_background_jobs = 1;
  options.max_subcompactions = 1;
  options.allow_mmap_reads = true;
  options.write_buffer_size = 64 << 20;
  rocksdb::BlockBasedTableOptions table;
  table.block_size = block_size;
  // Blocks are decoded for every read, like those of the codecs.
  table.no_block_cache = true;
  table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(10));
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  return options;
}

void Must(const rocksdb::Status& status) {
  if (!status.ok()) {
    Die(status.ToString());
  }
}

void MeasureRocksDb(const std::string& text_path, const std::string& index_path,
                    const std::string& directory, size_t block_size,
                    double seconds) {
  const std::string text = ReadFile(text_path);
  const std::vector<Row> rows = ReadRows(index_path, text.size());
  const double started = CpuSeconds(CLOCK_PROCESS_CPUTIME_ID);
  rocksdb::DB* opened = nullptr;
  Must(rocksdb::DB::Open(StoreOptions(block_size), directory, &opened));
  const std::unique_ptr<rocksdb::DB> db(opened);
  rocksdb::WriteOptions write;
  write.disableWAL = true;
  for (const Row& row : rows) {
    Must(db->Put(write, row.id,
                 rocksdb::Slice(text.data() + row.offset, row.size)));
  }
  Must(db->Flush({}));
  rocksdb::CompactRangeOptions compact;
  compact.bottommost_level_compaction =
      rocksdb::BottommostLevelCompaction::kForceOptimized;
  Must(db->CompactRange(compact, nullptr, nullptr));
  const double build = CpuSeconds(CLOCK_PROCESS_CPUTIME_ID) - started;
  uint64_t stored = 0;
  std::vector<rocksdb::LiveFileMetaData> files;
  db->GetLiveFilesMetaData(&files);
  for (const rocksdb::LiveFileMetaData& file : files) {
    stored += file.size;
  }
  rocksdb::PinnableSlice value;
  const auto read = [&](const Row& row) {
    value.Reset();
    Must(db->Get({}, db->DefaultColumnFamily(), row.id, &value));
  };
  for (const Row& row : rows) {
    read(row);
    if (value.ToStringView() !=
        std::string_view(text).substr(row.offset, row.size)) {
      Die("a document differs from the text (or its id is not unique)");
    }
  }
  std::mt19937_64 random(1);
  const double documents =
      BestRate(seconds, [&](uint64_t) { read(rows[random() % rows.size()]); });
  std::printf(
      "{\"stored_bytes\": %llu, \"build_cpu_seconds\": %.3f, "
      "\"reads_per_second\": %.1f}\n",
      static_cast<unsigned long long>(stored), build, documents);
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  if (words.size() == 5 && words[0] == "bgzf") {
    MeasureBgzf(words[1], words[2], words[3], std::stod(words[4]));
  } else if (words.size() == 6 && words[0] == "rocksdb") {
    MeasureRocksDb(words[1], words[2], words[3], std::stoul(words[4]),
                   std::stod(words[5]));
  } else {
    Die("usage: archive_peers bgzf TEXT GZ GZI SECONDS | "
        "archive_peers rocksdb TEXT TSV DIRECTORY BLOCK_SIZE SECONDS");
  }
}
