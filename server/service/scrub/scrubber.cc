// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/service/scrub/scrubber.h"

#include <fcntl.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <span>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

#include "codecs/base/byte_size.h"
#include "codecs/base/bytes.h"
#include "codecs/base/status_macros.h"
#include "server/archive/archive.h"
#include "server/archive/archive_part.h"
#include "server/archive/files/file_io.h"
#include "server/archive/format/archive_format.h"
#include "server/archive/segment_reader.h"

namespace quire {
namespace {

constexpr size_t kStepBlocksMax = 128;
constexpr std::chrono::minutes kSaveInterval{1};
// Time until a look for an archive that is due, and after a failed step.
constexpr std::chrono::seconds kIdleTime{1};
// Blocks that cannot be read and are named in the log, in each pass.
constexpr uint64_t kNamedBlocksMax = 100;
// The step's client: below the scheduler's fairness between clients.
constexpr uint64_t kClientId = 0;

int64_t NowSeconds() {
  return absl::ToUnixSeconds(absl::Now());
}

// Drops the pages of an extent from the page cache: reads then come from the
// drive, and scrubbing displaces nothing.
void DropPages(int fd, uint64_t offset, uint64_t size_bytes) {
  posix_fadvise(fd, static_cast<off_t>(offset), static_cast<off_t>(size_bytes),
                POSIX_FADV_DONTNEED);
}

// True if the device failed, and may fail again. Otherwise the server lacks
// memory, or stops.
bool IsOfDevice(const absl::Status& status) {
  return !absl::IsResourceExhausted(status) && !absl::IsCancelled(status);
}

// True if the segment is in an object store. A failed GET is an outage, not
// damage.
bool IsRemote(const ServedArchive& archive, uint32_t segment_index) {
  return archive.placements[segment_index]->place.drive.kind ==
         DriveKind::kObjectStore;
}

// Copies the stored bytes of an extent to `stored`, which must live until the
// fetch has ended.
class StoredCopy : public BlockDecoder {
 public:
  // With kReplace the first reading counts as damaged: the store drops its
  // local copy and reads the extent again.
  StoredCopy(MutableByteView stored, LocalCopy local_copy)
      : stored_(stored), is_refusing_(local_copy == LocalCopy::kReplace) {}

  absl::Status Decode(BlockAddress /*block*/, ByteView stored,
                      std::span<const BlockPart> /*parts*/) const override {
    if (is_refusing_.exchange(false)) {
      return absl::DataLossError("the local copy is read again");
    }
    std::copy(stored.begin(), stored.end(), stored_.begin());
    return absl::OkStatus();
  }

