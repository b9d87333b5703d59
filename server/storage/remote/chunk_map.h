// SPDX-License-Identifier: GPL-3.0-or-later
//
// Which chunks of a remote file its sparse local copy has.
#ifndef QUIRE_SERVER_STORAGE_REMOTE_CHUNK_MAP_H_
#define QUIRE_SERVER_STORAGE_REMOTE_CHUNK_MAP_H_

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"

namespace quire {

// Chunks of a file, by index. The last one may be short.
struct ChunkRange {
  uint64_t first = 0;
  uint64_t count = 0;

  uint64_t end() const { return first + count; }

  bool operator==(const ChunkRange&) const = default;
};

// Chunks that are all present or all missing.
struct ChunkRun {
  ChunkRange range;
  bool is_present = false;

  bool operator==(const ChunkRun&) const = default;
};

// The part of a file whose chunks are never evicted: its bytes from `from` on,
// except for the chunks wholly within a hole.
struct KeptParts {
  // NOLINTNEXTLINE(google-explicit-constructor): most files have no hole.
  KeptParts(uint64_t kept_from, uint64_t begin = 0, uint64_t end = 0)
      : from(kept_from), hole_begin(begin), hole_end(end) {}

  uint64_t from;
  uint64_t hole_begin;
  uint64_t hole_end;
};

// A chunk is absent, being written, present, or allocated without being
// trusted. Two flags of a chunk that are bits, and few chunks in use.
// Thread-compatible.
class ChunkMap {
 public:
  // Chunk 0 and those from `kept_first` on, except for `hole`, are kept: never
  // evicted. REQUIRES: chunk_size_bytes > 0; the hole, if there is one, begins
  // at or after kept_first.
  ChunkMap(uint64_t size_bytes, uint32_t chunk_size_bytes, uint64_t kept_first,
           ChunkRange hole = {});

  uint64_t count() const { return count_; }

  uint64_t size_bytes() const { return size_bytes_; }

  // Memory of the bits, in bytes.
  static uint64_t MemoryBytes(uint64_t size_bytes, uint32_t chunk_size_bytes);

  // The chunks that overlap [offset, offset + size). REQUIRES: within the file.
  ChunkRange Covering(uint64_t offset, uint64_t size) const;

  uint64_t StartOf(uint64_t chunk) const { return chunk * chunk_size_bytes_; }

  // Size of the chunks, in bytes.
  uint64_t SizeOf(ChunkRange range) const;

  // Space of the chunks on a disk, in bytes: whole pages.
  uint64_t SpaceOf(ChunkRange range) const;

  bool IsKept(uint64_t chunk) const {
    return chunk == 0 || (chunk >= kept_first_ &&
                          (chunk < hole_.first || chunk >= hole_.end()));
  }

  // Returns the kept chunks, in ranges that are not neighbours.
  std::vector<ChunkRange> KeptRanges() const;

  bool IsPresent(uint64_t chunk) const { return Has(present_, chunk); }

  bool IsAllocated(uint64_t chunk) const { return Has(allocated_, chunk); }

  bool AllPresent(ChunkRange range) const;

  // True if no chunk is allocated.
  bool IsEmpty() const {
    return std::ranges::all_of(allocated_,
                               [](uint64_t bits) { return bits == 0; });
  }

  // Divides a range by presence; neighbours differ.
  std::vector<ChunkRun> Runs(ChunkRange range) const;

  // Space of the chunks of the range that are not allocated yet.
  uint64_t UnallocatedBytes(ChunkRange range) const;

  // Marks chunks as allocated and being written, or as present, or as absent.
  void BeginWrite(ChunkRange range);
  void EndWrite(ChunkRange range);
  void Drop(ChunkRange range);

  // Marks present chunks as allocated only: their bytes are wrong.
  void Invalidate(ChunkRange range);

  // Pins chunks: they are not evicted until they are unpinned as often. Marks
  // them as used.
  void Pin(ChunkRange range);
  void Unpin(ChunkRange range);

  // Returns the next chunk at or after `from` to evict (CLOCK): allocated, not
  // kept, pinned nor being written, and not used since the last call that
  // passed it. Unset at the end of the file.
  std::optional<uint64_t> NextVictim(uint64_t from);

  // True for a chunk that can be dropped now, kept or not.
  bool IsIdle(uint64_t chunk) const {
    return !pins_.contains(chunk) && !writing_.contains(chunk);
  }

 private:
  using Bits = std::vector<uint64_t>;
  static constexpr uint64_t kBits = 64;

  static bool Has(const Bits& bits, uint64_t chunk) {
    return ((bits[chunk / kBits] >> (chunk % kBits)) & 1) != 0;
  }

  static void Set(Bits& bits, uint64_t chunk) {
    bits[chunk / kBits] |= uint64_t{1} << (chunk % kBits);
  }

  static void Clear(Bits& bits, uint64_t chunk) {
    bits[chunk / kBits] &= ~(uint64_t{1} << (chunk % kBits));
  }

  uint64_t size_bytes_;
  uint64_t chunk_size_bytes_;
  uint64_t count_;
  uint64_t kept_first_;
  ChunkRange hole_;
  Bits present_;
  Bits allocated_;
  Bits used_;
  absl::flat_hash_map<uint64_t, uint32_t> pins_;
  absl::flat_hash_set<uint64_t> writing_;
};

// Marks the chunks of an open sparse file that are data throughout as present
// (lseek with SEEK_DATA), and punches out those that are data in part, as a
// crash leaves them. Blocks on I/O.
// Errors: Unavailable  from the system.
absl::Status FindPresentChunks(int fd, ChunkMap& map);

// Removes the bytes of chunks from an open file, whose size stays. Blocks.
// Errors: Unavailable  from the system; Unimplemented  no holes here.
absl::Status PunchChunks(int fd, const ChunkMap& map, ChunkRange range);

}  // namespace quire

#endif  // QUIRE_SERVER_STORAGE_REMOTE_CHUNK_MAP_H_
