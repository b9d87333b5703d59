// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/ingest/inflated_text.h"

#include <algorithm>
#include <exception>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"

#include "codecs/base/status_macros.h"

namespace quire {
namespace {

constexpr size_t kBlocksOfThread = 16;

constexpr char kSpoolContents[] = "the text with its members inflated";

}  // namespace

absl::StatusOr<std::unique_ptr<TextInflater>> TextInflater::Create(
    const InflatedTextOptions& options) {
  QUIRE_ASSIGN_OR_RETURN(
      Spool spool, Spool::Create(options.spool_directory, kSpoolContents));
  return std::unique_ptr<TextInflater>(
      new TextInflater(std::move(spool), options));
}

TextInflater::TextInflater(Spool spool, const InflatedTextOptions& options)
    : block_size_bytes_(options.block_size_bytes),
      batch_size_bytes_(options.block_size_bytes * kBlocksOfThread *
                        options.threads),
      spool_(std::move(spool)) {
  for (uint32_t i = 0; i < options.threads; ++i) {
    inflaters_.push_back(std::make_unique<BlockInflater>());
  }
}

absl::Status TextInflater::Add(ByteView piece) {
  while (!piece.empty()) {
    const size_t size =
        std::min(piece.size(), batch_size_bytes_ - pending_.size());
    pending_.insert(pending_.end(), piece.begin(),
                    piece.begin() + static_cast<ptrdiff_t>(size));
    piece = piece.subspan(size);
    if (pending_.size() == batch_size_bytes_) {
      QUIRE_RETURN_IF_ERROR(InflateBatch());
    }
  }
  return absl::OkStatus();
}

void TextInflater::InflateBlocks(size_t first) {
  BlockInflater& inflater = *inflaters_[first];
  for (size_t i = first; i < texts_.size(); i += inflaters_.size()) {
    const size_t begin = i * block_size_bytes_;
    const ByteView block = ByteView(pending_).subspan(
        begin, std::min(block_size_bytes_, pending_.size() - begin));
    const bool is_inflated = inflater.Inflate(block);
    const ByteView text = is_inflated ? inflater.text() : block;
    texts_[i].assign(text.begin(), text.end());
    member_counts_[i] = is_inflated ? inflater.head().members.size() : 0;
  }
}

absl::Status TextInflater::InflateBatch() {
  const size_t block_count =
      (pending_.size() + block_size_bytes_ - 1) / block_size_bytes_;
  // Allocation and thread creation throw.
  std::vector<std::exception_ptr> errors(inflaters_.size());
  std::vector<std::thread> threads;
  const auto inflate = [this, &errors](size_t first) {
    try {
      InflateBlocks(first);
    } catch (...) {
      errors[first] = std::current_exception();
    }
  };
  try {
    texts_.resize(block_count);
    member_counts_.resize(block_count);
    threads.reserve(inflaters_.size());
    for (size_t i = 1; i < inflaters_.size(); ++i) {
      threads.emplace_back(inflate, i);
    }
  } catch (...) {
    errors[0] = std::current_exception();
  }
  if (errors[0] == nullptr) {
    inflate(0);
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  for (const std::exception_ptr& error : errors) {
    if (error != nullptr) {
      return absl::ResourceExhaustedError(
          "no memory or no threads to inflate compressed members; try fewer "
          "threads (--threads), or --inflate off");
    }
  }
  for (size_t i = 0; i < block_count; ++i) {
    member_count_ += member_counts_[i];
    QUIRE_RETURN_IF_ERROR(spool_.Append(texts_[i]));
  }
  pending_.clear();
  return absl::OkStatus();
}

absl::StatusOr<InflatedText> TextInflater::Finish() {
  if (!pending_.empty()) {
    QUIRE_RETURN_IF_ERROR(InflateBatch());
  }
  InflatedText text;
  text.size_bytes = spool_.size_bytes();
  text.member_count = member_count_;
  QUIRE_ASSIGN_OR_RETURN(text.file, std::move(spool_).Finish(kSpoolContents));
  return text;
}

}  // namespace quire