 private:
  const MutableByteView stored_;
  mutable std::atomic<bool> is_refusing_;
};

uint64_t BlockCount(const Archive& archive) {
  return archive.info().block_count;
}

bool HasState(const Archive& archive, absl::string_view uuid) {
  return std::ranges::any_of(
      archive.info().history,
      [uuid](const ArchiveState& state) { return state.uuid == uuid; });
}

// Notes the segment of the next block.
void NotePosition(const Archive& archive, ScrubProgress& progress) {
  progress.segment_number.reset();
  progress.segment_next_block = 0;
  if (progress.next_block == 0) {
    return;
  }
  uint64_t first_block = 0;
  for (uint32_t s = 0; s < archive.info().segment_count; ++s) {
    const uint64_t end_block = first_block + archive.SegmentBlockCount(s);
    if (progress.next_block < end_block) {
      progress.segment_number = archive.SegmentNumber(s);
      progress.segment_next_block = progress.next_block - first_block;
      return;
    }
    first_block = end_block;
  }
}

// Continues a pass in an archive that has grown. Its first segments are those
// from before; the last ones may have been joined to one of a higher number,
// which is read from its start.
void GoOnInGrown(const Archive& archive, ScrubProgress& progress) {
  progress.uuid = archive.info().uuid;
  if (progress.next_block == 0) {
    return;
  }
  progress.next_block = 0;
  uint64_t first_block = 0;
  for (uint32_t s = 0; s < archive.info().segment_count; ++s) {
    const uint64_t block_count = archive.SegmentBlockCount(s);
    const uint32_t number = archive.SegmentNumber(s);
    if (!progress.segment_number.has_value() ||
        number > *progress.segment_number) {
      progress.next_block = first_block;
      break;
    }
    if (number == *progress.segment_number) {
      progress.next_block =
          first_block + std::min(progress.segment_next_block, block_count);
      break;
    }
    first_block += block_count;
  }
  NotePosition(archive, progress);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Scrubber>> Scrubber::Start(
    const ScrubOptions& options, const Catalog& catalog, BlockStore& store,
    LogSink log) {
  ScrubState state;
  if (!options.state_directory.empty()) {
    QUIRE_ASSIGN_OR_RETURN(state, ReadScrubState(options.state_directory));
    QUIRE_RETURN_IF_ERROR(WriteScrubState(options.state_directory, state));
  }
  std::unique_ptr<Scrubber> scrubber(
      new Scrubber(options, catalog, store, std::move(log), std::move(state)));
  try {
    scrubber->thread_ = std::thread([raw = scrubber.get()] { raw->Run(); });
  } catch (const std::system_error&) {
    return absl::ResourceExhaustedError(
        "no more threads are available for --scrub-interval");
  }
  return scrubber;
}

Scrubber::Scrubber(const ScrubOptions& options, const Catalog& catalog,
                   BlockStore& store, LogSink log, ScrubState state)
    : options_(options),
      catalog_(catalog),
      store_(store),
      log_(std::move(log)),
      state_(std::move(state)),
      pace_(options.rate_bytes_per_second) {}

Scrubber::~Scrubber() {
  {
    MutexLock lock(&mutex_);
    stop_ = true;
  }
  changed_.NotifyAll();
  if (thread_.joinable()) {
    thread_.join();
  }
}

std::vector<ScrubFigures> Scrubber::Figures() const {
  std::vector<ScrubFigures> figures;
  const Catalog::ByName archives = catalog_.Get();
  MutexLock lock(&mutex_);
  for (const auto& [name, served] : archives) {
    const auto found = state_.find(name);
    const auto bytes = scrubbed_bytes_.find(name);
    // An archive that was not yet seen is as one that was seen now.
    const ScrubProgress progress =
        found == state_.end() ? ScrubProgress{.completed_at_s = NowSeconds()}
                              : found->second;
    figures.push_back(
        {.archive = name,
         .scrubbed_bytes = bytes == scrubbed_bytes_.end() ? 0 : bytes->second,
         .damaged_count =
             std::max(progress.damaged_count, progress.last_damaged_count),
         .completed_at_s = progress.completed_at_s});
  }
  return figures;
}

void Scrubber::Run() {
  std::chrono::nanoseconds pause = kIdleTime;
  do {
    ScrubProgress progress;
    const std::shared_ptr<const ServedArchive> archive =
        ChooseArchive(progress);
    pause = kIdleTime;
    if (archive != nullptr) {
      absl::StatusOr<uint64_t> damaged = 0;
      if (progress.next_block == 0) {
        damaged = CheckIndexes(*archive);
      }
      Step step = NextStep(*archive->archive, progress.next_block);
      const size_t block_count = step.blocks.size();
      if (damaged.ok()) {
        progress.damaged_count += *damaged;
        damaged = retry_at_.contains(archive->name) && !step.blocks.empty() &&
                          !IsRemote(*archive, step.blocks[0].segment_index)
                      ? ReadSingly(*archive, step)
                      : Read(*archive, step);
      }
      if (!damaged.ok() || step.blocks.size() < block_count) {
        retry_at_[archive->name] = std::chrono::steady_clock::now() + kIdleTime;
      } else {
        retry_at_.erase(archive->name);
      }
      pause = std::chrono::nanoseconds(0);
      if (damaged.ok()) {
        progress.next_block += step.blocks.size();
        progress.damaged_count += *damaged;
        Finish(*archive, step, progress);
        pause = PauseAfter(step.size_bytes);
      }
    }
    SaveIfDue(/*is_last=*/false);
  } while (Sleep(pause));
  SaveIfDue(/*is_last=*/true);
}

std::shared_ptr<const ServedArchive> Scrubber::ChooseArchive(
    ScrubProgress& progress) {
  const Catalog::ByName archives = catalog_.Get();
  const int64_t now_s = NowSeconds();
  const auto now = std::chrono::steady_clock::now();
  MutexLock lock(&mutex_);
  std::shared_ptr<const ServedArchive> chosen;
  for (const auto& [name, served] : archives) {
    ScrubProgress& known = state_[name];
    const auto [source, is_first] =
        opening_ids_.try_emplace(name, served->opening_id);
    const bool has_new_files =
        std::exchange(source->second, served->opening_id) != served->opening_id;
    const Archive& archive = *served->archive;
    // Appended segments are read in turn. The rest is not read again, and its
    // damage stays known.
    if (known.uuid != archive.info().uuid && HasState(archive, known.uuid)) {
      const bool has_begun = known.next_block > 0;
      GoOnInGrown(archive, known);
      if (has_begun && known.next_block == 0) {
        known.last_damaged_count = std::max(
            known.last_damaged_count, std::exchange(known.damaged_count, 0));
        fresh_.insert(name);
      }
    } else if (has_new_files || known.uuid != archive.info().uuid) {
      // New files are due at once: they have not been read here.
      known = {.uuid = archive.info().uuid, .completed_at_s = now_s};
      fresh_.insert(name);
    }
    // A time in the future is of a clock that was wrong.
    const bool is_due =
        known.next_block > 0 || fresh_.contains(name) ||
        known.completed_at_s > now_s ||
        absl::Seconds(now_s - known.completed_at_s) >= options_.interval;
    const auto retry = retry_at_.find(name);
    if (retry != retry_at_.end() && now < retry->second) {
      continue;
    }
    // A pass that has begun is ended first.
    if (is_due && (chosen == nullptr || known.next_block > 0)) {
      chosen = served;
      progress = known;
      if (known.next_block > 0) {
        break;
      }
    }
  }
  return chosen;
}

Scrubber::Step Scrubber::NextStep(const Archive& archive, uint64_t next_block) {
  Step step;
  uint64_t first_block = 0;
  for (uint32_t s = 0; s < archive.info().segment_count; ++s) {
    const uint64_t count = archive.SegmentBlockCount(s);
    for (uint64_t i = next_block - first_block; i < count; ++i) {
      const BlockAddress block = {s, i};
      const uint64_t size_bytes = archive.BlockExtent(block).size_bytes;
      if (!step.blocks.empty() &&
          (step.size_bytes + size_bytes > kScrubReadSizeBytesMax ||
           step.blocks.size() == kStepBlocksMax)) {
        return step;
      }
      step.blocks.push_back(block);
      step.size_bytes += size_bytes;
    }
    if (!step.blocks.empty()) {
      return step;
    }
    first_block += count;
  }
  return step;
}

std::chrono::nanoseconds Scrubber::PauseAfter(uint64_t size_bytes) {
  return pace_.PauseAfter(std::chrono::steady_clock::now().time_since_epoch(),
                          size_bytes);
}

absl::Status Scrubber::AwaitTurn(const Extent& next, Extent& last) {
  DropPages(last.fd, last.offset.value, last.size_bytes);
  if (!Sleep(PauseAfter(last.size_bytes))) {
    return absl::CancelledError("the server stops");
  }
  DropPages(next.fd, next.offset.value, next.size_bytes);
  last = next;
  return absl::OkStatus();
}

void Scrubber::CountBytes(const ServedArchive& archive, uint64_t size_bytes) {
  MutexLock lock(&mutex_);
  scrubbed_bytes_[archive.name] += size_bytes;
}

absl::Status Scrubber::NoteDamages(const ServedArchive& archive,
                                   const absl::Status& failure,
                                   std::vector<absl::Status> damages,
                                   absl::string_view effect,
                                   IndexCheck& check) {
  if (!failure.ok()) {
    if (!IsOfDevice(failure) || !retry_at_.contains(archive.name)) {
      return failure;
    }
    // It failed twice.
    damages.push_back(failure);
  }
  for (const absl::Status& damage : damages) {
    log_(LogLevel::kError,
         absl::StrCat("archive ", archive.name, ": ", damage.message(), "; ",
                      effect, ": quired repair"));
  }
  check.damaged_count += damages.size();
  return absl::OkStatus();
}

absl::StatusOr<uint64_t> Scrubber::CheckIndexes(const ServedArchive& archive) {
  IndexCheck& check = index_checks_[archive.name];
  if (check.opening_id != archive.opening_id) {
    check = {.opening_id = archive.opening_id};
  }
  // A step that failed continues after what it has checked.
  Extent last;
  if (!check.has_indexes) {
    std::vector<absl::Status> damages;
    const absl::Status status = archive.archive->CheckIndexes(
        [&](int fd, uint64_t offset, uint64_t size_bytes) {
          QUIRE_RETURN_IF_ERROR(
              AwaitTurn({.fd = fd,
                         .offset = {offset},
                         .size_bytes = static_cast<uint32_t>(size_bytes)},
                        last));
          CountBytes(archive, size_bytes);
          return absl::OkStatus();
        },
        damages);
    QUIRE_RETURN_IF_ERROR(NoteDamages(
        archive, status, std::move(damages),
        "it is served from memory until it is opened again", check));
    check.has_indexes = true;
  }
  while (check.container_count < archive.archive->info().segment_count) {
    QUIRE_RETURN_IF_ERROR(
        CheckContainer(archive, check.container_count, last, check));
    ++check.container_count;
  }
  return check.damaged_count;
}

absl::Status Scrubber::CheckContainer(const ServedArchive& archive,
                                      uint32_t segment_index, Extent& last,
                                      IndexCheck& check) {
  const SegmentReader& segment = archive.archive->ReaderOf(segment_index);
  const bool is_remote = IsRemote(archive, segment_index);
  const auto read_all = [&](LocalCopy local_copy) {
    return segment.CheckContainer([&](const Extent& extent,
                                      MutableByteView stored) {
      QUIRE_RETURN_IF_ERROR(AwaitTurn(extent, last));
      // The local copy has only what was read of it.
      QUIRE_RETURN_IF_ERROR(is_remote
                                ? ReadThroughStore(archive, segment_index,
                                                   extent, local_copy, stored)
                                : ReadExactly(extent.fd, extent.offset.value,
                                              stored, segment.file()));
      CountBytes(archive, extent.size_bytes);
      return absl::OkStatus();
    });
  };
  absl::Status status = read_all(LocalCopy::kUse);
  if (is_remote && absl::IsDataLoss(status)) {
    status = read_all(LocalCopy::kReplace);
  }
  if (is_remote && !absl::IsDataLoss(status)) {
    return status;
  }
  std::vector<absl::Status> damages;
  status = NoteDamage(status, damages);
  return NoteDamages(archive, status, std::move(damages),
                     "reads of its damaged parts fail", check);
}

absl::Status Scrubber::ReadThroughStore(const ServedArchive& archive,
                                        uint32_t segment_index,
                                        const Extent& extent,
                                        LocalCopy local_copy,
                                        MutableByteView stored) {
  BlockFetch fetch;
  // Above all blocks, as the parts are.
  fetch.key = {.source_id = archive.ScrubSourceId(segment_index),
               .block = {segment_index, kFirstPartIndex + extent.offset.value}};
  fetch.extent = extent;
  // Nothing of it is kept.
  fetch.raw_size_bytes = 1;
  fetch.fetch_class = FetchClass::kScrub;
  fetch.client_id = kClientId;
  fetch.decoder = std::make_shared<StoredCopy>(stored, local_copy);
  fetch.placement = archive.placements[segment_index];
  std::vector<BlockFetch> fetches;
  fetches.push_back(std::move(fetch));
  QUIRE_ASSIGN_OR_RETURN(const uint64_t damaged_count,
                         FetchAll(std::move(fetches)));
  return damaged_count == 0
             ? absl::OkStatus()
             : InFile(archive.archive->SegmentPath(segment_index),
                      Damaged(absl::StrCat("the container data cannot be read "
                                           "at byte ",
                                           extent.offset.value)));
}

absl::StatusOr<uint64_t> Scrubber::FetchAll(std::vector<BlockFetch> fetches) {
  {
    MutexLock lock(&mutex_);
    pending_count_ = fetches.size();
    damaged_count_ = 0;
    step_error_ = absl::OkStatus();
  }
  std::vector<BlockStore::FetchItem> items;
  items.reserve(fetches.size());
  for (BlockFetch& fetch : fetches) {
    items.push_back({.fetch = std::move(fetch),
                     .done = [this](const absl::StatusOr<BlockPtr>& outcome) {
                       MutexLock lock(&mutex_);
                       --pending_count_;
                       if (absl::IsDataLoss(outcome.status())) {
                         ++damaged_count_;
                       } else if (!outcome.ok()) {
                         step_error_ = outcome.status();
                       }
                       changed_.NotifyAll();
                     }});
  }
  store_.FetchAll(std::move(items));
  MutexLock lock(&mutex_);
  while (pending_count_ > 0) {
    changed_.Wait(&mutex_);
  }
  if (!step_error_.ok()) {
    return step_error_;
  }
  return damaged_count_;
}

absl::StatusOr<uint64_t> Scrubber::Read(const ServedArchive& archive,
                                        const Step& step) {
  if (step.blocks.empty()) {
    return 0;
  }
  const Extent first = archive.archive->BlockExtent(step.blocks.front());
  const auto drop = [&] {
    DropPages(first.fd, first.offset.value, step.size_bytes);
  };
  drop();
  std::vector<BlockFetch> fetches;
  fetches.reserve(step.blocks.size());
  for (const BlockAddress block : step.blocks) {
    BlockFetch fetch;
    fetch.key = {.source_id = archive.ScrubSourceId(block.segment_index),
                 .block = block};
    fetch.extent = archive.archive->BlockExtent(block);
    // The frame is checked, and nothing of it kept.
    fetch.raw_size_bytes = 1;
    fetch.fetch_class = FetchClass::kScrub;
    fetch.client_id = kClientId;
    fetch.decoder = archive.stored_reader;
    fetch.placement = archive.placements[block.segment_index];
    fetches.push_back(std::move(fetch));
  }
  absl::StatusOr<uint64_t> result = FetchAll(std::move(fetches));
  drop();
  return result;
}

absl::StatusOr<uint64_t> Scrubber::ReadSingly(const ServedArchive& archive,
                                              Step& step) {
  const auto start = std::chrono::steady_clock::now();
  const Step all = std::exchange(step, {});
  uint64_t damaged_count = 0;
  for (const BlockAddress block : all.blocks) {
    {
      MutexLock lock(&mutex_);
      if (stop_) {
        return absl::CancelledError();
      }
    }
    // A drive may try each bad sector for long.
    if (damaged_count > 0 &&
        std::chrono::steady_clock::now() - start > kIdleTime) {
      break;
    }
    const uint64_t size_bytes = archive.archive->BlockExtent(block).size_bytes;
    const absl::StatusOr<uint64_t> damaged =
        Read(archive, {.blocks = {block}, .size_bytes = size_bytes});
    step.blocks.push_back(block);
    step.size_bytes += size_bytes;
    if (damaged.ok()) {
      damaged_count += *damaged;
      continue;
    }
    if (!IsOfDevice(damaged.status())) {
      return damaged.status();
    }
    ++damaged_count;
    uint64_t& named_count = named_counts_[archive.name];
    if (named_count < kNamedBlocksMax) {
      ++named_count;
      log_(LogLevel::kError,
           absl::StrCat(
               "archive ", archive.name, ": block ", block.block_index, " of ",
               archive.archive->SegmentPath(block.segment_index),
               " cannot be read twice and counts as damaged: ",
               damaged.status().message(),
               named_count < kNamedBlocksMax
                   ? ""
                   : "; further blocks are counted until the pass ends"));
    }
  }
  return damaged_count;
}

void Scrubber::Finish(const ServedArchive& archive, const Step& step,
                      ScrubProgress progress) {
  std::string line;
  {
    MutexLock lock(&mutex_);
    scrubbed_bytes_[archive.name] += step.size_bytes;
    if (progress.next_block >= BlockCount(*archive.archive)) {
      progress.next_block = 0;
      progress.last_damaged_count = std::exchange(progress.damaged_count, 0);
      progress.completed_at_s = NowSeconds();
      fresh_.erase(archive.name);
      line = absl::StrCat(
          "archive ", archive.name, ": scrubbed: ",
          FormatCounted(progress.last_damaged_count, "damaged block or index",
                        "damaged blocks or indexes"));
      named_counts_.erase(archive.name);
    }
    NotePosition(*archive.archive, progress);
    state_[archive.name] = std::move(progress);
  }
  if (!line.empty()) {
    index_checks_.erase(archive.name);
  }
  if (!line.empty()) {
    log_(line.find(": scrubbed: 0 ") == std::string::npos ? LogLevel::kError
                                                          : LogLevel::kInfo,
         line);
  }
}

bool Scrubber::Sleep(std::chrono::nanoseconds time) {
  const auto end = std::chrono::steady_clock::now() + time;
  MutexLock lock(&mutex_);
  while (!stop_ && std::chrono::steady_clock::now() < end) {
    changed_.WaitFor(&mutex_, end - std::chrono::steady_clock::now());
  }
  return !stop_;
}

void Scrubber::SaveIfDue(bool is_last) {
  const auto now = std::chrono::steady_clock::now();
  if (options_.state_directory.empty() || (!is_last && now < save_at_)) {
    return;
  }
  save_at_ = now + kSaveInterval;
  ScrubState state;
  {
    MutexLock lock(&mutex_);
    state = state_;
  }
  const absl::Status status = WriteScrubState(options_.state_directory, state);
  if (!status.ok() && !std::exchange(said_unsaved_, true)) {
    log_(LogLevel::kWarning,
         absl::StrCat("the progress of scrubbing is not saved: ",
                      status.message()));
  }
}

}  // namespace quire
