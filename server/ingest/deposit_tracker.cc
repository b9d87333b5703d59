// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/ingest/deposit_tracker.h"

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

#include "codecs/base/byte_size.h"
#include "codecs/base/printable_text.h"
#include "codecs/base/status_macros.h"

namespace quire {

void DepositTracker::Count(size_t source_index, const SourceDocument& document,
                           uint64_t size_bytes) {
  const bool moves = Moves(document);
  if (source_ == nullptr) {
    return;
  }
  std::vector<uint64_t>& sizes =
      text_sizes_[{source_index, document.deposit_path}].size_bytes;
  if (moves) {
    sizes.push_back(0);
  }
  sizes.back() += size_bytes;
}

bool DepositTracker::Moves(const SourceDocument& document) {
  if (source_ == document.deposit || options_.deposits == DepositMode::kOff) {
    return false;
  }
  source_ = document.deposit;
  return true;
}

void DepositTracker::StartPass() {
  source_.reset();
  draft_.reset();
  for (auto& [file, sizes] : text_sizes_) {
    sizes.begun_count = 0;
  }
  summary_ = {};
}

void DepositTracker::Refuse(const std::string& path, const std::string& why,
                            bool is_lost) {
  ++summary_.refused_count;
  summary_.lost_count += is_lost ? 1 : 0;
  if (summary_.refusals.size() < kKeptMessageCount) {
    summary_.refusals.push_back(absl::StrCat(QuotedText(path), ": ", why));
  }
}

absl::Status DepositTracker::Begin(size_t source_index,
                                   const SourceDocument& document) {
  if (!Moves(document)) {
    return absl::OkStatus();
  }
  EndFile();
  if (source_ == nullptr) {
    return absl::OkStatus();
  }
  TextSizes& sizes = text_sizes_[{source_index, document.deposit_path}];
  const size_t number = sizes.begun_count++;
  DepositSource::Options options;
  options.path = document.deposit_path;
  // A file that was not there in the first pass has no text.
  options.text_size_bytes =
      number < sizes.size_bytes.size() ? sizes.size_bytes[number] : 0;
  options.keeps_all = options_.deposits == DepositMode::kAll;
  options.threads = options_.threads;
  options.cancel = options_.cancel;
  if (options.path.empty() || options.path.size() > kDepositPathSizeBytesMax) {
    Refuse(options.path,
           absl::StrCat("its path must have 1 to ", kDepositPathSizeBytesMax,
                        " bytes"),
           options.keeps_all);
    return absl::OkStatus();
  }
  QUIRE_ASSIGN_OR_RETURN(DepositSource::Result result, source_->Draft(options));
  if (result.draft == nullptr) {
    Refuse(options.path, result.refusal,
           options.keeps_all || result.is_carried);
    return absl::OkStatus();
  }
  draft_ = std::move(result.draft);
  expected_checksum_ = result.text_checksum;
  has_skipped_text_ = false;
  checksum_ = Checksummer64();
  text_size_bytes_ = 0;
  if (draft_->state() == DepositState::kKept) {
    ++summary_.file_count;
    summary_.size_bytes += draft_->totals().size_bytes;
    summary_.literal_size_bytes += draft_->totals().literal_size_bytes;
    summary_.members.reproduced_count += result.counts.reproduced_count;
    summary_.members.foreign_count += result.counts.foreign_count;
    summary_.members.large_count += result.counts.large_count;
  }
  return absl::OkStatus();
}

void DepositTracker::AddText(ByteView piece) {
  if (draft_ != nullptr && expected_checksum_.has_value()) {
    checksum_.Add(piece);
  }
}

void DepositTracker::Abandon(const std::string& why) {
  --summary_.file_count;
  summary_.size_bytes -= draft_->totals().size_bytes;
  summary_.literal_size_bytes -= draft_->totals().literal_size_bytes;
  Refuse(draft_->path(), why, /*is_lost=*/true);
  draft_->Abandon();
}

void DepositTracker::End(uint64_t size_bytes) {
  if (draft_ == nullptr || draft_->state() != DepositState::kKept) {
    return;
  }
  text_size_bytes_ += size_bytes;
  const uint64_t expected_bytes = draft_->totals().text_size_bytes;
  if (text_size_bytes_ > expected_bytes ||
      (text_size_bytes_ == expected_bytes && !has_skipped_text_ &&
       expected_checksum_.has_value() &&
       checksum_.Get() != *expected_checksum_)) {
    Abandon("it changed during the build");
  }
}

void DepositTracker::EndPass() {
  EndFile();
  source_.reset();
}

void DepositTracker::EndFile() {
  if (draft_ != nullptr && draft_->state() == DepositState::kKept &&
      text_size_bytes_ < draft_->totals().text_size_bytes) {
    Abandon("it became shorter during the build");
  }
  draft_.reset();
}

}  // namespace quire
