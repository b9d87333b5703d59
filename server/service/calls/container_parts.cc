// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/service/calls/container_parts.h"

#include <span>

#include "absl/time/clock.h"
#include "absl/time/time.h"

#include "codecs/base/mutex.h"
#include "codecs/base/status_macros.h"
#include "server/archive/container/container_part.h"
#include "server/service/limits/client_name.h"
#include "server/service/read/answer.h"

namespace quire {
namespace {

// A store that refuses fetches is asked so often, about five seconds.
constexpr int kBusyAttemptsMax = 100;
constexpr absl::Duration kBusyDelay = absl::Milliseconds(50);

// Decodes one part, which is not divided.
class PartDecoder : public BlockDecoder {
 public:
  PartDecoder(std::shared_ptr<const ServedArchive> archive,
              const ContainerPart& part)
      : archive_(std::move(archive)), part_(part) {}

  absl::Status Decode(BlockAddress /*block*/, ByteView stored,
                      std::span<const BlockPart> parts) const override {
    for (const BlockPart& part : parts) {
      QUIRE_RETURN_IF_ERROR(DecodePart(part_, stored, part.text));
    }
    return absl::OkStatus();
  }

  void NoteDamage(BlockAddress block,
                  const absl::Status& status) const override {
    archive_->decoder->NoteDamage(block, status);
  }

 private:
  // Also keeps the file open.
  const std::shared_ptr<const ServedArchive> archive_;
  const ContainerPart part_;
};

BlockKey StoreKeyOf(const ServedArchive& archive, const ArchivePart& part) {
  return {.source_id = archive.SourceId(part.segment_index),
          .block = {part.segment_index, part.block_index}};
}

BlockFetch FetchOf(const std::shared_ptr<const ServedArchive>& archive,
                   const ArchivePart& part) {
  BlockFetch fetch;
  fetch.key = StoreKeyOf(*archive, part);
  fetch.extent = part.extent;
  fetch.raw_size_bytes = part.part.size_bytes;
  fetch.decoder = std::make_shared<PartDecoder>(archive, part.part);
  fetch.placement = archive->placements[part.segment_index];
  return fetch;
}

// Result of a fetch that a thread waits for.
class AwaitedBlock {
 public:
  void Set(absl::StatusOr<BlockPtr> block) ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    block_ = std::move(block);
    is_set_.NotifyAll();
  }

  absl::StatusOr<BlockPtr> Wait() ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    while (!block_.has_value()) {
      is_set_.Wait(&mutex_);
    }
    return *std::move(block_);
  }

 private:
  Mutex mutex_;
  CondVar is_set_;
  std::optional<absl::StatusOr<BlockPtr>> block_ ABSL_GUARDED_BY(mutex_);
};

absl::StatusOr<BlockPtr> FetchAndWait(BlockStore& store,
                                      const BlockFetch& fetch) {
  for (int attempt = 1;; ++attempt) {
    // Shared, as `done` may still run when the wait has ended.
    const auto awaited = std::make_shared<AwaitedBlock>();
    store.Fetch(fetch, [awaited](absl::StatusOr<BlockPtr> block) {
      awaited->Set(std::move(block));
    });
    absl::StatusOr<BlockPtr> block = awaited->Wait();
    if (!absl::IsResourceExhausted(block.status()) ||
        attempt == kBusyAttemptsMax) {
      return block;
    }
    absl::SleepFor(kBusyDelay);
  }
}

}  // namespace

ContainerParts::ContainerParts(BlockStore& store, Admission& admission,
                               std::string client,
                               std::shared_ptr<const ServedArchive> archive)
    : store_(store),
      admission_(admission),
      client_(std::move(client)),
      archive_(std::move(archive)) {}

absl::Status ContainerParts::AdmitBytes(uint64_t size_bytes) {
  QUIRE_ASSIGN_OR_RETURN(
      Admission::Ticket ticket,
      admission_.Admit(client_, size_bytes, Admission::Use::kSingleAnswer));
  tickets_.push_back(std::move(ticket));
  return absl::OkStatus();
}

