// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/ingest/sources/streams/member_stream.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"

#include "codecs/base/status_macros.h"

namespace quire {
namespace {

constexpr size_t kInputSizeBytes = 64 << 10;
// Number of members remembered.
constexpr size_t kKnownMemberCount = 1024;

}  // namespace

MemberStream::MemberStream(std::unique_ptr<ByteStream> compressed,
                           std::string name,
                           std::unique_ptr<MemberDecoder> decoder)
    : compressed_(std::move(compressed)),
      name_(std::move(name)),
      decoder_(std::move(decoder)),
      input_(kInputSizeBytes) {}

absl::Status MemberStream::Damaged(absl::string_view what) const {
  return absl::DataLossError(absl::StrCat(
      name_, ": ", what, " at byte ", offset(), " of the compressed file, in ",
      decoder_->member_name(), " ", member_count_, " that starts at byte ",
      members_.empty() ? 0 : members_.back().offset));
}

absl::Status MemberStream::Refill() {
  if (rest_.empty()) {
    QUIRE_ASSIGN_OR_RETURN(const size_t got, compressed_->Read(input_));
    rest_ = ByteView(input_).first(got);
    read_bytes_ += got;
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> MemberStream::StartMember() {
  QUIRE_RETURN_IF_ERROR(Refill());
  // Padding to the block size of a medium.
  const bool padded = decoder_->AllowsPadding() && member_count_ > 0 &&
                      !rest_.empty() && rest_[0] == 0;
  while (padded && !rest_.empty()) {
    if (rest_[0] != 0) {
      BeginMember();
      return Damaged(
          absl::StrCat("bytes that are not a ", decoder_->member_name()));
    }
    rest_ = rest_.subspan(1);
    QUIRE_RETURN_IF_ERROR(Refill());
  }
  if (rest_.empty()) {
    at_end_ = true;
    return false;
  }
  BeginMember();
  decoder_->Reset();
  return true;
}

void MemberStream::BeginMember() {
  if (members_.size() == kKnownMemberCount) {
    members_.pop_front();
  }
  members_.push_back({.text_offset = text_size_bytes_, .offset = offset()});
  ++member_count_;
  in_member_ = true;
}

absl::StatusOr<size_t> MemberStream::DecodePiece(MutableByteView out) {
  QUIRE_RETURN_IF_ERROR(Refill());
  const MemberDecoder::Step step = decoder_->Decode(rest_, out);
  rest_ = rest_.subspan(step.consumed_bytes);
  if (step.has_ended) {
    in_member_ = false;
    members_.back().end_offset = offset();
  } else if (!step.error.empty()) {
    damage_ = Damaged(step.error);
  } else if (step.consumed_bytes == 0 && step.produced_bytes == 0) {
    damage_ = Damaged("the file ends (is it truncated?)");
  }
  return step.produced_bytes;
}

absl::StatusOr<size_t> MemberStream::Read(MutableByteView out) {
  QUIRE_RETURN_IF_ERROR(damage_);
  size_t size = 0;
  while (!at_end_ && size == 0) {
    if (!in_member_) {
      QUIRE_ASSIGN_OR_RETURN(const bool more, StartMember());
      if (!more) {
        break;
      }
    }
    QUIRE_ASSIGN_OR_RETURN(size, DecodePiece(out));
    if (size == 0) {
      // Text before damage is valid, so the error waits for the next call.
      QUIRE_RETURN_IF_ERROR(damage_);
    }
  }
  text_size_bytes_ += size;
  return size;
}

bool MemberStream::IsVerified() const {
  return !in_member_ || members_.back().text_offset == text_size_bytes_;
}

std::optional<uint64_t> MemberStream::PartEnd(uint64_t text_offset) const {
  // The last of those that begin there: others are empty.
  const auto next =
      std::upper_bound(members_.begin(), members_.end(), text_offset,
                       [](uint64_t offset, const Member& member) {
                         return offset < member.text_offset;
                       });
  if (next == members_.begin() || std::prev(next)->text_offset != text_offset) {
    return std::nullopt;
  }
  if (next != members_.end()) {
    return next->text_offset;
  }
  return in_member_ ? std::nullopt : std::optional(text_size_bytes_);
}

absl::StatusOr<std::optional<ByteStream::SkippedPart>> MemberStream::SkipPart(
    uint64_t text_offset, IsPartStart is_start) {
  if (members_.empty() || !compressed_->Seek(0)) {
    return std::nullopt;
  }
  Member skipped = members_.front();
  for (const Member& member : members_) {
    if (member.text_offset <= text_offset) {
      skipped = member;
    }
  }
  QUIRE_ASSIGN_OR_RETURN(
      const uint64_t next,
      FindMember(std::max(skipped.offset + 1, skipped.end_offset), is_start));
  compressed_->Seek(next);
  read_bytes_ = next;
  rest_ = {};
  in_member_ = false;
  damage_ = absl::OkStatus();
  text_size_bytes_ = 0;
  members_.clear();
  return SkippedPart{.text_offset = skipped.text_offset,
                     .offset = skipped.offset,
                     .size_bytes = next - skipped.offset,
                     .is_last = at_end_};
}

absl::StatusOr<uint64_t> MemberStream::FindMember(uint64_t offset,
                                                  IsPartStart is_start) {
  at_end_ = false;
  compressed_->Seek(offset);
  const size_t prefix_size = decoder_->PrefixSizeBytes();
  std::vector<uint8_t> window(prefix_size + kInputSizeBytes);
  // Size of the window's part that is filled.
  size_t size = 0;
  while (true) {
    QUIRE_ASSIGN_OR_RETURN(
        const size_t got,
        ReadFully(*compressed_, MutableByteView(window).subspan(size)));
    size += got;
    at_end_ = size < window.size();
    const size_t step = at_end_ ? size : size - prefix_size;
    for (size_t i = 0; i < step; ++i) {
      const size_t member_size = std::min(size - i, prefix_size);
      if (BeginsMember(ByteView(window).subspan(i, member_size), is_start)) {
        at_end_ = false;
        return offset + i;
      }
    }
    offset += step;
    if (at_end_) {
      return offset;
    }
    std::memmove(window.data(), window.data() + step, prefix_size);
    size = prefix_size;
  }
}

bool MemberStream::BeginsMember(ByteView bytes, IsPartStart is_start) {
  if (!decoder_->HasMagic(bytes)) {
    return false;
  }
  std::array<uint8_t, kPartStartSizeBytes> text = {};
  size_t size = 0;
  decoder_->Reset();
  while (size < text.size()) {
    const MemberDecoder::Step step =
        decoder_->Decode(bytes, MutableByteView(text).subspan(size));
    bytes = bytes.subspan(step.consumed_bytes);
    size += step.produced_bytes;
    if (step.has_ended || !step.error.empty() ||
        (step.consumed_bytes == 0 && step.produced_bytes == 0)) {
      break;
    }
  }
  return is_start(AsText(ByteView(text).first(size)));
}

}  // namespace quire
