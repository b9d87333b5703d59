// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/service/read/range_read.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

#include "absl/container/btree_map.h"
#include "absl/strings/str_cat.h"

#include "codecs/base/memory_guard.h"
#include "server/service/base/service_error.h"
#include "server/service/read/decode_chooser.h"

namespace quire {
namespace {

// A full queue is more than a hundred thousand reads.
constexpr absl::Duration kReadQueueRetryAfter = absl::Seconds(1);

}  // namespace

absl::Status ExplainBlockError(const ServedArchive& archive,
                               const absl::Status& status, BlockAddress block,
                               const ErrorMetadata& more) {
  ErrorMetadata metadata = {{"archive", archive.name},
                            {"segment", absl::StrCat(block.segment_index)},
                            {"block", absl::StrCat(block.block_index)}};
  const std::string place =
      absl::StrCat("block ", block.block_index, " of segment ",
                   block.segment_index, " of archive \"", archive.name, "\"");
  switch (status.code()) {
    case absl::StatusCode::kDataLoss:
      metadata.insert(metadata.end(), more.begin(), more.end());
      return ServiceError(
          status.code(), v1::BLOCK_DAMAGED,
          absl::StrCat(place, " is damaged; `quired verify` on the server ",
                       "names what it touches"),
          metadata);
    case absl::StatusCode::kUnavailable:
      return ServiceError(status.code(), v1::DEVICE_FAILED,
                          absl::StrCat(place, " could not be read"), metadata);
    case absl::StatusCode::kResourceExhausted:
      return ServiceError(status.code(), v1::SERVER_BUSY,
                          "the server's read queue is full; retry later", {},
                          kReadQueueRetryAfter);
    case absl::StatusCode::kCancelled:
      return ServiceError(status.code(), v1::CALL_CANCELLED,
                          "the call was cancelled");
    default:
      return status;
  }
}

PartPlace PlaceInPart(const ServedArchive& archive, const BlockSlice& slice,
                      BlockForm form) {
  const uint32_t block_size = archive.archive->BlockSizeBytes(slice.block);
  const uint32_t part_size = archive.archive->info().codec.partition_size_bytes;
  if (part_size == 0 || form == BlockForm::kStored) {
    return {
        .part = 0, .offset = slice.offset_in_block, .size_bytes = block_size};
  }
  const TextRange part = archive.archive->codec().DecodedRange(
      block_size, {.offset = slice.offset_in_block, .size = 1});
  return {.part = static_cast<uint32_t>(part.offset / part_size),
          .offset = slice.offset_in_block - static_cast<uint32_t>(part.offset),
          .size_bytes = static_cast<uint32_t>(part.size)};
}

std::vector<BlockSlice> SplitAtParts(const ServedArchive& archive,
                                     std::vector<BlockSlice> slices,
                                     BlockForm form) {
  if (archive.archive->info().codec.partition_size_bytes == 0 ||
      form == BlockForm::kStored) {
    return slices;
  }
  std::vector<BlockSlice> parts;
  for (BlockSlice rest : slices) {
    while (rest.size_bytes > 0) {
      const PartPlace place = PlaceInPart(archive, rest, form);
      BlockSlice part = rest;
      part.size_bytes =
          std::min(rest.size_bytes, place.size_bytes - place.offset);
      parts.push_back(part);
      rest.offset_in_block += part.size_bytes;
      rest.size_bytes -= part.size_bytes;
    }
  }
  return parts;
}

FetchBundle::~FetchBundle() {
  FailAll(NoMemoryTo("fetch blocks"));
}

void FetchBundle::FailAll(const absl::Status& status) {
  for (const Part& part : std::exchange(parts_, {})) {
    part.read->Fail(status);
  }
}

void FetchBundle::Start(BlockStore& store) {
  std::vector<BlockStore::FetchId> ids;
  const absl::Status status = OrNoMemory("fetch blocks", [&] {
    std::vector<BlockStore::FetchItem> fetches;
    for (Part& part : parts_) {
      part.fetch_count = part.fetches.size();
      std::move(part.fetches.begin(), part.fetches.end(),
                std::back_inserter(fetches));
    }
    ids = store.FetchAll(std::move(fetches));
    return absl::OkStatus();
  });
  if (!status.ok()) {
    FailAll(status);
    return;
  }
  auto next = ids.begin();
  for (const Part& part : std::exchange(parts_, {})) {
    const auto end = next + static_cast<ptrdiff_t>(part.fetch_count);
    const absl::Status started = OrNoMemory("fetch blocks", [&] {
      part.read->Started({next, end});
      return absl::OkStatus();
    });
    if (!started.ok()) {
      part.read->Fail(started);
    }
    next = end;
  }
}

RangeRead::RangeRead(BlockStore& store,
                     std::shared_ptr<const ServedArchive> archive,
                     std::vector<BlockSlice> slices, BlockForm form, Done done)
    : store_(store),
      archive_(std::move(archive)),
      slices_(std::move(slices)),
      first_slices_(FirstSlices(*archive_, slices_, form)),
      form_(form),
      done_(std::move(done)) {}

std::vector<size_t> RangeRead::FirstSlices(
    const ServedArchive& archive, const std::vector<BlockSlice>& slices,
    BlockForm form) {
  std::vector<size_t> first;
  if (!archive.archive->has_layout()) {
    return first;
  }
  absl::btree_map<std::pair<BlockAddress, uint32_t>, size_t> seen;
  for (size_t i = 0; i < slices.size(); ++i) {
    const uint32_t part = PlaceInPart(archive, slices[i], form).part;
    first.push_back(seen.try_emplace({slices[i].block, part}, i).first->second);
  }
  return first;
}

bool RangeRead::FindCached(BlockStore& store, const ServedArchive& archive,
                           const std::vector<BlockSlice>& slices,
                           BlockForm form, FetchClass fetch_class,
                           std::vector<BlockPiece>& pieces) {
  const uint64_t source_id =
      form == BlockForm::kStored ? archive.stored_source_id : archive.source_id;
  const std::vector<size_t> first = FirstSlices(archive, slices, form);
  pieces.resize(slices.size());
  bool all_found = true;
  for (size_t i = 0; i < slices.size(); ++i) {
    const PartPlace place = PlaceInPart(archive, slices[i], form);
    pieces[i] = {nullptr, place.offset, slices[i].size_bytes};
    pieces[i].block =
        first.empty() || first[i] == i
            ? store.Lookup({source_id, slices[i].block, place.part},
                           fetch_class)
            : pieces[first[i]].block;
    all_found &= pieces[i].block != nullptr;
  }
  return all_found;
}

std::shared_ptr<RangeRead> RangeRead::StartMissing(
    BlockStore& store, std::shared_ptr<const ServedArchive> archive,
    std::vector<BlockSlice> slices, BlockForm form, const Requester& requester,
    std::vector<BlockPiece> pieces, Done done, FetchBundle* bundle) {
  std::shared_ptr<RangeRead> read(new RangeRead(
      store, std::move(archive), std::move(slices), form, std::move(done)));
  {
    MutexLock lock(&read->mutex_);
    read->pieces_ = std::move(pieces);
    // For their start: fetches that end while the others are being started do
    // not end the read.
    read->pending_count_ = 1;
  }
  const absl::Status status = OrNoMemory("fetch blocks", [&] {
    std::vector<BlockStore::FetchItem> misses = read->Misses(requester);
    if (bundle == nullptr) {
      read->Started(store.FetchAll(std::move(misses)));
    } else {
      bundle->parts_.push_back({read, std::move(misses)});
    }
    return absl::OkStatus();
  });
  if (!status.ok()) {
    read->Fail(status);
  }
  return read;
}

bool RangeRead::TakesWholeBlock(const BlockFetch& fetch) const {
  if (archive_->range_decode != RangeDecode::kAuto) {
    return archive_->range_decode == RangeDecode::kWhole;
  }
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

BlockFetch RangeRead::FetchOf(const BlockSlice& slice,
                              const Requester& requester) const {
  const BlockAddress block = slice.block;
  const Archive& archive = *archive_->archive;
  BlockFetch fetch;
  fetch.extent = archive.BlockExtent(block);
  fetch.fetch_class = requester.fetch_class;
  fetch.client_id = requester.client_id;
  fetch.times = requester.times;
  fetch.placement = archive_->placements[block.segment_index];
  if (form_ == BlockForm::kStored) {
    fetch.key = {.source_id = archive_->stored_source_id, .block = block};
    fetch.raw_size_bytes = StoredBlockSizeBytes(archive, block);
    fetch.decoder = archive_->stored_reader;
  } else {
    fetch.key = {.source_id = archive_->source_id,
                 .block = block,
                 .part = PlaceInPart(*archive_, slice, form_).part};
    fetch.part_size_bytes = archive.info().codec.partition_size_bytes;
    fetch.raw_size_bytes = archive.BlockSizeBytes(block);
    fetch.all_parts = TakesWholeBlock(fetch);
    fetch.decoder = archive_->decoder;
  }
  return fetch;
}

std::vector<BlockStore::FetchItem> RangeRead::Misses(
    const Requester& requester) {
  std::vector<BlockStore::FetchItem> items;
  MutexLock lock(&mutex_);
  for (size_t i = 0; i < slices_.size(); ++i) {
    if (pieces_[i].block != nullptr ||
        (!first_slices_.empty() && first_slices_[i] != i)) {
      continue;
    }
    ++pending_count_;
    items.push_back({.fetch = FetchOf(slices_[i], requester),
                     .done = [self = shared_from_this(),
                              i](absl::StatusOr<BlockPtr> result) {
                       self->OnBlock(i, std::move(result));
                     }});
  }
  return items;
}

void RangeRead::Started(std::vector<BlockStore::FetchId> fetches) {
  std::vector<BlockStore::FetchId> unwanted;
  {
    MutexLock lock(&mutex_);
    (cancelled_ ? unwanted : fetches_) = std::move(fetches);
  }
  CancelFetches(unwanted);
  OneEnded(EndedOn::kStarter);
}

ErrorMetadata RangeRead::DamagedText(size_t index) const {
  uint64_t before_size_bytes = 0;
  uint64_t size_bytes = 0;
  for (size_t i = 0; i < slices_.size(); ++i) {
    if (slices_[i].block == slices_[index].block) {
      size_bytes += slices_[i].size_bytes;
    } else if (i > index) {
      break;
    } else {
      before_size_bytes += std::exchange(size_bytes, 0) + slices_[i].size_bytes;
    }
  }
  return {{"before_size_bytes", absl::StrCat(before_size_bytes)},
          {"damaged_size_bytes", absl::StrCat(size_bytes)}};
}

void RangeRead::OnBlock(size_t index, absl::StatusOr<BlockPtr> block) {
  bool is_first_error = false;
  {
    MutexLock lock(&mutex_);
    if (block.ok()) {
      pieces_[index].block = *std::move(block);
    } else if (first_error_.ok()) {
      first_error_ = OrNoMemory("say which block failed", [&] {
        return ExplainBlockError(*archive_, block.status(),
                                 slices_[index].block, DamagedText(index));
      });
      is_first_error = true;
    }
  }
  if (is_first_error) {
    Cancel();
  }
  // While the start has not ended this is not the last one, so that a fetch
  // that ends on the starter's thread does not end the read.
  OneEnded(EndedOn::kDecodePool);
}

void RangeRead::OneEnded(EndedOn thread) {
  absl::StatusOr<std::vector<BlockPiece>> result;
  {
    MutexLock lock(&mutex_);
    if (has_ended_ || --pending_count_ > 0) {
      return;
    }
    has_ended_ = true;
    if (first_error_.ok()) {
      for (size_t i = 0; i < first_slices_.size(); ++i) {
        pieces_[i].block = pieces_[first_slices_[i]].block;
      }
      result = std::move(pieces_);
    } else {
      result = first_error_;
    }
  }
  // Only the last one to end comes here.
  Done done = std::move(done_);
  done(std::move(result), thread);
}

void RangeRead::Fail(const absl::Status& status) {
  {
    MutexLock lock(&mutex_);
    if (has_ended_) {
      return;
    }
    has_ended_ = true;
  }
  Done done = std::move(done_);
  done(status, EndedOn::kStarter);
}

void RangeRead::Cancel() {
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

void RangeRead::CancelFetches(const std::vector<BlockStore::FetchId>& fetches) {
  for (const BlockStore::FetchId id : fetches) {
    if (id != 0) {
      store_.Cancel(id);
    }
  }
}

}  // namespace quire
