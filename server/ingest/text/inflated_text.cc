// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/ingest/text/inflated_text.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <functional>
#include <thread>
#include <utility>

#include "codecs/base/status_macros.h"

namespace quire {
namespace {

// One thread searches the members that begin in one window. Bytes.
constexpr size_t kWindowSize = size_t{2} << 20;
// Limit on a member's extent past its window, including its header. Bytes.
constexpr size_t kOverlapSize = kBlockSizeBytesMax + (size_t{128} << 10);
constexpr size_t kWindowsOfThread = 2;
// Text of a window's members; that of later ones is not in the text. Bytes.
constexpr size_t kWindowTextSizeMax = size_t{16} << 20;

// With more text per byte of members, there are too few members.
constexpr uint64_t kTextOfMembersMax = 512;

constexpr char kInflatedContents[] = "the text with its members inflated";

std::vector<FoundMembers> FoundBy(const DeflateFinderCounts& counts) {
  std::vector<FoundMembers> all;
  for (size_t i = 0; i < kDeflateContainerCount; ++i) {
    const DeflateFinderCounts::OfContainer& from = counts.containers[i];
    FoundMembers found;
    found.container = static_cast<DeflateContainer>(i);
    found.count = from.members;
    found.size_bytes = from.member_bytes;
    found.text_size_bytes = from.text_bytes;
    uint64_t refused_count = 0;
    for (size_t k = 0; k < kDeflateRefusalCount; ++k) {
      found.refused[k] = {from.refused[k], from.refused_bytes[k]};
      refused_count += from.refused[k];
    }
    if (found.count + refused_count > 0) {
      all.push_back(found);
    }
  }
  return all;
}

}  // namespace

FoundMembers::Refused InflatedText::Oversized() const {
  FoundMembers::Refused all;
  for (const FoundMembers& of_container : found) {
    const FoundMembers::Refused& refused =
        of_container.refused[static_cast<size_t>(DeflateRefusal::kLarge)];
    all.count += refused.count;
    all.size_bytes += refused.size_bytes;
  }
  return all;
}

bool InflatedText::IsWorthInflating(uint64_t raw_size_bytes) const {
  uint64_t member_bytes = 0;
  for (const FoundMembers& of_container : found) {
    member_bytes += of_container.size_bytes;
  }
  return member_bytes >= raw_size_bytes / kTextOfMembersMax;
}

absl::StatusOr<std::unique_ptr<TextInflater>> TextInflater::Create(
    const InflatedTextOptions& options) {
  QUIRE_ASSIGN_OR_RETURN(
      Spool spool, Spool::Create(options.spool_directory, kInflatedContents));
  return std::unique_ptr<TextInflater>(
      new TextInflater(std::move(spool), options));
}

TextInflater::TextInflater(Spool spool, const InflatedTextOptions& options)
    : spool_(std::move(spool)), cancel_(options.cancel) {
  for (uint32_t i = 0; i < options.threads; ++i) {
    finders_.push_back(std::make_unique<DeflateFinder>(DeflateFinderOptions{
        .member_size_min = kInflatedMemberSizeMin,
        .text_size_max =
            std::min(options.member_text_size_max, kInflatedLargeSizeMax)}));
  }
}

absl::Status TextInflater::Add(ByteView piece) {
  const size_t window_count = kWindowsOfThread * finders_.size();
  const size_t full_size = window_count * kWindowSize + kOverlapSize;
  while (!piece.empty()) {
    const size_t size = std::min(piece.size(), full_size - pending_.size());
    pending_.insert(pending_.end(), piece.begin(),
                    piece.begin() + static_cast<ptrdiff_t>(size));
    piece = piece.subspan(size);
    if (pending_.size() == full_size) {
      QUIRE_RETURN_IF_ERROR(InflateWindows(window_count));
    }
  }
  return absl::OkStatus();
}

void TextInflater::FindMembers(DeflateFinder& finder, size_t index) {
  Window& window = windows_[index];
  window = {};
  const size_t begin = index * kWindowSize;
  const ByteView document = ByteView(pending_).subspan(
      begin, std::min(kWindowSize + kOverlapSize, pending_.size() - begin));
  finder.Find(
      document,
      [&](const DeflateMember& member) {
        const DeflateRecipe& recipe = member.recipe;
        window.members.push_back(
            {.offset = begin + member.offset - member.header_size,
             .size =
                 static_cast<uint32_t>(member.header_size + recipe.member_size),
             .text_size =
                 static_cast<uint32_t>(member.header_size + recipe.text_size),
             .header_size = static_cast<uint32_t>(member.header_size)});
        window.known.Add(
            document.subspan(static_cast<size_t>(member.offset),
                             static_cast<size_t>(recipe.member_size)),
            recipe.parameters);
        // Only a prefix of the members, so that their count identifies them.
        if (window.with_text_count + 1 == window.members.size() &&
            member.text.size() <= kWindowTextSizeMax - window.texts.size()) {
          window.texts.insert(window.texts.end(), member.text.begin(),
                              member.text.end());
          ++window.with_text_count;
        }
      },
      kWindowSize, [this] { return IsCancelled(); });
}

absl::Status TextInflater::FindInThreads(size_t count) {
  std::atomic<size_t> next = 0;
  std::atomic<bool> has_failed = false;
  // Allocation and thread creation throw.
  const auto find = [&](DeflateFinder& finder) {
    try {
      for (size_t i = next++; i < count; i = next++) {
        FindMembers(finder, i);
      }
    } catch (const std::exception&) {
      has_failed = true;
    }
  };
  std::vector<std::thread> threads;
  try {
    windows_.resize(count);
    threads.reserve(finders_.size());
    for (size_t i = 1; i < finders_.size(); ++i) {
      threads.emplace_back(find, std::ref(*finders_[i]));
    }
  } catch (const std::exception&) {
    has_failed = true;
  }
  if (!has_failed) {
    find(*finders_[0]);
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  return !has_failed
             ? absl::OkStatus()
             : absl::ResourceExhaustedError(
                   "no memory or no threads to inflate compressed members; try "
                   "fewer threads (--threads), or --inflate off");
}

absl::Status TextInflater::AppendGap(size_t end) {
  if (end <= appended_size_) {
    return absl::OkStatus();
  }
  const ByteView gap =
      ByteView(pending_).subspan(appended_size_, end - appended_size_);
  appended_size_ = end;
  return spool_.Append(gap);
}

absl::Status TextInflater::Append(const Window& window) {
  known_.Add(window.known);
  ByteView texts = window.texts;
  for (size_t i = 0; i < window.members.size(); ++i) {
    const MemberPlace& member = window.members[i];
    const bool has_text = i < window.with_text_count;
    const ByteView text =
        texts.first(has_text ? member.text_size - member.header_size : 0);
    texts = texts.subspan(text.size());
    // Ignore a match inside a member of the previous window.
    if (member.offset < appended_size_) {
      continue;
    }
    members_.push_back(member);
    members_.back().offset += pending_offset_;
    const auto end = static_cast<size_t>(member.offset) + member.size;
    if (has_text) {
      QUIRE_RETURN_IF_ERROR(
          AppendGap(static_cast<size_t>(member.offset) + member.header_size));
      QUIRE_RETURN_IF_ERROR(spool_.Append(text));
      appended_size_ = end;
    } else {
      QUIRE_RETURN_IF_ERROR(AppendGap(end));
    }
  }
  return absl::OkStatus();
}

absl::Status TextInflater::InflateWindows(size_t count) {
  QUIRE_RETURN_IF_ERROR(FindInThreads(count));
  if (IsCancelled()) {
    return absl::CancelledError("the build was interrupted");
  }
  for (const Window& window : windows_) {
    QUIRE_RETURN_IF_ERROR(Append(window));
  }
  const size_t size = std::min(count * kWindowSize, pending_.size());
  QUIRE_RETURN_IF_ERROR(AppendGap(size));
  pending_.erase(pending_.begin(),
                 pending_.begin() + static_cast<ptrdiff_t>(size));
  pending_offset_ += size;
  appended_size_ -= size;
  return absl::OkStatus();
}

absl::StatusOr<InflatedText> TextInflater::Finish() {
  // A member may reach to the end of the text from any window.
  while (!pending_.empty()) {
    QUIRE_RETURN_IF_ERROR(
        InflateWindows((pending_.size() + kWindowSize - 1) / kWindowSize));
  }
  InflatedText text;
  text.size_bytes = spool_.size_bytes();
  text.members = std::move(members_);
  known_.Sort();
  text.known = std::move(known_);
  DeflateFinderCounts counts;
  for (const std::unique_ptr<DeflateFinder>& finder : finders_) {
    counts.Add(finder->counts());
  }
  text.found = FoundBy(counts);
  QUIRE_ASSIGN_OR_RETURN(text.file,
                         std::move(spool_).Finish(kInflatedContents));
  return text;
}

}  // namespace quire