void ContainerParts::Hold(const ArchivePart& part, BlockPtr block) {
  held_bytes_ += part.part.size_bytes;
  loaded_bytes_ += part.part.size_bytes;
  held_.emplace(KeyOf(part), std::move(block));
}

absl::StatusOr<std::optional<PartBytes>> ContainerParts::Load(
    const ArchivePart& part) {
  auto found = held_.find(KeyOf(part));
  if (found == held_.end()) {
    BlockPtr block = store_.Lookup(StoreKeyOf(*archive_, part));
    if (block == nullptr) {
      if (missing_.emplace(KeyOf(part), part).second) {
        missing_bytes_ += part.part.size_bytes;
      }
      return std::optional<PartBytes>();
    }
    QUIRE_RETURN_IF_ERROR(AdmitBytes(part.part.size_bytes));
    Hold(part, std::move(block));
    found = held_.find(KeyOf(part));
  }
  return std::optional(
      PartBytes{.owner = found->second, .bytes = found->second->bytes()});
}

void ContainerParts::ForgetMissing() {
  missing_.clear();
  missing_bytes_ = 0;
}

void ContainerParts::Free() {
  held_.clear();
  tickets_.clear();
  held_bytes_ = 0;
}

void ContainerParts::Fetch(Done done) {
  if (absl::Status admitted = AdmitBytes(missing_bytes_); !admitted.ok()) {
    done(std::move(admitted));
    return;
  }
  done_ = std::move(done);
  std::vector<BlockStore::FetchItem> fetches;
  for (const auto& [key, part] : missing_) {
    BlockFetch fetch = FetchOf(archive_, part);
    fetch.client_id = ClientIdOf(client_);
    fetches.push_back(
        {.fetch = std::move(fetch),
         .done = [this, part = part](absl::StatusOr<BlockPtr> block) {
           OnPart(part, std::move(block));
         }});
  }
  ForgetMissing();
  // The start counts as one: the fetches may all end before it.
  pending_count_ = fetches.size() + 1;
  store_.FetchAll(std::move(fetches));
  OneEnded();
}

void ContainerParts::OnPart(const ArchivePart& part,
                            absl::StatusOr<BlockPtr> block) {
  {
    MutexLock lock(&mutex_);
    if (block.ok()) {
      fetched_.emplace_back(part, *std::move(block));
    } else if (first_error_.ok()) {
      first_error_ = ExplainBlockError(*archive_, block.status(),
                                       {part.segment_index, part.block_index});
    }
  }
  OneEnded();
}

void ContainerParts::OneEnded() {
  if (pending_count_.fetch_sub(1, std::memory_order_acq_rel) > 1) {
    return;
  }
  absl::Status error;
  {
    MutexLock lock(&mutex_);
    for (auto& [part, block] : fetched_) {
      Hold(part, std::move(block));
    }
    fetched_.clear();
    error = std::exchange(first_error_, absl::OkStatus());
  }
  // `done` may destroy this.
  const Done done = std::move(done_);
  done(std::move(error));
}

ArchivePartLoader BlockingFieldLoad(
    BlockStore& store, std::shared_ptr<const ServedArchive> archive) {
  return [&store, archive = std::move(archive)](const ArchivePart& part)
             -> absl::StatusOr<std::optional<PartBytes>> {
    BlockFetch fetch = FetchOf(archive, part);
    fetch.fetch_class = FetchClass::kScan;
    BlockPtr block = store.Lookup(fetch.key, fetch.fetch_class);
    if (block == nullptr) {
      QUIRE_ASSIGN_OR_RETURN(block, FetchAndWait(store, fetch));
    }
    const ByteView bytes = block->bytes();
    return std::optional(PartBytes{.owner = std::move(block), .bytes = bytes});
  };
}

}  // namespace quire
