// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/ingest/sources/streams/member_stream.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"

#include "codecs/base/byte_size.h"
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

absl::Status MemberStream::Damaged(absl::string_view what,
                                   absl::string_view remedy) const {
  return absl::DataLossError(absl::StrCat(
      name_, ": ", what, " at byte ", offset(), " of the compressed file, in ",
      decoder_->member_name(), " ", member_count_, " that starts at byte ",
      members_.empty() ? 0 : members_.back().offset, remedy));
}

absl::Status MemberStream::TrailingBytes() {
  const uint64_t start = offset();
  uint64_t size_bytes = rest_.size();
  if (const std::optional<uint64_t> end = compressed_->EndOffset()) {
    size_bytes = std::max(*end, start + size_bytes) - start;
  } else {
    QUIRE_ASSIGN_OR_RETURN(const uint64_t skipped,
                           compressed_->Skip(UINT64_MAX));
    size_bytes += skipped;
  }
  // SkipPart() skips them.
  BeginMember();
  return absl::DataLossError(absl::StrCat(
      name_, ": its last ", FormatCounted(size_bytes, "byte", "bytes"),
      ", from byte ", start, " of the compressed file on, hold no ",
      decoder_->member_name(),
      " and cannot be read; if they do not belong to it, cut the file there: "
      "truncate -s ",
      start, " FILE"));
}

absl::Status MemberStream::Refill(size_t size) {
  if (rest_.size() >= size) {
    return absl::OkStatus();
  }
  size_t filled = rest_.size();
  std::copy_n(rest_.begin(), filled, input_.begin());
  rest_ = ByteView(input_).first(filled);
  while (filled < size) {
    QUIRE_ASSIGN_OR_RETURN(
        const size_t got,
        compressed_->Read(MutableByteView(input_).subspan(filled)));
    if (got == 0) {
      break;
    }
    filled += got;
    read_bytes_ += got;
    rest_ = ByteView(input_).first(filled);
  }
  return absl::OkStatus();
}

absl::StatusOr<uint64_t> MemberStream::PassPadding() {
  uint64_t count = 0;
  while (!rest_.empty() && rest_[0] == 0) {
    const auto end =
        std::ranges::find_if(rest_, [](uint8_t byte) { return byte != 0; });
    const auto size = static_cast<size_t>(end - rest_.begin());
    count += size;
    rest_ = rest_.subspan(size);
    QUIRE_RETURN_IF_ERROR(Refill());
  }
  return count;
}

absl::StatusOr<bool> MemberStream::StartMember() {
  QUIRE_RETURN_IF_ERROR(Refill());
  if (member_count_ > 0 && !rest_.empty()) {
    uint64_t zero_count = 0;
    if (decoder_->padding() != MemberPadding::kNone) {
      QUIRE_ASSIGN_OR_RETURN(zero_count, PassPadding());
    }
    const bool must_end = decoder_->padding() == MemberPadding::kAtEnd
                              ? zero_count > 0
                              : zero_count % 4 != 0;
    QUIRE_RETURN_IF_ERROR(
        Refill(std::max<size_t>(1, decoder_->MagicSizeBytes())));
    if (must_end && rest_.empty() &&
        decoder_->padding() == MemberPadding::kFoursAnywhere) {
      return Damaged(absl::StrCat(
          "the number of zeros after it must be a multiple of 4, and is ",
          zero_count));
    }
    if (!rest_.empty() && (must_end || decoder_->MagicSizeBytes() == 0 ||
                           !decoder_->HasMagic(rest_))) {
      return TrailingBytes();
    }
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
  check_ = std::make_shared<TextCheck>();
  if (members_.size() == kKnownMemberCount) {
    members_.pop_front();
  }
  members_.push_back({.text_offset = text_size_bytes_, .offset = offset()});
  ++member_count_;
  in_member_ = true;
}

void MemberStream::EndMember(TextCheck::State check) {
  if (std::exchange(in_member_, false)) {
    check_->state = check;
    members_.back().end_offset = offset();
  }
}

absl::StatusOr<size_t> MemberStream::DecodePiece(MutableByteView out) {
  damage_ = Refill();
  if (!damage_.ok()) {
    check_->state = TextCheck::State::kFailed;
    return damage_;
  }
  const MemberDecoder::Step step = decoder_->Decode(rest_, out);
  rest_ = rest_.subspan(step.consumed_bytes);
  const bool is_stuck = step.error.empty() && step.consumed_bytes == 0 &&
                        step.produced_bytes == 0;
  if (step.has_ended || (is_stuck && decoder_->MayEndHere())) {
    EndMember(TextCheck::State::kPassed);
  } else if (step.is_out_of_memory) {
    damage_ = absl::ResourceExhaustedError(
        absl::StrCat(name_, ": no memory to decompress it"));
  } else if (!step.error.empty()) {
    damage_ = Damaged(step.error, step.remedy);
  } else if (is_stuck) {
    damage_ = Damaged("the file ends (is it truncated?)");
  }
  if (!damage_.ok()) {
    check_->state = TextCheck::State::kFailed;
  }
  return step.produced_bytes;
}

absl::StatusOr<size_t> MemberStream::Read(MutableByteView out) {
  QUIRE_RETURN_IF_ERROR(damage_);
  size_t size = 0;
  while (!at_end_ && size == 0) {
    if (!in_member_) {
      const absl::StatusOr<bool> more = StartMember();
      damage_ = more.status();
      QUIRE_RETURN_IF_ERROR(damage_);
      if (!*more) {
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

std::shared_ptr<const TextCheck> MemberStream::AwaitedCheck(
    uint64_t text_size_bytes) const {
  return in_member_ && text_size_bytes > members_.back().text_offset ? check_
                                                                     : nullptr;
}

absl::StatusOr<std::optional<ByteStream::SkippedPart>> MemberStream::SkipPart(
    uint64_t text_offset, IsPartStart is_start) {
  if (members_.empty() || decoder_->PrefixSizeBytes() == 0 ||
      !compressed_->Seek(0)) {
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
  EndMember(TextCheck::State::kFailed);
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
