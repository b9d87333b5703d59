// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/service/catalog/archive_block_decoder.h"

#include <algorithm>
#include <chrono>
#include <ctime>

#include "absl/strings/str_cat.h"

#include "server/archive/archive_part.h"

namespace quire {
namespace {

constexpr size_t kNotedBlocksMax = 1000;
// Part of a frame that is not kept: its checksum.
constexpr size_t kFrameChecksumSizeBytes = 8;

// Returns the CPU time of this thread, which other load does not change.
std::chrono::nanoseconds ThreadTime() {
  timespec time = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::chrono::seconds(time.tv_sec) +
         std::chrono::nanoseconds(time.tv_nsec);
}

class TextDecoder : public BlockDecoder {
 public:
  TextDecoder(std::shared_ptr<const Archive> archive,
              std::shared_ptr<DamageLog> log,
              std::shared_ptr<DecodeWorkspaces> workspaces,
              std::shared_ptr<MovingAverage> part_time_per_mib)
      : archive_(std::move(archive)),
        log_(std::move(log)),
        workspaces_(std::move(workspaces)),
        part_time_per_mib_(std::move(part_time_per_mib)),
        scratch_bytes_(DecodeScratchBytesMax(
            archive_->info().codec.id, archive_->info().block_size_bytes_max,
            archive_->info().has_recipes)) {}

  ~TextDecoder() override { workspaces_->Forget(this); }

  absl::Status Decode(BlockAddress block, ByteView stored,
                      std::span<const BlockPart> parts) const override {
    const DecodeWorkspaces::Lease workspace = Take();
    if (archive_->codec().partition_size_bytes() == 0) {
      return archive_->DecodeBlock(block, stored, parts, *workspace);
    }
    int64_t size_bytes = 0;
    for (const BlockPart& part : parts) {
      size_bytes += static_cast<int64_t>(part.text.size());
    }
    const std::chrono::nanoseconds start = ThreadTime();
    absl::Status status =
        archive_->DecodeBlock(block, stored, parts, *workspace);
    if (size_bytes > 0) {
      part_time_per_mib_->Add((ThreadTime() - start) * (1 << 20) / size_bytes);
    }
    return status;
  }

  void NoteDamage(BlockAddress block,
                  const absl::Status& status) const override {
    log_->Note(block, archive_->SegmentPath(block.segment_index), status);
  }

 private:
  DecodeWorkspaces::Lease Take() const {
    return workspaces_->Take(this, scratch_bytes_,
                             [this] { return archive_->codec().NewScratch(); });
  }

  const std::shared_ptr<const Archive> archive_;
  const std::shared_ptr<DamageLog> log_;
  const std::shared_ptr<DecodeWorkspaces> workspaces_;
  const std::shared_ptr<MovingAverage> part_time_per_mib_;
  const uint64_t scratch_bytes_;
};

class StoredReader : public BlockDecoder {
 public:
  StoredReader(std::shared_ptr<const Archive> archive,
               std::shared_ptr<DamageLog> log)
      : archive_(std::move(archive)), log_(std::move(log)) {}

  absl::Status Decode(BlockAddress block, ByteView stored,
                      std::span<const BlockPart> parts) const override {
    absl::Status status = archive_->CheckBlock(block, stored);
    if (status.ok()) {
      for (const BlockPart& part : parts) {
        std::copy_n(stored.begin() + part.offset_in_block, part.text.size(),
                    part.text.begin());
      }
    }
    return status;
  }

  void NoteDamage(BlockAddress block,
                  const absl::Status& status) const override {
    log_->Note(block, archive_->SegmentPath(block.segment_index), status);
  }

 private:
  const std::shared_ptr<const Archive> archive_;
  const std::shared_ptr<DamageLog> log_;
};

}  // namespace

void DamageLog::Note(BlockAddress block, const std::string& file,
                     const absl::Status& status) {
  if (report_ && IsFirst(block)) {
    report_(absl::StrCat("archive ", archive_name_, ": ",
                         BlockOrPartName(block.block_index), " of ", file,
                         " is damaged: ", status.message()));
  }
}

bool DamageLog::IsFirst(BlockAddress block) {
  MutexLock lock(&mutex_);
  return noted_.size() < kNotedBlocksMax &&
         noted_.emplace(block.segment_index, block.block_index).second;
}

std::shared_ptr<const BlockDecoder> MakeTextDecoder(
    std::shared_ptr<const Archive> archive, std::shared_ptr<DamageLog> log,
    std::shared_ptr<DecodeWorkspaces> workspaces,
    std::shared_ptr<MovingAverage> part_time_per_mib) {
  return std::make_shared<TextDecoder>(std::move(archive), std::move(log),
                                       std::move(workspaces),
                                       std::move(part_time_per_mib));
}

std::shared_ptr<const BlockDecoder> MakeStoredReader(
    std::shared_ptr<const Archive> archive, std::shared_ptr<DamageLog> log) {
  return std::make_shared<StoredReader>(std::move(archive), std::move(log));
}

uint32_t StoredBlockSizeBytes(const Archive& archive, BlockAddress block) {
  return static_cast<uint32_t>(archive.BlockExtent(block).size_bytes -
                               kFrameChecksumSizeBytes);
}

}  // namespace quire
