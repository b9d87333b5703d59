// SPDX-License-Identifier: GPL-3.0-or-later
//
// What archive_bench reads, the same whether through storage (storage_loop) or
// only decoded (decode_loop), so that their times can be compared.
#ifndef QUIRE_SERVER_BENCH_BENCH_REQUESTS_H_
#define QUIRE_SERVER_BENCH_BENCH_REQUESTS_H_

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "server/archive/archive.h"

namespace quire {

using BenchClock = std::chrono::steady_clock;

// What was read by one thread, or in one run; decoded bytes of what was asked
// for, not of whole blocks.
struct BenchCounts {
  uint64_t requests = 0;
  uint64_t blocks = 0;
  uint64_t text_size_bytes = 0;
};

// What to read: the n-th request for each n, whichever thread asks for it; a
// function of the seed alone, so that every run reads the same. Ranges of
// `size_bytes`, one after the other (`in_order`) or at offsets drawn uniformly;
// or whole documents, drawn uniformly. Thread-safe.
class BenchRequests {
 public:
  // An archive of less text is read whole each time. REQUIRES: size_bytes > 0,
  // and the archive has text.
  BenchRequests(std::shared_ptr<const Archive> archive, bool in_order,
                uint64_t size_bytes, uint64_t seed)
      : archive_(std::move(archive)),
        in_order_(in_order),
        size_bytes_(std::min(size_bytes, archive_->info().size_bytes)),
        seed_(seed) {}

  // From now on Next() draws documents, those that are not empty.
  // REQUIRES: no other thread uses this.
  void DrawDocuments() {
    archive_->VisitDocuments("", std::nullopt, [&](const Document& document) {
      if (document.range.size_bytes > 0) {
        documents_.push_back(document.range);
      }
      return true;
    });
  }

  // The parts of blocks that the next request takes. In order, it begins again
  // at the end, where the last one may be shorter.
  std::vector<BlockSlice> Next() {
    const uint64_t number = next_.fetch_add(1, std::memory_order_relaxed);
    const uint64_t total_size_bytes = archive_->info().size_bytes;
    if (!documents_.empty()) {
      return archive_->Plan(documents_[Mix(seed_ + number) % documents_.size()])
          .value();
    }
    uint64_t offset = 0;
    if (in_order_) {
      const uint64_t steps = (total_size_bytes + size_bytes_ - 1) / size_bytes_;
      offset = number % steps * size_bytes_;
    } else {
      offset = Mix(seed_ + number) % (total_size_bytes - size_bytes_ + 1);
    }
    return archive_
        ->Plan({LogicalOffset{offset},
                std::min(size_bytes_, total_size_bytes - offset)})
        .value();
  }

 private:
  // SplitMix64 (Steele, Lea and Flood, OOPSLA 2014).
  static uint64_t Mix(uint64_t number) {
    uint64_t x = number * 0x9e3779b97f4a7c15;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
    return x ^ (x >> 31);
  }

  const std::shared_ptr<const Archive> archive_;
  const bool in_order_;
  const uint64_t size_bytes_;
  const uint64_t seed_;
  std::vector<LogicalRange> documents_;
  std::atomic<uint64_t> next_ = 0;
};

// Decoded bytes of these parts.
inline uint64_t TextSizeBytes(const std::vector<BlockSlice>& slices) {
  uint64_t size_bytes = 0;
  for (const BlockSlice& slice : slices) {
    size_bytes += slice.size_bytes;
  }
  return size_bytes;
}

}  // namespace quire

#endif  // QUIRE_SERVER_BENCH_BENCH_REQUESTS_H_
