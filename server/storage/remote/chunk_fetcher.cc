// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/storage/remote/chunk_fetcher.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"

namespace quire {
namespace {

// Returns the outcome of a GET, whose answer must have the ETag of `file`; the
// first answer sets it. The reader has checked this only if the ETag was known
// when the GET began. Errors: Aborted  another ETag; that of the GET.
absl::Status CheckEnd(const ObjectGet::End& end, CachedFile& file) {
  if (!end.status.ok()) {
    return end.status;
  }
  if (file.etag.empty()) {
    file.etag = end.etag;
  }
  return end.etag == file.etag
             ? absl::OkStatus()
             : absl::AbortedError(absl::StrCat(
                   file.address->url, "/", file.object,
                   ": has changed in the store while it was first read"));
}

}  // namespace

struct ChunkFetcher::InFlight {
  CachedFilePtr file;
  ChunkRange range;
  uint64_t start = 0;
  uint64_t size_bytes = 0;
  // OK: chunks are reserved, and everything so far is written.
  absl::Status cached;
  bool has_begun = false;
  std::vector<ChunkWaiter> waiters;
  // Those that came after the first bytes.
  std::vector<ChunkWaiter> late_waiters;
};

void ChunkFetcher::Fetch(
    const CachedFilePtr& file, ChunkRange range, bool may_hedge,
    const std::function<ChunkWaiter(ChunkRange)>& make_waiter) {
  for (uint64_t chunk = range.first; chunk < range.end();) {
    ChunkRange part = {.first = chunk, .count = 1};
    const auto found = in_flight_.find(Key(file.get(), chunk));
    std::shared_ptr<InFlight> fetch;
    if (found != in_flight_.end()) {
      fetch = found->second;
      part.count = std::min(range.end(), fetch->range.end()) - chunk;
    } else {
      while (part.end() < range.end() &&
             !in_flight_.contains(Key(file.get(), part.end()))) {
        ++part.count;
      }
      fetch = Reserve(file, part);
    }
    (fetch->has_begun ? fetch->late_waiters : fetch->waiters)
        .push_back(make_waiter(part));
    chunk = part.end();
    if (found == in_flight_.end()) {
      ObjectGet get;
      get.address = file->address;
      get.object = file->object;
      get.wanted = {
          .range = ContentRange{.first = fetch->start,
                                .last = fetch->start + fetch->size_bytes - 1,
                                .object_size = file->map.size_bytes()},
          .etag = file->etag};
      get.may_hedge = may_hedge;
      get.on_body = [this, fetch](uint64_t offset, ByteView bytes) {
        OnBody(*fetch, offset, bytes);
      };
      get.on_end = [this, fetch](const ObjectGet::End& end) {
        OnEnd(fetch, end);
      };
      reader_.Start(std::move(get));
    }
  }
}

std::shared_ptr<ChunkFetcher::InFlight> ChunkFetcher::Reserve(
    const CachedFilePtr& file, ChunkRange range) {
  auto fetch = std::make_shared<InFlight>();
  fetch->file = file;
  fetch->range = range;
  fetch->start = file->map.StartOf(range.first);
  fetch->size_bytes = file->map.SizeOf(range);
  fetch->cached = cache_.Reserve(*file, range);
  for (uint64_t chunk = range.first; chunk < range.end(); ++chunk) {
    in_flight_.emplace(Key(file.get(), chunk), fetch);
  }
  return fetch;
}

void ChunkFetcher::OnBody(InFlight& fetch, uint64_t offset, ByteView bytes) {
  fetch.has_begun = true;
  const uint64_t start = fetch.start + offset;
  const uint64_t end = start + bytes.size();
  for (const ChunkWaiter& waiter : fetch.waiters) {
    const uint64_t from = std::max(start, waiter.offset);
    const uint64_t to = std::min(end, waiter.offset + waiter.out.size());
    if (from < to) {
      std::copy_n(bytes.data() + (from - start), to - from,
                  waiter.out.data() + (from - waiter.offset));
    }
  }
  if (fetch.cached.ok()) {
    fetch.cached = cache_.Write(*fetch.file, start, bytes);
    if (!fetch.cached.ok()) {
      cache_.Abandon(*fetch.file, fetch.range);
    }
  }
}

void ChunkFetcher::OnEnd(const std::shared_ptr<InFlight>& fetch,
                         const ObjectGet::End& end) {
  for (uint64_t chunk = fetch->range.first; chunk < fetch->range.end();
       ++chunk) {
    in_flight_.erase(Key(fetch->file.get(), chunk));
  }
  const absl::Status status = CheckEnd(end, *fetch->file);
  const bool is_good = status.ok();
  if (fetch->cached.ok()) {
    if (is_good) {
      cache_.Commit(*fetch->file, fetch->range);
    } else {
      cache_.Abandon(*fetch->file, fetch->range);
    }
  }
  if (absl::IsAborted(status) || absl::IsNotFound(status)) {
    fetch->file->is_stale = true;
  }
  if (!is_good && report_) {
    report_(status);
  }
  using Outcome = ChunkWaiter::Outcome;
  for (const ChunkWaiter& waiter : fetch->waiters) {
    // Who only fills the cache has failed without it.
    const bool is_filled =
        is_good && (fetch->cached.ok() || !waiter.out.empty());
    waiter.done(is_filled ? Outcome::kFilled : Outcome::kFailed,
                is_good && !is_filled ? fetch->cached : status);
  }
  for (const ChunkWaiter& waiter : fetch->late_waiters) {
    waiter.done(is_good ? Outcome::kAgain : Outcome::kFailed, status);
  }
}

}  // namespace quire
