// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/service/read/answer_read.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

#include "codecs/payload/partition_table.h"
#include "server/service/read/wire_encoder.h"

namespace quire {
namespace {

// Text that is encoded on a thread of gRPC: a tenth of a millisecond's work.
// More goes to the decode pool.
constexpr uint64_t kInlineWorkBytesMax = 64 << 10;

bool IsLongWork(const AnswerPlan& plan) {
  return plan.encoding == v1::WIRE_ENCODING_FSST &&
         plan.size_bytes > kInlineWorkBytesMax;
}

// Clears the withdrawn parts of a copied slice. `copied` is its text, which
// begins `offset` bytes after the start of the answer's.
void ClearWithdrawn(const AnswerPlan& plan, uint64_t offset,
                    MutableByteView copied) {
  const uint64_t end = offset + copied.size();
  for (auto zero = std::ranges::upper_bound(plan.zeros, offset, {},
                                            [](const AnswerRange& range) {
                                              return range.offset +
                                                     range.size_bytes;
                                            });
       zero != plan.zeros.end() && zero->offset < end; ++zero) {
    const uint64_t from = std::max(zero->offset, offset) - offset;
    const uint64_t to = std::min(zero->offset + zero->size_bytes, end) - offset;
    std::ranges::fill(copied.subspan(from, to - from), uint8_t{0});
  }
}

// Sets the text of all slices of a part; `index` is the first.
void Fill(const AnswerPlan& plan, size_t index, const BlockPtr& block,
          const std::shared_ptr<MadeBytes>& copies,
          std::vector<BlockPiece>& pieces) {
  do {
    const PlannedSlice& slice = plan.slices[index];
    BlockPiece& piece = pieces[index];
    if (slice.is_copied) {
      const ByteView text =
          block->bytes().subspan(slice.offset, slice.size_bytes);
      const MutableByteView copied =
          copies->mutable_bytes().subspan(piece.offset, text.size());
      std::ranges::copy(text, copied.begin());
      // With zeros all slices are copied: the piece has the same offset in the
      // answer's text.
      ClearWithdrawn(plan, piece.offset, copied);
    }
    piece.block = slice.is_copied ? BlockPtr(copies) : block;
    index = slice.next_repeat;
  } while (index != 0);
}

// Looks up each block in the cache. Returns false if some are missing: their
// pieces have a null block.
bool FindCached(BlockStore& store, const ServedArchive& archive,
                const AnswerPlan& plan, FetchClass fetch_class,
                const std::shared_ptr<MadeBytes>& copies,
                std::vector<BlockPiece>& pieces) {
  pieces.reserve(plan.slices.size());
  uint32_t copied_bytes = 0;
  for (const PlannedSlice& slice : plan.slices) {
    pieces.push_back({nullptr, slice.is_copied ? copied_bytes : slice.offset,
                      slice.size_bytes});
    copied_bytes += slice.is_copied ? slice.size_bytes : 0;
  }
  bool all_found = true;
  for (size_t i = 0; i < pieces.size(); ++i) {
    const PlannedSlice& slice = plan.slices[i];
    if (slice.is_repeat) {
      continue;
    }
    const uint32_t segment_index = slice.block.segment_index;
    const uint64_t source_id = plan.form == BlockForm::kStored
                                   ? archive.StoredSourceId(segment_index)
                                   : archive.SourceId(segment_index);
    const BlockPtr block =
        store.Lookup({source_id, slice.block, slice.part}, fetch_class);
    if (block == nullptr) {
      all_found = false;
    } else {
      Fill(plan, i, block, copies, pieces);
    }
  }
  return all_found;
}

}  // namespace

void FetchBundle::Start(BlockStore& store) {
  const std::vector<BlockStore::FetchId> ids =
      store.FetchAll(std::exchange(fetches_, {}));
  auto next = ids.begin();
  for (const Part& part : std::exchange(parts_, {})) {
    const auto end = next + static_cast<ptrdiff_t>(part.fetch_count);
    part.read->Started({next, end});
    next = end;
  }
}

std::shared_ptr<AnswerRead> AnswerRead::Start(
    BlockStore& store, const std::shared_ptr<const ServedArchive>& archive,
    AnswerPlan plan, const Requester& requester, Done done,
    FetchBundle* bundle) {
  std::shared_ptr<MadeBytes> copies;
  if (plan.copied_text_bytes > 0) {
    copies = MakeBytes(store.buffers(), plan.copied_text_bytes);
  }
  std::vector<BlockPiece> pieces;
  const bool all_found =
      FindCached(store, *archive, plan, requester.fetch_class, copies, pieces);
  // Allocations dominate the time of a short answer: a cached one allocates
  // only its pieces.
  if (all_found && !IsLongWork(plan)) {
    done(EncodeAnswer(store.buffers(), *archive, plan, std::move(pieces)));
    return nullptr;
  }
  std::shared_ptr<AnswerRead> read(new AnswerRead(
      store, archive, std::move(plan), requester.client_id, std::move(done)));
  read->pieces_ = std::move(pieces);
  read->copies_ = std::move(copies);
  if (all_found) {
    read->OneEnded(/*is_starter=*/true);
  } else if (bundle == nullptr) {
    std::vector<BlockStore::FetchItem> fetches;
    read->AddMisses(requester, fetches);
    read->Started(store.FetchAll(std::move(fetches)));
  } else {
    const size_t count_before = bundle->fetches_.size();
    read->AddMisses(requester, bundle->fetches_);
    bundle->parts_.push_back({read, bundle->fetches_.size() - count_before});
  }
  return read;
}

bool AnswerRead::TakesWholeBlock(const BlockFetch& fetch) const {
  BlockKey before = fetch.key;
  if (before.part == 0) {
    return false;
  }
  const uint32_t parts_before = PartsBeforeWhole(
      fetch.raw_size_bytes,
      {.read_time = store_.TimePerRead(fetch.placement.get()),
       .decode_time_per_mib = archive_->part_time_per_mib->mean()});
  for (uint32_t i = 0; i < parts_before; ++i) {
    if (before.part-- == 0 || !store_.IsCached(before)) {
      return false;
    }
  }
  return true;
}

BlockFetch AnswerRead::FetchOf(const PlannedSlice& slice,
                               const Requester& requester) const {
  const Archive& archive = *archive_->archive;
  BlockFetch fetch;
  fetch.key.block = slice.block;
  fetch.key.part = slice.part;
  fetch.extent = archive.BlockExtent(slice.block);
  fetch.fetch_class = requester.fetch_class;
  fetch.client_id = requester.client_id;
  fetch.times = requester.times;
  fetch.placement = archive_->placements[slice.block.segment_index];
  if (plan_.form == BlockForm::kStored) {
    fetch.key.source_id = archive_->StoredSourceId(slice.block.segment_index);
    fetch.raw_size_bytes = slice.fetched_size_bytes;
    fetch.decoder = archive_->stored_reader;
  } else {
    fetch.key.source_id = archive_->SourceId(slice.block.segment_index);
    fetch.raw_size_bytes = archive.BlockSizeBytes(slice.block);
    fetch.part_size_bytes = static_cast<uint32_t>(FittedPartitionSize(
        fetch.raw_size_bytes, archive.codec().partition_size_bytes()));
    fetch.all_parts = TakesWholeBlock(fetch);
    fetch.decoder = archive_->decoder;
  }
  return fetch;
}

void AnswerRead::AddMisses(const Requester& requester,
                           std::vector<BlockStore::FetchItem>& fetches) {
  for (size_t i = 0; i < pieces_.size(); ++i) {
    if (pieces_[i].block != nullptr || plan_.slices[i].is_repeat) {
      continue;
    }
    pending_count_.fetch_add(1, std::memory_order_relaxed);
    fetches.push_back({.fetch = FetchOf(plan_.slices[i], requester),
                       .done = [self = shared_from_this(),
                                i](const absl::StatusOr<BlockPtr>& block) {
                         self->OnBlock(i, block);
                       }});
  }
}

void AnswerRead::Started(std::vector<BlockStore::FetchId> fetches) {
  std::vector<BlockStore::FetchId> unwanted;
  {
    MutexLock lock(&mutex_);
    (cancelled_ ? unwanted : fetches_) = std::move(fetches);
  }
  CancelFetches(unwanted);
  OneEnded(/*is_starter=*/true);
}

ErrorMetadata AnswerRead::DamagedText(size_t index) const {
  uint64_t before_size_bytes = 0;
  uint64_t size_bytes = 0;
  for (size_t i = 0; i < plan_.slices.size(); ++i) {
    const PlannedSlice& slice = plan_.slices[i];
    if (slice.block == plan_.slices[index].block) {
      size_bytes += slice.size_bytes;
    } else if (i > index) {
      break;
    } else {
      before_size_bytes += std::exchange(size_bytes, 0) + slice.size_bytes;
    }
  }
  return {{"before_size_bytes", absl::StrCat(before_size_bytes)},
          {"damaged_size_bytes", absl::StrCat(size_bytes)}};
}

void AnswerRead::OnBlock(size_t index, const absl::StatusOr<BlockPtr>& block) {
  if (block.ok()) {
    Fill(plan_, index, *block, copies_, pieces_);
  } else {
    bool is_first_error = false;
    {
      MutexLock lock(&mutex_);
      is_first_error = first_error_.ok();
      if (is_first_error) {
        first_error_ =
            ExplainBlockError(*archive_, block.status(),
                              plan_.slices[index].block, DamagedText(index));
      }
    }
    if (is_first_error) {
      Cancel();
    }
  }
  // The start counts as one: a fetch that ends on the starter's thread does not
  // end the read.
  OneEnded(/*is_starter=*/false);
}

void AnswerRead::OneEnded(bool is_starter) {
  if (pending_count_.fetch_sub(1, std::memory_order_acq_rel) > 1) {
    return;
  }
  absl::Status error;
  {
    MutexLock lock(&mutex_);
    error = first_error_;
  }
  if (!error.ok()) {
    const Done done = std::move(done_);
    done(std::move(error));
  } else if (is_starter && IsLongWork(plan_)) {
    store_.decode_pool().Add(
        {.run = [self = shared_from_this()] { self->Encode(); },
         .client_id = client_id_,
         .cost = plan_.size_bytes});
  } else {
    Encode();
  }
}

void AnswerRead::Encode() {
  const Done done = std::move(done_);
  copies_.reset();
  done(EncodeAnswer(store_.buffers(), *archive_, plan_, std::move(pieces_)));
}

void AnswerRead::Cancel() {
  std::vector<BlockStore::FetchId> fetches;
  {
    MutexLock lock(&mutex_);
    if (cancelled_) {
      return;
    }
    cancelled_ = true;
    fetches = std::move(fetches_);
  }
  CancelFetches(fetches);
}

void AnswerRead::CancelFetches(
    const std::vector<BlockStore::FetchId>& fetches) {
  for (const BlockStore::FetchId id : fetches) {
    if (id != 0) {
      store_.Cancel(id);
    }
  }
}

uint32_t PartsBeforeWhole(uint64_t block_size_bytes, const PartCosts& costs) {
  constexpr uint32_t kNever = std::numeric_limits<uint32_t>::max();
  if (costs.read_time.count() <= 0 || costs.decode_time_per_mib.count() <= 0) {
    return kNever;
  }
  const double decode_ns =
      static_cast<double>(costs.decode_time_per_mib.count()) *
      static_cast<double>(block_size_bytes) / (1 << 20);
  const double count = decode_ns / static_cast<double>(costs.read_time.count());
  // At least one: no client is reading through a block without cached parts.
  return count >= kNever ? kNever : static_cast<uint32_t>(count) + 1;
}

}  // namespace quire
