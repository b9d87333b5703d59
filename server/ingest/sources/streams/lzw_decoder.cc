// SPDX-License-Identifier: GPL-3.0-or-later
//
// The format of compress: codes of 9 to 16 bits, from the lowest bit up. Codes
// of one width come in groups of eight, and the rest of a group is unused if
// the width changes or the table is cleared.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"

#include "server/ingest/sources/streams/member_decoders.h"

namespace quire {
namespace {

constexpr uint8_t kLzwMagic0 = 0x1F;
constexpr uint8_t kLzwMagic1 = 0x9D;
// Magic number and flags.
constexpr size_t kLzwHeaderSizeBytes = 3;
constexpr uint8_t kLzwBitsMask = 0x1F;
constexpr uint8_t kLzwReservedMask = 0x60;
constexpr uint8_t kLzwCanClear = 0x80;
constexpr uint32_t kLzwBitsMin = 9;
constexpr uint32_t kLzwBitsMax = 16;
constexpr uint32_t kLzwClear = 256;
constexpr uint32_t kLzwNone = UINT32_MAX;

class LzwDecoder final : public MemberDecoder {
 public:
  absl::string_view member_name() const override { return "compress stream"; }

  MemberPadding padding() const override { return MemberPadding::kNone; }

  size_t MagicSizeBytes() const override { return 0; }

  bool HasMagic(ByteView /*bytes*/) const override { return false; }

  // The last byte is filled with unused bits.
  bool MayEndHere() const override {
    return header_size_ == kLzwHeaderSizeBytes && bit_count_ < 8;
  }

  void Reset() override {
    header_size_ = 0;
    bits_ = 0;
    bit_count_ = 0;
    text_.clear();
    skipped_bits_ = 0;
  }

  Step Decode(ByteView in, MutableByteView out) override {
    Step step;
    while (step.produced_bytes < out.size()) {
      if (!text_.empty()) {
        out[step.produced_bytes++] = text_.back();
        text_.pop_back();
        continue;
      }
      if (header_size_ == kLzwHeaderSizeBytes && PassBits() &&
          bit_count_ >= width_) {
        TakeCode(step);
        if (!step.error.empty()) {
          break;
        }
        continue;
      }
      if (step.consumed_bytes == in.size()) {
        break;
      }
      TakeByte(in[step.consumed_bytes++], step);
      if (!step.error.empty()) {
        break;
      }
    }
    return step;
  }

 private:
  void TakeByte(uint8_t byte, Step& step) {
    if (header_size_ == kLzwHeaderSizeBytes) {
      bits_ |= uint64_t{byte} << bit_count_;
      bit_count_ += 8;
      return;
    }
    header_[header_size_++] = byte;
    if (header_size_ == kLzwHeaderSizeBytes) {
      if (!IsLzwStart(header_)) {
        step.error = "damaged start of a compress stream";
      }
      width_max_ = header_[2] & kLzwBitsMask;
      can_clear_ = (header_[2] & kLzwCanClear) != 0;
      prefix_.resize(size_t{1} << kLzwBitsMax);
      suffix_.resize(prefix_.size());
      Clear();
    }
  }

  // Passes over the unused rest of a group; false if more input is needed.
  bool PassBits() {
    const uint32_t size = std::min(skipped_bits_, bit_count_);
    bits_ >>= size;
    bit_count_ -= size;
    skipped_bits_ -= size;
    return skipped_bits_ == 0;
  }

  void Clear() {
    width_ = kLzwBitsMin;
    code_count_ = 0;
    next_code_ = can_clear_ ? kLzwClear + 1 : kLzwClear;
    previous_ = kLzwNone;
  }

  void SkipGroup() { skipped_bits_ = (8 - code_count_ % 8) % 8 * width_; }

  void TakeCode(Step& step) {
    const uint32_t code =
        static_cast<uint32_t>(bits_ & ((uint64_t{1} << width_) - 1));
    bits_ >>= width_;
    bit_count_ -= width_;
    ++code_count_;
    if (code == kLzwClear && can_clear_) {
      SkipGroup();
      Clear();
      return;
    }
    const bool is_known =
        previous_ == kLzwNone ? code < kLzwClear : code <= next_code_;
    if (!is_known) {
      step.error = "damaged compress data (a code that stands for no text)";
      return;
    }
    uint32_t link = code;
    if (code == next_code_) {
      // The text of the previous code and its first byte.
      text_.push_back(first_);
      link = previous_;
    }
    while (link >= kLzwClear) {
      text_.push_back(suffix_[link]);
      link = prefix_[link];
    }
    first_ = static_cast<uint8_t>(link);
    text_.push_back(first_);
    AddCode();
    previous_ = code;
  }

  // Adds the previous text with the first byte of this one.
  void AddCode() {
    if (previous_ == kLzwNone || next_code_ >= uint32_t{1} << width_max_) {
      return;
    }
    prefix_[next_code_] = static_cast<uint16_t>(previous_);
    suffix_[next_code_] = first_;
    ++next_code_;
    // As compress does, which widens codes of 9 bits even if that is the most.
    if (next_code_ >> width_ != 0 &&
        (width_ < width_max_ || width_ == kLzwBitsMin)) {
      SkipGroup();
      ++width_;
      code_count_ = 0;
    }
  }

  std::array<uint8_t, kLzwHeaderSizeBytes> header_ = {};
  size_t header_size_ = 0;
  uint32_t width_max_ = 0;
  bool can_clear_ = false;

  // Input that is not decoded yet.
  uint64_t bits_ = 0;
  uint32_t bit_count_ = 0;
  uint32_t skipped_bits_ = 0;

  uint32_t width_ = kLzwBitsMin;
  // Codes of this width so far.
  uint64_t code_count_ = 0;
  uint32_t next_code_ = 0;
  uint32_t previous_ = kLzwNone;
  // First byte of the previous code's text.
  uint8_t first_ = 0;
  // The text of a code: that of another, and one more byte.
  std::vector<uint16_t> prefix_;
  std::vector<uint8_t> suffix_;
  // Text to be produced, last byte first.
  std::vector<uint8_t> text_;
};

}  // namespace

bool IsLzwStart(ByteView start) {
  return start.size() >= kLzwHeaderSizeBytes && start[0] == kLzwMagic0 &&
         start[1] == kLzwMagic1 && (start[2] & kLzwReservedMask) == 0 &&
         (start[2] & kLzwBitsMask) >= kLzwBitsMin &&
         (start[2] & kLzwBitsMask) <= kLzwBitsMax;
}

std::unique_ptr<MemberDecoder> NewLzwDecoder() {
  return std::make_unique<LzwDecoder>();
}

}  // namespace quire
