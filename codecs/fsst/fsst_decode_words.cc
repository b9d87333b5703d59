// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "codecs/fsst/fsst_decode_kernel.h"
#include "codecs/fsst/symbol_table.h"

namespace quire {
namespace {

constexpr size_t kWordSizeMax = kFsstWordCodes * kFsstSymbolSizeMax;

// As DecodeWord where less than 64 bytes of room are left. False if it was not
// enough: then all room is used.
bool DecodeLastWord(const FsstDecodeTables& tables, uint64_t word,
                    FsstCursor& cursor) {
  uint8_t text[kWordSizeMax];
  const auto size = static_cast<size_t>(DecodeWord(tables, word, text) - text);
  const size_t fitting = std::min(size, cursor.RoomLeft());
  std::copy_n(text, fitting, cursor.out);
  cursor.out += fitting;
  return fitting == size;
}

// Decodes while there are eight codes and room for all that they may be. In
// variables of its own: `out` may point to anything, for all the compiler
// knows.
void DecodeWholeWords(const FsstDecodeTables& tables, FsstCursor& cursor) {
  const uint8_t symbol_count = tables.symbol_count;
  const uint8_t* in = cursor.in;
  const uint8_t* const in_end = cursor.in_end;
  uint8_t* out = cursor.out;
  uint8_t* const out_end = cursor.out_end;
  while (in_end - in >= ptrdiff_t{kFsstWordCodes} &&
         out_end - out >= ptrdiff_t{kWordSizeMax}) {
    const auto word = LoadLittleEndian<uint64_t>(in);
    const size_t plain_count = PlainCodes(word, symbol_count);
    if (plain_count == kFsstWordCodes) [[likely]] {
      out = DecodeWord(tables, word, out);
      in += kFsstWordCodes;
      continue;
    }
    out = DecodeWord(tables, word | OnesFromByte(plain_count), out);
    in += plain_count;
    if (*in != kFsstEscape || in_end - in < 2 || out == out_end) {
      break;
    }
    *out++ = in[1];
    in += 2;
  }
  cursor.in = in;
  cursor.out = out;
}

}  // namespace

FsstStop DecodeWords(const FsstDecodeTables& tables, FsstCursor& cursor) {
  DecodeWholeWords(tables, cursor);
  while (cursor.in != cursor.in_end) {
    uint64_t word = LoadCodes(cursor.in, cursor.in_end, cursor.readable_end);
    const size_t plain_count = PlainCodes(word, tables.symbol_count);
    if (plain_count < kFsstWordCodes) {
      word |= OnesFromByte(plain_count);
    }
    if (cursor.RoomLeft() >= kWordSizeMax) [[likely]] {
      cursor.out = DecodeWord(tables, word, cursor.out);
    } else if (!DecodeLastWord(tables, word, cursor)) {
      return FsstStop::kFull;
    }
    cursor.in += plain_count;
    if (plain_count == kFsstWordCodes || cursor.in == cursor.in_end)
        [[likely]] {
      continue;
    }
    if (*cursor.in != kFsstEscape) {
      return FsstStop::kUnknownCode;
    }
    if (cursor.CodesLeft() < 2) {
      return FsstStop::kBareEscape;
    }
    if (cursor.RoomLeft() == 0) {
      return FsstStop::kFull;
    }
    *cursor.out++ = cursor.in[1];
    cursor.in += 2;
  }
  return FsstStop::kEnd;
}

size_t DecodeStringsWords(const FsstDecodeTables& tables,
                          std::span<const uint8_t> codes,
                          std::span<const uint32_t> code_ends,
                          std::span<uint8_t> out_room,
                          std::span<uint32_t> out_ends) {
  const uint8_t symbol_count = tables.symbol_count;
  const uint8_t* in = codes.data();
  const uint8_t* const readable_end = in + codes.size();
  uint8_t* out = out_room.data();
  uint8_t* const out_end = out + out_room.size();
  for (size_t i = 0; i < code_ends.size(); ++i) {
    if (code_ends[i] > codes.size() || codes.data() + code_ends[i] < in) {
      return i;
    }
    const uint8_t* const in_end = codes.data() + code_ends[i];
    while (in != in_end) {
      if (readable_end - in < ptrdiff_t{kFsstWordCodes} ||
          out_end - out < ptrdiff_t{kWordSizeMax} + 1) {
        return i;
      }
      // Codes of the next string count for nothing, and the symbols of these
      // are written over: it costs less than to stop exactly.
      const auto count = static_cast<size_t>(in_end - in);
      const auto word =
          LoadLittleEndian<uint64_t>(in) |
          (count < kFsstWordCodes ? OnesFromByte(count) : uint64_t{0});
      const size_t plain_count = PlainCodes(word, symbol_count);
      if (plain_count >= std::min(count, kFsstWordCodes)) [[likely]] {
        out = DecodeWord(tables, word, out);
        in += plain_count;
        continue;
      }
      out = DecodeWord(tables, word | OnesFromByte(plain_count), out);
      in += plain_count;
      if (*in != kFsstEscape || in_end - in < 2) {
        return i;
      }
      *out++ = in[1];
      in += 2;
    }
    out_ends[i] = static_cast<uint32_t>(out - out_room.data());
  }
  return code_ends.size();
}

FsstStop WalkCodes(const FsstDecodeTables& tables,
                   std::span<const uint8_t> codes, size_t target,
                   FsstWalk& walk) {
  while (walk.code_offset < codes.size()) {
    const size_t wanted = target - walk.decoded_offset;
    if (wanted == 0) {
      return FsstStop::kFull;
    }
    const uint8_t* const in = &codes[walk.code_offset];
    const size_t left = codes.size() - walk.code_offset;
    if (wanted >= kWordSizeMax && left >= kFsstWordCodes) {
      const auto word = LoadLittleEndian<uint64_t>(in);
      if (PlainCodes(word, tables.symbol_count) == kFsstWordCodes) {
        size_t size = 0;
        for (size_t i = 0; i < kFsstWordCodes; ++i) {
          size += tables.sizes[word >> (8 * i) & 0xff];
        }
        walk.code_offset += kFsstWordCodes;
        walk.decoded_offset += size;
        continue;
      }
    }
    const bool is_escape = *in == kFsstEscape;
    const size_t size = is_escape ? 1 : tables.sizes[*in];
    if (size == 0) {
      return FsstStop::kUnknownCode;
    }
    if (is_escape && left < 2) {
      return FsstStop::kBareEscape;
    }
    if (size > wanted) {
      return FsstStop::kFull;
    }
    walk.code_offset += is_escape ? 2 : 1;
    walk.decoded_offset += size;
  }
  return FsstStop::kEnd;
}

}  // namespace quire
