// SPDX-License-Identifier: Apache-2.0
#include "codecs/zlib/deflate_decoder.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

#include "codecs/base/check.h"
#include "codecs/base/status_macros.h"
#include "codecs/zlib/deflate_code.h"

namespace quire {
namespace {

constexpr size_t kEndOfBlockSymbol = 256;
constexpr size_t kDistanceCountMax = 30;
constexpr size_t kLengthCountMax = 286;
constexpr size_t kCodeLengthCount = 19;
constexpr unsigned kCodeLengthRootBits = 7;
// Order of the code lengths of the code of code lengths (RFC 1951, section
// 3.2.7).
constexpr std::array<uint8_t, kCodeLengthCount> kCodeLengthOrder = {
    16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15};

absl::Status Malformed(absl::string_view what) {
  return absl::DataLossError(absl::StrCat("malformed DEFLATE stream: ", what));
}

absl::Status CutShort() {
  return absl::DataLossError("the DEFLATE stream is cut short");
}

}  // namespace

void DeflateDecoder::Start(ByteView stored, MutableByteView output,
                           ByteView dictionary, DeflateEnding ending) {
  bits_ = {};
  stored_begin_ = stored.data();
  bits_.next = stored.data();
  bits_.end = stored.data() + stored.size();
  output_ = output;
  dictionary_ = dictionary;
  matches_ = nullptr;
  text_size_ = 0;
  first_block_end_ = 0;
  block_ = Block::kNone;
  ending_ = ending;
  is_last_block_ = false;
  is_flushed_ = false;
  at_end_ = false;
  overflowed_ = false;
}

absl::StatusOr<size_t> DeflateDecoder::DecodeTo(size_t wanted) {
  QUIRE_CHECK(wanted <= output_.size());
  QUIRE_RETURN_IF_ERROR(Run(wanted));
  return text_size_;
}

absl::Status DeflateDecoder::Finish(size_t text_size) {
  QUIRE_RETURN_IF_ERROR(Run(output_.size() + 1));
  if (overflowed_ || text_size_ > text_size) {
    return absl::DataLossError("the DEFLATE stream holds more than expected");
  }
  if (text_size_ < text_size) {
    return absl::DataLossError(
        absl::StrCat("the DEFLATE stream ends after ", text_size_, " bytes"));
  }
  if (UnreadSize() != 0) {
    return absl::DataLossError(absl::StrCat(
        UnreadSize(), " bytes follow the end of the DEFLATE stream"));
  }
  return absl::OkStatus();
}

size_t DeflateDecoder::UnreadSize() const {
  return static_cast<size_t>(bits_.end - bits_.next) + bits_.count / 8 -
         bits_.past_end;
}

// Continues until the text has `wanted` bytes, the stream is at its end, or it
// would overflow the output buffer.
absl::Status DeflateDecoder::Run(size_t wanted) {
  while (text_size_ < wanted && !at_end_ && !overflowed_) {
    if (block_ == Block::kNone) {
      if (ending_ == DeflateEnding::kFinalBlock
              ? is_last_block_
              : is_flushed_ && UnreadSize() == 0) {
        at_end_ = true;
        break;
      }
      QUIRE_RETURN_IF_ERROR(ReadBlockHeader());
      continue;
    }
    if (block_ == Block::kStored) {
      CopyStored(wanted);
      if (stored_left_ != 0 && !overflowed_ && text_size_ < wanted) {
        return CutShort();
      }
      continue;
    }
    const Result result = text_size_ < FastEnd() && matches_ == nullptr
                              ? DecodeFast(std::min(wanted, FastEnd()))
                              : DecodeCarefully(wanted);
    if (result == Result::kCut || bits_.IsPastEnd()) {
      return CutShort();
    }
    if (result == Result::kMalformed) {
      return Malformed("a code or distance that there is not");
    }
    if (result == Result::kEndOfBlock) {
      block_ = Block::kNone;
      if (first_block_end_ == 0) {
        first_block_end_ = text_size_;
      }
    }
  }
  return absl::OkStatus();
}

absl::Status DeflateDecoder::ReadBlockHeader() {
  if (!bits_.Fill()) {
    return CutShort();
  }
  is_last_block_ = bits_.Take(1) != 0;
  is_flushed_ = false;
  const uint32_t type = bits_.Take(2);
  if (bits_.IsPastEnd()) {
    return CutShort();
  }
  if (is_last_block_ && ending_ == DeflateEnding::kFullFlush) {
    return Malformed("a final block in a piece that is not the last");
  }
  switch (type) {
    case 0:
      return ReadStoredHeader();
    case 1:
      UseFixedCodes();
      break;
    case 2:
      QUIRE_RETURN_IF_ERROR(ReadCodes());
      break;
    default:
      return Malformed("a block of type 3");
  }
  block_ = Block::kCoded;
  return absl::OkStatus();
}

absl::Status DeflateDecoder::ReadStoredHeader() {
  bits_.Take(bits_.count % 8);
  if (!bits_.Fill()) {
    return CutShort();
  }
  const uint32_t size = bits_.Take(16);
  const uint32_t check = bits_.Take(16);
  if (bits_.IsPastEnd()) {
    return CutShort();
  }
  if (size != (~check & 0xFFFF)) {
    return Malformed("the size of a stored block");
  }
  // The block is read from the stream itself: return the bytes of the buffer.
  bits_.next -= bits_.count / 8 - bits_.past_end;
  bits_.buffer = 0;
  bits_.count = 0;
  bits_.past_end = 0;
  stored_left_ = size;
  is_flushed_ = size == 0;
  block_ = size == 0 ? Block::kNone : Block::kStored;
  return absl::OkStatus();
}

void DeflateDecoder::CopyStored(size_t wanted) {
  if (text_size_ == output_.size() && wanted > text_size_) {
    overflowed_ = true;
    return;
  }
  const size_t size =
      std::min({stored_left_, std::min(wanted, output_.size()) - text_size_,
                static_cast<size_t>(bits_.end - bits_.next)});
  std::copy_n(bits_.next, size, output_.data() + text_size_);
  bits_.next += size;
  text_size_ += size;
  stored_left_ -= size;
  if (stored_left_ == 0) {
    block_ = Block::kNone;
  } else if (text_size_ == output_.size() && wanted > text_size_) {
    overflowed_ = true;
  }
}

// RFC 1951, section 3.2.6.
void DeflateDecoder::UseFixedCodes() {
  if (has_fixed_codes_) {
    return;
  }
  std::array<uint8_t, kDeflateSymbolCountMax> lengths;
  std::fill_n(lengths.begin(), 144, uint8_t{8});
  std::fill_n(lengths.begin() + 144, 112, uint8_t{9});
  std::fill_n(lengths.begin() + 256, 24, uint8_t{7});
  std::fill_n(lengths.begin() + 280, 8, uint8_t{8});
  BuildDeflateTable(lengths, DeflateLiteralAndLengthSymbols(), kLengthRootBits,
                    /*complete_only=*/false, length_table_, length_root_bits_);
  std::fill_n(lengths.begin(), 32, uint8_t{5});
  BuildDeflateTable(std::span(lengths).first(32), DeflateDistanceSymbols(),
                    kDistanceRootBits, /*complete_only=*/false, distance_table_,
                    distance_root_bits_);
  has_fixed_codes_ = true;
}

// RFC 1951, section 3.2.7. Rejects the same codes as zlib.
absl::Status DeflateDecoder::ReadCodes() {
  has_fixed_codes_ = false;
  if (!bits_.Fill()) {
    return CutShort();
  }
  const size_t length_count = bits_.Take(5) + size_t{257};
  const size_t distance_count = bits_.Take(5) + size_t{1};
  const size_t code_length_count = bits_.Take(4) + size_t{4};
  if (length_count > kLengthCountMax || distance_count > kDistanceCountMax) {
    return Malformed("too many symbols");
  }
  std::array<uint8_t, kCodeLengthCount> code_lengths = {};
  for (size_t i = 0; i < code_length_count; ++i) {
    if (!bits_.Fill()) {
      return CutShort();
    }
    code_lengths[kCodeLengthOrder[i]] = static_cast<uint8_t>(bits_.Take(3));
  }
  unsigned root_bits = 0;
  if (!BuildDeflateTable(code_lengths, DeflateCodeLengthSymbols(),
                         kCodeLengthRootBits, /*complete_only=*/true,
                         length_table_, root_bits)) {
    return Malformed("the code of code lengths");
  }
  std::array<uint8_t, 320> lengths;
  if (!ReadCodeLengths(lengths, length_count + distance_count, root_bits)) {
    return bits_.IsPastEnd() ? CutShort() : Malformed("the code lengths");
  }
  const std::span<const uint8_t> all(lengths);
  if (lengths[kEndOfBlockSymbol] == 0 ||
      !BuildDeflateTable(all.first(length_count),
                         DeflateLiteralAndLengthSymbols(), kLengthRootBits,
                         /*complete_only=*/false, length_table_,
                         length_root_bits_) ||
      !BuildDeflateTable(all.subspan(length_count, distance_count),
                         DeflateDistanceSymbols(), kDistanceRootBits,
                         /*complete_only=*/false, distance_table_,
                         distance_root_bits_)) {
    return Malformed("a code");
  }
  return bits_.IsPastEnd() ? CutShort() : absl::OkStatus();
}

// Symbols 0 to 15 are lengths; 16 repeats the last one, 17 and 18 repeat 0.
bool DeflateDecoder::ReadCodeLengths(std::array<uint8_t, 320>& lengths,
                                     size_t count, unsigned root_bits) {
  size_t done = 0;
  while (done < count) {
    if (!bits_.Fill()) {
      return false;
    }
    const uint32_t entry = length_table_[LowBits(bits_.buffer, root_bits)];
    bits_.Take(DeflateEntryBits(entry));
    const uint32_t symbol = entry >> 16;
    if (symbol < 16) {
      lengths[done++] = static_cast<uint8_t>(symbol);
      continue;
    }
    if (symbol == 16 && done == 0) {
      return false;
    }
    const uint8_t repeated = symbol == 16 ? lengths[done - 1] : 0;
    const size_t times = symbol == 16   ? 3 + bits_.Take(2)
                         : symbol == 17 ? 3 + bits_.Take(3)
                                        : 11 + bits_.Take(7);
    if (times > count - done) {
      return false;
    }
    std::fill_n(lengths.begin() + static_cast<ptrdiff_t>(done), times,
                repeated);
    done += times;
  }
  return true;
}

}  // namespace quire
