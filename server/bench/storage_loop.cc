// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/bench/storage_loop.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"

#include "codecs/base/mutex.h"
#include "codecs/base/status_macros.h"
#include "server/service/catalog/archive_block_decoder.h"

namespace quire {
namespace {

// Keeps a number of requests in flight; each that ends begins the next, on the
// decode pool's thread, as the service does. Thread-safe.
class ClosedLoop {
 public:
  ClosedLoop(std::shared_ptr<const Archive> archive, BenchRequests& requests,
             FetchClass fetch_class, BlockStore& store,
             BenchClock::time_point end)
      : archive_(std::move(archive)),
        decoder_(MakeTextDecoder(archive_,
                                 std::make_shared<DamageLog>("bench", nullptr),
                                 std::make_shared<DecodeWorkspaces>(
                                     std::numeric_limits<uint64_t>::max()),
                                 std::make_shared<MovingAverage>())),
        requests_(requests),
        fetch_class_(fetch_class),
        store_(store),
        end_(end) {}

  // Returns when all requests that were begun have ended.
  absl::StatusOr<BenchCounts> Run(uint32_t in_flight)
      ABSL_LOCKS_EXCLUDED(mutex_) {
    {
      MutexLock lock(&mutex_);
      in_flight_ = in_flight;
    }
    for (uint32_t i = 0; i < in_flight; ++i) {
      Begin();
    }
    MutexLock lock(&mutex_);
    while (in_flight_ > 0) {
      none_left_.Wait(&mutex_);
    }
    QUIRE_RETURN_IF_ERROR(status_);
    return counts_;
  }

 private:
  struct Request {
    std::vector<BlockSlice> slices;
    std::atomic<size_t> left = 0;
  };

  void Begin() {
    auto request = std::make_shared<Request>();
    request->slices = requests_.Next();
    request->left = request->slices.size();
    std::vector<BlockStore::FetchItem> items;
    items.reserve(request->slices.size());
    for (const BlockSlice& slice : request->slices) {
      BlockFetch fetch;
      fetch.key = {.source_id = 1, .block = slice.block};
      fetch.extent = archive_->BlockExtent(slice.block);
      fetch.raw_size_bytes = archive_->BlockSizeBytes(slice.block);
      fetch.fetch_class = fetch_class_;
      fetch.decoder = decoder_;
      items.push_back(
          {std::move(fetch),
           [this, request](const absl::StatusOr<BlockStore::BlockPtr>& block) {
             EndBlock(*request, block.status());
           }});
    }
    store_.FetchAll(std::move(items));
  }

  void EndBlock(Request& request, const absl::Status& status)
      ABSL_LOCKS_EXCLUDED(mutex_) {
    if (!status.ok()) {
      MutexLock lock(&mutex_);
      status_.Update(status);
    }
    if (request.left.fetch_sub(1) != 1) {
      return;
    }
    {
      MutexLock lock(&mutex_);
      ++counts_.requests;
      counts_.blocks += request.slices.size();
      counts_.text_size_bytes += TextSizeBytes(request.slices);
      if (!status_.ok() || BenchClock::now() >= end_) {
        if (--in_flight_ == 0) {
          none_left_.NotifyAll();
        }
        return;
      }
    }
    Begin();
  }

  const std::shared_ptr<const Archive> archive_;
  const std::shared_ptr<const BlockDecoder> decoder_;
  BenchRequests& requests_;
  const FetchClass fetch_class_;
  BlockStore& store_;
  const BenchClock::time_point end_;
  Mutex mutex_;
  CondVar none_left_;
  uint32_t in_flight_ ABSL_GUARDED_BY(mutex_) = 0;
  BenchCounts counts_ ABSL_GUARDED_BY(mutex_);
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

absl::StatusOr<BenchCounts> ReadFromStore(
    std::shared_ptr<const Archive> archive, BenchRequests& requests,
    FetchClass fetch_class, uint32_t in_flight, BenchClock::time_point end,
    BlockStore& store) {
  ClosedLoop loop(std::move(archive), requests, fetch_class, store, end);
  return loop.Run(in_flight);
}

}  // namespace quire
