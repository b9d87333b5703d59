// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/archive/deposited_files.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace quire {

void DepositedFiles::EndOpen(bool is_complete) {
  if (!open_.has_value()) {
    return;
  }
  (is_complete ? files_ : incomplete_files_).push_back(*std::move(open_));
  open_.reset();
}

void DepositedFiles::Add(uint32_t segment_index, uint64_t start,
                         const SegmentDeposits& deposits) {
  const std::vector<DepositPortion>& portions = deposits.portions();
  if (portions.empty() || portions.front().begins) {
    EndOpen(/*is_complete=*/false);
  }
  for (size_t i = 0; i < portions.size(); ++i) {
    const DepositPortion& portion = portions[i];
    if (portion.begins || !open_.has_value() || open_->path != portion.path) {
      EndOpen(/*is_complete=*/false);
      open_.emplace();
      open_->path = portion.path;
      // The rest of a file without its start is not kept.
      open_->state =
          portion.begins ? DepositState::kKept : DepositState::kAbandoned;
      open_->text = {{start + portion.text_offset}, 0};
      open_size_bytes_ = 0;
    }
    const DepositTotals totals = portion.Totals();
    open_->state = std::max(open_->state, portion.state);
    open_->text.size_bytes += portion.text_size_bytes;
    open_->literal_size_bytes += totals.literal_size_bytes;
    open_->portions.push_back(
        {.segment_index = segment_index, .index = static_cast<uint32_t>(i)});
    open_size_bytes_ += totals.size_bytes;
    if (portion.ends) {
      open_->size_bytes = portion.file_size_bytes;
      open_->digest = portion.digest;
      EndOpen(open_->state == DepositState::kWithdrawn ||
              (open_->state == DepositState::kKept &&
               open_size_bytes_ == open_->size_bytes));
    }
  }
}

void DepositedFiles::Finish() {
  EndOpen(/*is_complete=*/false);
  std::ranges::stable_sort(files_, {}, &DepositedFile::path);
  for (std::vector<DepositedFile>* const files :
       {&files_, &incomplete_files_}) {
    for (DepositedFile& file : *files) {
      file.portions.shrink_to_fit();
    }
    files->shrink_to_fit();
  }
}

const DepositedFile* DepositedFiles::Find(absl::string_view path,
                                          uint64_t text_size_bytes) const {
  const DepositedFile* last = nullptr;
  for (auto file =
           std::ranges::lower_bound(files_, path, {}, &DepositedFile::path);
       file != files_.end() && file->path == path; ++file) {
    if (file->text.offset.value + file->text.size_bytes <= text_size_bytes) {
      last = &*file;
    }
  }
  return last;
}

uint64_t DepositedFiles::MemoryBytes() const {
  uint64_t size_bytes = 0;
  for (const auto* const files : {&files_, &incomplete_files_}) {
    size_bytes += files->capacity() * sizeof(DepositedFile);
    for (const DepositedFile& file : *files) {
      size_bytes += file.portions.capacity() * sizeof(DepositedFile::Portion);
    }
  }
  return size_bytes;
}

}  // namespace quire
