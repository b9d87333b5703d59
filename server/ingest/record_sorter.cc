// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/ingest/record_sorter.h"

#include <functional>
#include <span>
#include <type_traits>

#include "codecs/base/bytes.h"
#include "codecs/base/status_macros.h"

namespace quire {
namespace {

// The file has them as memory does: nobody else reads it.
static_assert(std::is_trivially_copyable_v<SortRecord>);

MutableByteView BytesOf(std::span<SortRecord> records) {
  return {reinterpret_cast<uint8_t*>(records.data()), records.size_bytes()};
}

}  // namespace

absl::Status RecordSorter::Add(const SortRecord& record) {
  if (added_.size() == memory_record_count_) {
    QUIRE_RETURN_IF_ERROR(Spill());
  }
  // At once: growing would hold it twice.
  added_.reserve(memory_record_count_);
  added_.push_back(record);
  return absl::OkStatus();
}

absl::Status RecordSorter::Spill() {
  if (!file_.has_value()) {
    QUIRE_ASSIGN_OR_RETURN(file_, Spool::Create(directory_, what_));
  }
  std::ranges::sort(added_);
  Run run;
  run.offset = file_->size_bytes();
  QUIRE_RETURN_IF_ERROR(file_->Append(BytesOf(added_)));
  run.end = file_->size_bytes();
  runs_.push_back(std::move(run));
  ++spilled_run_count_;
  added_.clear();
  return absl::OkStatus();
}

absl::Status RecordSorter::EndAdding() {
  if (runs_.empty()) {
    std::ranges::sort(added_);
    runs_.emplace_back().records = std::exchange(added_, {});
  } else {
    QUIRE_RETURN_IF_ERROR(Spill());
    std::vector<SortRecord>().swap(added_);
  }
  merged_record_count_ =
      std::max<size_t>(1, memory_record_count_ / runs_.size());
  for (size_t i = 0; i < runs_.size(); ++i) {
    if (runs_[i].records.empty()) {
      QUIRE_RETURN_IF_ERROR(Refill(runs_[i]));
    }
    if (!runs_[i].records.empty()) {
      heap_.emplace_back(runs_[i].records.front(), i);
    }
  }
  std::ranges::make_heap(heap_, std::greater());
  return absl::OkStatus();
}

absl::Status RecordSorter::Refill(Run& run) const {
  run.used = 0;
  run.records.resize(static_cast<size_t>(std::min<uint64_t>(
      merged_record_count_, (run.end - run.offset) / sizeof(SortRecord))));
  if (run.records.empty()) {
    return absl::OkStatus();
  }
  const MutableByteView bytes = BytesOf(run.records);
  QUIRE_RETURN_IF_ERROR(file_->ReadAt(run.offset, bytes));
  run.offset += bytes.size();
  return absl::OkStatus();
}

absl::StatusOr<std::optional<SortRecord>> RecordSorter::Next() {
  if (heap_.empty()) {
    return std::nullopt;
  }
  std::ranges::pop_heap(heap_, std::greater());
  const auto [record, number] = heap_.back();
  heap_.pop_back();
  Run& run = runs_[number];
  if (++run.used == run.records.size()) {
    QUIRE_RETURN_IF_ERROR(Refill(run));
  }
  if (run.used < run.records.size()) {
    heap_.emplace_back(run.records[run.used], number);
    std::ranges::push_heap(heap_, std::greater());
  }
  return record;
}

}  // namespace quire
