// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef QUIRE_SERVER_SERVICE_CATALOG_DECODE_WORKSPACES_H_
#define QUIRE_SERVER_SERVICE_CATALOG_DECODE_WORKSPACES_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"

#include "codecs/base/mutex.h"
#include "codecs/block_codec.h"
#include "codecs/payload/payload_codec.h"

namespace quire {

// Working memory of decoders, shared by all archives. Workspaces in use and
// kept ones together never exceed one limit. The most recently used ones are
// kept. Thread-safe.
class DecodeWorkspaces {
 public:
  // A workspace in use by one thread; its destructor returns it to the pool.
  class Lease {
   public:
    Lease(Lease&& other) noexcept;
    Lease& operator=(Lease&&) = delete;
    ~Lease();

    BlockCodec::Scratch& operator*() const { return *scratch_; }

   private:
    friend class DecodeWorkspaces;

    Lease(DecodeWorkspaces& pool, const void* owner, uint64_t size_bytes)
        : pool_(&pool), owner_(owner), size_bytes_(size_bytes) {}

    // Null once moved from.
    DecodeWorkspaces* pool_;
    const void* const owner_;
    const uint64_t size_bytes_;
    std::unique_ptr<BlockCodec::Scratch> scratch_;
  };

  using Factory = absl::FunctionRef<std::unique_ptr<BlockCodec::Scratch>()>;

  // Large enough for each codec's workspace.
  static constexpr uint64_t kSizeBytesMin = kDecodeScratchBytesMax;
  // Upper bound on unused workspaces that are kept.
  static constexpr size_t kIdleMax = 64;

  explicit DecodeWorkspaces(uint64_t size_bytes_max)
      : size_bytes_max_(size_bytes_max) {
    // Reserved, so that returning a workspace allocates nothing.
    idle_.reserve(kIdleMax + 1);
  }

  // Returns a workspace of `owner`, made by `make` if none is kept. Waits, in
  // order of arrival, while workspaces in use leave less than `size_bytes`. A
  // thread holds at most one workspace.
  // REQUIRES: `size_bytes` is an upper bound, the same for each of the owner's
  // workspaces, and at most the pool's limit.
  Lease Take(const void* owner, uint64_t size_bytes, Factory make)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Frees the workspaces kept for `owner`, which has none in use.
  void Forget(const void* owner) ABSL_LOCKS_EXCLUDED(mutex_);

  // Upper bound on the memory of all workspaces, in use or kept.
  uint64_t size_bytes() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Idle {
    const void* owner = nullptr;
    uint64_t size_bytes = 0;
    std::unique_ptr<BlockCodec::Scratch> scratch;
  };

  std::unique_ptr<BlockCodec::Scratch> TakeIdle(const void* owner)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void GiveBack(Lease& lease) ABSL_LOCKS_EXCLUDED(mutex_);

  const uint64_t size_bytes_max_;
  mutable Mutex mutex_;
  CondVar changed_;
  // The most recently used one is last.
  std::vector<Idle> idle_ ABSL_GUARDED_BY(mutex_);
  uint64_t size_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t idle_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  // Numbers of the next thread to arrive and of the one being served.
  uint64_t next_turn_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t turn_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace quire

#endif  // QUIRE_SERVER_SERVICE_CATALOG_DECODE_WORKSPACES_H_
