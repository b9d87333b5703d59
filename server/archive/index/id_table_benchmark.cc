// SPDX-License-Identifier: GPL-3.0-or-later
//
// What ids cost in RAM and how fast they are found, in random order. The ids
// are the last fields of the lines of the file QUIRE_BENCHMARK_IDS, or
// QUIRE_BENCHMARK_DOCUMENTS generated URLs (100,000 unless set).
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "benchmark/benchmark.h"

#include "codecs/base/bytes.h"
#include "server/archive/index/id_section.h"
#include "server/archive/index/id_table.h"
#include "server/archive/testing/sample_urls.h"

namespace quire {
namespace {

struct Ids {
  static const Ids& Get() {
    static const Ids& ids = *new Ids;
    return ids;
  }

  // Sorted.
  std::vector<std::string> ids;
  std::string section;
  uint64_t id_size_bytes = 0;
  IdTable table;

 private:
  Ids() {
    if (const char* const path = std::getenv("QUIRE_BENCHMARK_IDS")) {
      std::ifstream file(path);
      for (std::string line; std::getline(file, line);) {
        ids.push_back(line.substr(line.rfind('\t') + 1));
      }
    } else {
      const char* const setting = std::getenv("QUIRE_BENCHMARK_DOCUMENTS");
      const uint64_t count =
          setting == nullptr ? 100000 : std::strtoull(setting, nullptr, 10);
      for (uint64_t i = 0; i < count; ++i) {
        ids.push_back(SampleUrl(i));
      }
    }
    std::sort(ids.begin(), ids.end());
    IdSectionBuilder builder;
    for (const std::string& id : ids) {
      builder.Add(id);
    }
    id_size_bytes = builder.id_size_bytes();
    section = std::move(builder).Build();
    table = Parse();
  }

 public:
  IdTable Parse() const {
    return IdTable::Parse(AsBytes(section), ids.size(), id_size_bytes, nullptr)
        .value();
  }
};

void Parse(benchmark::State& state) {
  const Ids& ids = Ids::Get();
  while (state.KeepRunning()) {
    benchmark::DoNotOptimize(ids.Parse());
  }
  const auto per_id = [&](uint64_t size_bytes) {
    return static_cast<double>(size_bytes) /
           static_cast<double>(ids.ids.size());
  };
  state.counters["bytes_of_id"] = per_id(ids.id_size_bytes);
  state.counters["bits_in_ram"] = 8 * per_id(ids.table.MemoryBytes());
  state.counters["bits_of_section"] = 8 * per_id(ids.section.size());
  state.counters["bits_estimated"] =
      8 * per_id(IdTable::EstimateBytes(ids.ids.size(), ids.section.size(),
                                        ids.id_size_bytes));
}

BENCHMARK(Parse)->Unit(benchmark::kMillisecond);

void Find(benchmark::State& state) {
  const Ids& ids = Ids::Get();
  std::mt19937_64 random(1);
  while (state.KeepRunning()) {
    benchmark::DoNotOptimize(
        ids.table.LowerBound(ids.ids[random() % ids.ids.size()]));
  }
}

BENCHMARK(Find);

void Get(benchmark::State& state) {
  const Ids& ids = Ids::Get();
  std::mt19937_64 random(2);
  while (state.KeepRunning()) {
    benchmark::DoNotOptimize(ids.table.Get(random() % ids.ids.size()));
  }
}

BENCHMARK(Get);

void ListAHundred(benchmark::State& state) {
  const Ids& ids = Ids::Get();
  std::mt19937_64 random(3);
  while (state.KeepRunning()) {
    IdTable::Cursor cursor(ids.table, random() % ids.ids.size());
    for (int i = 0; i < 100 && !cursor.at_end(); ++i) {
      benchmark::DoNotOptimize(cursor.id().data());
      cursor.Next();
    }
  }
}

BENCHMARK(ListAHundred);

}  // namespace
}  // namespace quire
