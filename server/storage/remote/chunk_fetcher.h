// SPDX-License-Identifier: GPL-3.0-or-later
//
// GETs of missing chunks, each shared by all who wait for it.
#ifndef QUIRE_SERVER_STORAGE_REMOTE_CHUNK_FETCHER_H_
#define QUIRE_SERVER_STORAGE_REMOTE_CHUNK_FETCHER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"

#include "codecs/base/bytes.h"
#include "server/storage/remote/chunk_cache.h"
#include "server/storage/remote/object_reader.h"

namespace quire {

// Who waits for bytes of chunks that are missing.
struct ChunkWaiter {
  // Filled with the file's bytes from `offset` on; empty to fill the cache
  // only. Parts of it may be written even if the GET fails.
  uint64_t offset = 0;
  MutableByteView out = {};

  enum class Outcome : uint8_t {
    // `out` is filled.
    kFilled,
    // It came too late to be filled: the chunks may be present now.
    kAgain,
    kFailed,
  };

  // Called once, on the loop's thread. `status` is that of the GET.
  std::function<void(Outcome outcome, const absl::Status& status)> done;
};

// Bytes go from the transfer into the waiters' buffers and into the cache, with
// no buffer in between. Everything is called on the loop's thread.
class ChunkFetcher {
 public:
  // Called with each failure of a GET: Aborted and NotFound if the object is
  // another one than at the opening, or is missing.
  using Report = std::function<void(const absl::Status& failure)>;

  // All must outlive it.
  ChunkFetcher(ChunkCache& cache, ObjectReader& reader, Report report)
      : cache_(cache), reader_(reader), report_(std::move(report)) {}

  // Starts GETs for chunks that were found missing, or joins those in flight.
  // Calls `make_waiter` with each part of the range that one GET covers; the
  // waiter that it returns is added to that GET.
  void Fetch(const CachedFilePtr& file, ChunkRange range, bool may_hedge,
             const std::function<ChunkWaiter(ChunkRange)>& make_waiter);

 private:
  struct InFlight;
  using Key = std::pair<const CachedFile*, uint64_t>;

  // Enters a GET for chunks that no other one covers.
  std::shared_ptr<InFlight> Reserve(const CachedFilePtr& file,
                                    ChunkRange range);
  void OnBody(InFlight& fetch, uint64_t offset, ByteView bytes);
  void OnEnd(const std::shared_ptr<InFlight>& fetch, const ObjectGet::End& end);

  ChunkCache& cache_;
  ObjectReader& reader_;
  const Report report_;
  absl::flat_hash_map<Key, std::shared_ptr<InFlight>> in_flight_;
};

}  // namespace quire

#endif  // QUIRE_SERVER_STORAGE_REMOTE_CHUNK_FETCHER_H_
