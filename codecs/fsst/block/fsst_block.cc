// SPDX-License-Identifier: Apache-2.0
#include "codecs/fsst/block/fsst_block.h"

#include <algorithm>
#include <array>
#include <span>

#include "absl/strings/str_cat.h"

#include "codecs/base/check.h"
#include "codecs/base/endian.h"
#include "codecs/base/status_macros.h"
#include "codecs/fsst/table/symbol_table.h"

namespace quire {
namespace {

constexpr size_t kStringSize = kFsstStringSizeMax;
constexpr size_t kGroupSize = 64;
constexpr size_t kSymbolSizeMax = 8;
// Distances within a group fit their 16 bits.
static_assert((kGroupSize - 1) * 2 * kStringSize < (1 << 16));
static_assert(2 * kFsstBlockTextSizeMax < (uint64_t{1} << 32));

constexpr size_t StringCount(size_t text_size) {
  return (text_size + kStringSize - 1) / kStringSize;
}

constexpr size_t GroupCount(size_t string_count) {
  return (string_count + kGroupSize - 1) / kGroupSize;
}

// Marks of every group except the first.
constexpr size_t GroupMarksSize(size_t string_count) {
  return string_count == 0 ? 0
                           : (GroupCount(string_count) - 1) * sizeof(uint32_t);
}

constexpr size_t MarksSize(size_t string_count) {
  return GroupMarksSize(string_count) +
         (string_count - GroupCount(string_count)) * sizeof(uint16_t);
}

// True if a string of `text_size` bytes can have `codes_size` bytes of codes.
constexpr bool IsCodesSize(size_t codes_size, size_t text_size) {
  return codes_size <= 2 * text_size &&
         codes_size >= (text_size + kSymbolSizeMax - 1) / kSymbolSizeMax;
}

absl::Status BadCodes(const absl::Status& status) {
  return absl::DataLossError(
      absl::StrCat("string of an FSST block: ", status.message()));
}

}  // namespace

size_t FsstBlockSizeMax(size_t text_size) {
  return MarksSize(StringCount(text_size)) +
         FsstEncoder::CodesSizeMax(text_size);
}

size_t EncodeFsstBlock(const FsstEncoder& encoder, ByteView text,
                       MutableByteView block) {
  QUIRE_CHECK(text.size() <= kFsstBlockTextSizeMax);
  QUIRE_CHECK(block.size() >= FsstBlockSizeMax(text.size()));
  const size_t string_count = StringCount(text.size());
  uint8_t* group_mark = block.data();
  uint8_t* string_mark = block.data() + GroupMarksSize(string_count);
  const MutableByteView codes = block.subspan(MarksSize(string_count));
  size_t codes_size = 0;
  for (size_t first = 0; first < string_count; first += kGroupSize) {
    std::array<ByteView, kGroupSize> texts;
    std::array<uint32_t, kGroupSize> ends;
    const size_t count = std::min(kGroupSize, string_count - first);
    for (size_t i = 0; i < count; ++i) {
      const ByteView rest = text.subspan((first + i) * kStringSize);
      texts[i] = rest.first(std::min(rest.size(), kStringSize));
    }
    if (first != 0) {
      StoreLittleEndian(static_cast<uint32_t>(codes_size), group_mark);
      group_mark += sizeof(uint32_t);
    }
    codes_size += encoder.EncodeStrings(std::span(texts).first(count),
                                        codes.subspan(codes_size),
                                        std::span(ends).first(count));
    for (size_t i = 1; i < count; ++i) {
      StoreLittleEndian(static_cast<uint16_t>(ends[i - 1]), string_mark);
      string_mark += sizeof(uint16_t);
    }
  }
  return MarksSize(string_count) + codes_size;
}

FsstBlockView::FsstBlockView(ByteView block, size_t text_size)
    : text_size_(text_size),
      string_count_(StringCount(text_size)),
      group_marks_(block.data()),
      string_marks_(block.data() + GroupMarksSize(string_count_)),
      codes_(block.subspan(MarksSize(string_count_))) {}

absl::StatusOr<FsstBlockView> FsstBlockView::Parse(ByteView block,
                                                   size_t text_size) {
  const size_t string_count = StringCount(text_size);
  if (text_size > kFsstBlockTextSizeMax ||
      block.size() < MarksSize(string_count)) {
    return absl::DataLossError(absl::StrCat("an FSST block of ", block.size(),
                                            " bytes cannot have ", text_size,
                                            " bytes of text"));
  }
  FsstBlockView view(block, text_size);
  if (!view.MarksAreRight()) {
    return absl::DataLossError(
        absl::StrCat("the marks of an FSST block of ", block.size(),
                     " bytes are not those of ", text_size, " bytes of text"));
  }
  return view;
}

bool FsstBlockView::MarksAreRight() const {
  if (string_count_ == 0) {
    return codes_.empty();
  }
  const size_t group_count = GroupCount(string_count_);
  const uint8_t* marks = string_marks_;
  size_t group_begin = 0;
  for (size_t group = 0; group < group_count; ++group) {
    // Strings of this group, without the last one of the block: its end is a
    // mark of another kind. No branches, so that the loop is vectorised.
    const size_t count =
        std::min(kGroupSize, string_count_ - group * kGroupSize);
    constexpr uint16_t kCodesSizeMin = (kStringSize + 7) / kSymbolSizeMax;
    constexpr uint16_t kCodesSizeSpan = 2 * kStringSize - kCodesSizeMin;
    uint16_t before = 0;
    bool is_bad = false;
    for (size_t i = 1; i < count; ++i) {
      const auto mark = LoadLittleEndian<uint16_t>(marks);
      marks += sizeof(uint16_t);
      is_bad |=
          static_cast<uint16_t>(mark - before - kCodesSizeMin) > kCodesSizeSpan;
      before = mark;
    }
    const size_t group_end = CodesBegin(group * kGroupSize + count);
    const size_t last_begin = group_begin + before;
    if (is_bad || group_end < last_begin || group_end > codes_.size() ||
        !IsCodesSize(group_end - last_begin,
                     TextSizeOf(group * kGroupSize + count - 1))) {
      return false;
    }
    group_begin = group_end;
  }
  return true;
}

size_t FsstBlockView::CodesBegin(size_t string) const {
  if (string >= string_count_) {
    return codes_.size();
  }
  const size_t group = string / kGroupSize;
  const size_t in_group = string % kGroupSize;
  size_t begin = 0;
  if (group != 0) {
    begin = LoadLittleEndian<uint32_t>(group_marks_ +
                                       (group - 1) * sizeof(uint32_t));
  }
  if (in_group != 0) {
    begin += LoadLittleEndian<uint16_t>(string_marks_ + (string - group - 1) *
                                                            sizeof(uint16_t));
  }
  return begin;
}

ByteView FsstBlockView::CodesOf(size_t string) const {
  const size_t begin = CodesBegin(string);
  return codes_.subspan(begin, CodesBegin(string + 1) - begin);
}

size_t FsstBlockView::TextSizeOf(size_t string) const {
  return std::min(kStringSize, text_size_ - string * kStringSize);
}

absl::StatusOr<FsstBlockView::CodeRange> FsstBlockView::Find(
    const FsstDecoder& decoder, size_t offset, size_t size) const {
  QUIRE_CHECK(offset <= text_size_ && size <= text_size_ - offset);
  if (size == 0) {
    return CodeRange{};
  }
  QUIRE_ASSIGN_OR_RETURN(const Symbol first, SymbolAt(decoder, offset));
  QUIRE_ASSIGN_OR_RETURN(const Symbol last,
                         SymbolAt(decoder, offset + size - 1));
  return CodeRange{.codes = codes_.subspan(first.codes_begin,
                                           last.codes_end - first.codes_begin),
                   .front_cut_size_bytes = first.text_before,
                   .back_cut_size_bytes = last.text_behind};
}

absl::StatusOr<FsstBlockView::Symbol> FsstBlockView::SymbolAt(
    const FsstDecoder& decoder, size_t offset) const {
  const size_t string = offset / kStringSize;
  const size_t in_string = offset % kStringSize;
  const ByteView codes = CodesOf(string);
  const auto position = decoder.Find(codes, in_string);
  if (!position.ok()) {
    return BadCodes(position.status());
  }
  const ByteView rest = codes.subspan(position->code_offset);
  const size_t codes_size = !rest.empty() && rest[0] == kFsstEscape ? 2 : 1;
  if (codes_size > rest.size()) {
    return BadCodes(absl::DataLossError("it ends too early"));
  }
  const auto text_size = decoder.DecodedSize(rest.first(codes_size));
  if (!text_size.ok()) {
    return BadCodes(text_size.status());
  }
  const size_t text_before = in_string - position->decoded_offset;
  const size_t begin = CodesBegin(string) + position->code_offset;
  return Symbol{
      .codes_begin = begin,
      .codes_end = begin + codes_size,
      .text_before = static_cast<uint32_t>(text_before),
      .text_behind = static_cast<uint32_t>(*text_size - text_before - 1)};
}

absl::Status FsstBlockView::DecodeRange(const FsstDecoder& decoder,
                                        size_t offset,
                                        MutableByteView out) const {
  QUIRE_CHECK(offset <= text_size_ && out.size() <= text_size_ - offset);
  if (out.size() == text_size_) {
    return DecodeAll(decoder, out);
  }
  if (out.empty()) {
    return absl::OkStatus();
  }
  const size_t first = offset / kStringSize;
  const size_t last = (offset + out.size() - 1) / kStringSize;
  const size_t begin = CodesBegin(first);
  const ByteView codes = codes_.subspan(begin, CodesBegin(last + 1) - begin);
  const absl::Status status =
      decoder.DecodeRange(codes, offset % kStringSize, out);
  return status.ok() ? status : BadCodes(status);
}

absl::Status FsstBlockView::DecodeAll(const FsstDecoder& decoder,
                                      MutableByteView out) const {
  for (size_t first = 0; first < string_count_; first += kGroupSize) {
    std::array<uint32_t, kGroupSize> code_ends;
    std::array<uint32_t, kGroupSize> text_ends;
    const size_t count = std::min(kGroupSize, string_count_ - first);
    const size_t begin = CodesBegin(first);
    for (size_t i = 0; i < count; ++i) {
      code_ends[i] = static_cast<uint32_t>(CodesBegin(first + i + 1) - begin);
    }
    const MutableByteView text = out.subspan(
        first * kStringSize,
        std::min(kGroupSize * kStringSize, text_size_ - first * kStringSize));
    const absl::Status status =
        decoder.DecodeStrings(codes_.subspan(begin, code_ends[count - 1]),
                              std::span(code_ends).first(count), text,
                              std::span(text_ends).first(count));
    if (!status.ok()) {
      return BadCodes(status);
    }
    for (size_t i = 0; i < count; ++i) {
      if (text_ends[i] != std::min((i + 1) * kStringSize, text.size())) {
        return absl::DataLossError(absl::StrCat(
            "string ", first + i, " of an FSST block ends at byte ",
            text_ends[i], " of its group's text"));
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace quire
