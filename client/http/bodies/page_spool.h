// SPDX-License-Identifier: Apache-2.0
//
// Large pages that had to be decoded, in unnamed files, so that ranges of them
// are sent without decoding them again, and slow readers hold no thread.
#ifndef QUIRE_CLIENT_HTTP_BODIES_PAGE_SPOOL_H_
#define QUIRE_CLIENT_HTTP_BODIES_PAGE_SPOOL_H_

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "client/http/bodies/byte_store.h"
#include "client/http/bodies/memory_budget.h"
#include "codecs/base/bytes.h"
#include "codecs/base/mutex.h"
#include "codecs/base/unique_fd.h"

namespace quire {

// One page. Its file disappears with it. Thread-safe for reading once the last
// byte was appended.
class SpooledPage final : public ByteStore {
 public:
  SpooledPage(UniqueFd file, MemoryBudget* budget)
      : file_(std::move(file)), charge_(budget) {}

  uint64_t size_bytes() const override { return size_bytes_; }

  // Errors: DataLoss  the system cannot read the file.
  absl::StatusOr<std::string> Read(uint64_t offset, size_t size_bytes) override;

 private:
  friend class PageSpool;

  const UniqueFd file_;
  // Bytes on disk.
  MemoryCharge charge_;
  uint64_t size_bytes_ = 0;
};

// Keeps pages after their answers as long as there is space; the least recently
// used goes first. Thread-safe.
class PageSpool {
 public:
  // Pages have together at most `size_bytes_max` bytes in `directory`.
  PageSpool(std::string directory, uint64_t size_bytes_max)
      : directory_(std::move(directory)), budget_(size_bytes_max) {}

  // Errors: ResourceExhausted  the directory cannot hold a file.
  absl::StatusOr<std::shared_ptr<SpooledPage>> Create();

  // Appends to a page that only the caller has.
  // Errors: ResourceExhausted  the other pages are being read and leave no
  //                            space, or the disk cannot be written.
  absl::Status Append(SpooledPage& page, ByteView bytes)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Keeps a complete page. `etag` names its bytes.
  void Keep(absl::string_view etag, std::shared_ptr<SpooledPage> page)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Returns the page with this entity tag; null if it is not kept.
  std::shared_ptr<SpooledPage> Find(absl::string_view etag)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Bytes on disk.
  const MemoryBudget& budget() const { return budget_; }

 private:
  struct KeptPage {
    std::string etag;
    std::shared_ptr<SpooledPage> page;
  };

  // Drops the least recently used page. Returns false if none is kept.
  bool DropOldest() ABSL_LOCKS_EXCLUDED(mutex_);

  const std::string directory_;
  MemoryBudget budget_;
  Mutex mutex_;
  // From the most to the least recently used.
  std::list<KeptPage> kept_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace quire

#endif  // QUIRE_CLIENT_HTTP_BODIES_PAGE_SPOOL_H_
