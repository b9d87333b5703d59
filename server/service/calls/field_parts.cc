// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/service/calls/field_parts.h"

#include <span>

#include "codecs/base/status_macros.h"
#include "server/archive/fields/field_part.h"
#include "server/service/limits/client_name.h"
#include "server/service/read/answer.h"

namespace quire {
namespace {

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

}  // namespace

FieldParts::FieldParts(BlockStore& store, Admission& admission,
                       std::string client,
                       std::shared_ptr<const ServedArchive> archive)
    : store_(store),
      admission_(admission),
      client_(std::move(client)),
      archive_(std::move(archive)) {}

BlockKey FieldParts::StoreKeyOf(const ArchiveFieldPart& part) const {
  return {.source_id = archive_->SourceId(part.segment_index),
          .block = {part.segment_index, part.block_index}};
}

absl::Status FieldParts::AdmitBytes(uint64_t size_bytes) {
  QUIRE_ASSIGN_OR_RETURN(
      Admission::Ticket ticket,
      admission_.Admit(client_, size_bytes, Admission::Use::kSingleAnswer));
  tickets_.push_back(std::move(ticket));
  return absl::OkStatus();
}

void FieldParts::Hold(const ArchiveFieldPart& part, BlockPtr block) {
  held_bytes_ += part.part.size_bytes;
  loaded_bytes_ += part.part.size_bytes;
  held_.emplace(KeyOf(part), std::move(block));
}

absl::StatusOr<std::optional<FieldBytes>> FieldParts::Load(
    const ArchiveFieldPart& part) {
  auto found = held_.find(KeyOf(part));
  if (found == held_.end()) {
    BlockPtr block = store_.Lookup(StoreKeyOf(part));
    if (block == nullptr) {
      if (missing_.emplace(KeyOf(part), part).second) {
        missing_bytes_ += part.part.size_bytes;
      }
      return std::optional<FieldBytes>();
    }
    QUIRE_RETURN_IF_ERROR(AdmitBytes(part.part.size_bytes));
    Hold(part, std::move(block));
    found = held_.find(KeyOf(part));
  }
  return std::optional(
      FieldBytes{.owner = found->second, .bytes = found->second->bytes()});
}

void FieldParts::ForgetMissing() {
  missing_.clear();
  missing_bytes_ = 0;
}

void FieldParts::Free() {
  held_.clear();
  tickets_.clear();
  held_bytes_ = 0;
}

void FieldParts::Fetch(Done done) {
  if (absl::Status admitted = AdmitBytes(missing_bytes_); !admitted.ok()) {
    done(std::move(admitted));
    return;
  }
  done_ = std::move(done);
  std::vector<BlockStore::FetchItem> fetches;
  for (const auto& [key, part] : missing_) {
    BlockFetch fetch;
    fetch.key = StoreKeyOf(part);
    fetch.extent = part.extent;
    fetch.raw_size_bytes = part.part.size_bytes;
    fetch.client_id = ClientIdOf(client_);
    fetch.decoder = std::make_shared<PartDecoder>(archive_, part.part);
    fetch.placement = archive_->placements[part.segment_index];
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

void FieldParts::OnPart(const ArchiveFieldPart& part,
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

void FieldParts::OneEnded() {
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

}  // namespace quire
