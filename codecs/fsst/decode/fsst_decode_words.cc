// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>

#include "codecs/fsst/decode/fsst_decode_kernel.h"
#include "codecs/fsst/table/symbol_table.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace quire {
namespace {

constexpr size_t kWordSizeMax = kFsstWordCodes * kFsstSymbolSizeMax;
constexpr size_t kBlockCodes = 2 * kFsstWordCodes;
constexpr size_t kBlockSizeMax = 2 * kWordSizeMax;

// Codes that DecodeStringsWords decodes before it looks for ends.
constexpr size_t kTracedCodes = 1024;

// Address at which the text of each code begins, low half; then that of the
// end. The byte after an escape begins where the escape does.
using Trace = std::array<uint32_t, kTracedCodes + 1>;

uint32_t LowHalf(const uint8_t* place) {
  return static_cast<uint32_t>(reinterpret_cast<uintptr_t>(place));
}

// Plain C++ for any machine.
struct PortableWords {
  // A symbol between the table and the text.
  using Symbol = uint64_t;

  static Symbol LoadSymbol(const uint64_t& symbol) { return symbol; }

  static void StoreSymbol(Symbol symbol, uint8_t* out) {
    StoreLittleEndian(symbol, out);
  }

  // Returns a bit for each of the 16 codes at `in` that is at least `limit`.
  static uint32_t CodesFrom(const uint8_t* in, uint8_t limit) {
    uint32_t bits = 0;
    for (size_t i = 0; i < kBlockCodes; ++i) {
      bits |= static_cast<uint32_t>(in[i] >= limit) << i;
    }
    return bits;
  }

  // Returns the number of codes of `word` before the first that is an escape or
  // has no symbol; 8 if there is none.
  static size_t PlainCodes(uint64_t word, uint8_t symbol_count) {
    constexpr uint64_t kOnes = 0x0101010101010101;
    constexpr uint64_t kHighs = 0x8080808080808080;
    // Carries into the high bit where the low seven bits reach the limit's.
    const uint64_t low =
        (word & ~kHighs) + kOnes * (0x80U - (symbol_count & 0x7fU));
    const uint64_t special =
        (symbol_count < 0x80 ? low | word : low & word) & kHighs;
    return special == 0 ? 8
                        : static_cast<size_t>(std::countr_zero(special)) / 8;
  }
};

#if defined(__SSE2__)
// The same with SSE2.
struct Sse2Words {
  // Eight symbols do not fit the integer registers.
  using Symbol = __m128i;

  static Symbol LoadSymbol(const uint64_t& symbol) {
    return _mm_loadl_epi64(reinterpret_cast<const __m128i*>(&symbol));
  }

  static void StoreSymbol(Symbol symbol, uint8_t* out) {
    _mm_storel_epi64(reinterpret_cast<__m128i*>(out), symbol);
  }

  static uint32_t CodesFrom(__m128i codes, uint8_t limit) {
    const __m128i limits = _mm_set1_epi8(static_cast<char>(limit));
    return static_cast<uint32_t>(
        _mm_movemask_epi8(_mm_cmpeq_epi8(_mm_max_epu8(codes, limits), codes)));
  }

  static uint32_t CodesFrom(const uint8_t* in, uint8_t limit) {
    return CodesFrom(_mm_loadu_si128(reinterpret_cast<const __m128i*>(in)),
                     limit);
  }

  static size_t PlainCodes(uint64_t word, uint8_t symbol_count) {
    const uint32_t special =
        CodesFrom(_mm_cvtsi64_si128(static_cast<int64_t>(word)), symbol_count);
    return static_cast<size_t>(std::countr_zero(special | 0x100U));
  }
};

using NativeWords = Sse2Words;
#else
using NativeWords = PortableWords;
#endif

// Writes the symbols of eight codes; codes without symbol write nothing.
// Returns the end of the text. With kIsTraced, `trace` receives where they
// begin.
// REQUIRES: space for 64 bytes at `out`, for eight entries in `trace`.
template <class Words, bool kIsTraced>
inline uint8_t* DecodeWord(const FsstDecodeTables& tables, uint64_t word,
                           uint8_t* out, [[maybe_unused]] uint32_t* trace) {
  // All loads precede all stores; stores to one cache line are together.
  typename Words::Symbol symbols[kFsstWordCodes];
  std::array<uint8_t*, kFsstWordCodes> places;
  for (size_t i = 0; i < kFsstWordCodes; ++i) {
    const size_t code = word >> (8 * i) & 0xff;
    symbols[i] = Words::LoadSymbol(tables.symbols[code]);
    places[i] = out;
    out += tables.steps[code];
  }
  for (size_t i = 0; i < kFsstWordCodes; ++i) {
    Words::StoreSymbol(symbols[i], places[i]);
  }
  if constexpr (kIsTraced) {
    for (size_t i = 0; i < kFsstWordCodes; ++i) {
      trace[i] = LowHalf(places[i]);
    }
  }
  return out;
}

// Like DecodeWord, for 16 codes of which some are escapes; `literals` marks the
// bytes after them. REQUIRES: twice the space.
template <bool kIsTraced>
inline uint8_t* DecodeEscapes(const FsstDecodeTables& tables, const uint8_t* in,
                              uint32_t literals, uint8_t* out,
                              [[maybe_unused]] uint32_t* trace) {
  for (size_t i = 0; i < kBlockCodes; ++i) {
    const size_t index = in[i] | (literals >> i & 1) * kFsstLiterals;
    if constexpr (kIsTraced) {
      trace[i] = LowHalf(out);
    }
    StoreLittleEndian(tables.symbols[index], out);
    out += tables.sizes[index];
  }
  return out;
}

// Like DecodeWord with less than 64 bytes of space. Returns false if the text
// did not fit; then all space is used.
template <class Words>
bool DecodeLastWord(const FsstDecodeTables& tables, uint64_t word,
                    FsstCursor& cursor) {
  uint8_t text[kWordSizeMax];
  const auto size = static_cast<size_t>(
      DecodeWord<Words, false>(tables, word, text, nullptr) - text);
  const size_t fitting = std::min(size, cursor.SpaceLeft());
  std::copy_n(text, fitting, cursor.out);
  cursor.out += fitting;
  return fitting == size;
}

// Decodes while there are 16 codes, space for their longest text, and no error;
// with kIsTraced, kTracedCodes at most. Local variables: for the compiler `out`
// may alias anything.
template <class Words, bool kIsTraced>
void DecodeBlocks(const FsstDecodeTables& tables, FsstCursor& cursor,
                  [[maybe_unused]] uint32_t* trace) {
  const uint8_t symbol_count = tables.symbol_count;
  const uint8_t* in = cursor.in;
  const uint8_t* in_end = cursor.in_end;
  if constexpr (kIsTraced) {
    in_end = in + std::min(cursor.CodesLeft(), kTracedCodes);
  }
  uint8_t* out = cursor.out;
  uint8_t* const out_end = cursor.out_end;
  while (in_end - in >= ptrdiff_t{kBlockCodes} &&
         out_end - out >= ptrdiff_t{kBlockSizeMax}) {
    const uint32_t special = Words::CodesFrom(in, symbol_count);
    size_t count = kBlockCodes;
    if (special == 0) [[likely]] {
      for (size_t i = 0; i < kBlockCodes; i += kFsstWordCodes) {
        out = DecodeWord<Words, kIsTraced>(
            tables, LoadLittleEndian<uint64_t>(in + i), out,
            kIsTraced ? trace + i : nullptr);
      }
    } else {
      const uint32_t ones = Words::CodesFrom(in, kFsstEscape);
      const auto escapes = static_cast<uint32_t>(FindFsstEscapes(ones));
      if ((special & ~ones & ~(escapes << 1)) != 0) {
        break;
      }
      out = DecodeEscapes<kIsTraced>(tables, in, escapes << 1, out, trace);
      // An escape at the end is decoded with its byte, in the next block.
      count -= escapes >> (kBlockCodes - 1);
    }
    in += count;
    if constexpr (kIsTraced) {
      trace += count;
    }
  }
  if constexpr (kIsTraced) {
    *trace = LowHalf(out);
  }
  cursor.in = in;
  cursor.out = out;
}

template <class Words>
FsstStop DecodeWordsWith(const FsstDecodeTables& tables, FsstCursor& cursor) {
  DecodeBlocks<Words, false>(tables, cursor, nullptr);
  while (cursor.in != cursor.in_end) {
    uint64_t word = LoadCodes(cursor.in, cursor.in_end, cursor.readable_end);
    const size_t plain_count = Words::PlainCodes(word, tables.symbol_count);
    if (plain_count < kFsstWordCodes) {
      word |= OnesFromByte(plain_count);
    }
    if (cursor.SpaceLeft() >= kWordSizeMax) [[likely]] {
      cursor.out = DecodeWord<Words, false>(tables, word, cursor.out, nullptr);
    } else if (!DecodeLastWord<Words>(tables, word, cursor)) {
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
    if (cursor.SpaceLeft() == 0) {
      return FsstStop::kFull;
    }
    *cursor.out++ = cursor.in[1];
    cursor.in += 2;
  }
  return FsstStop::kEnd;
}

template <class Words>
size_t DecodeStringsWith(const FsstDecodeTables& tables,
                         std::span<const uint8_t> codes,
                         std::span<const uint32_t> code_ends,
                         std::span<uint8_t> out, std::span<uint32_t> out_ends) {
  Trace trace;
  // Ignore codes after the last string.
  const size_t codes_end =
      code_ends.empty() ? 0 : std::min<size_t>(code_ends.back(), codes.size());
  FsstCursor cursor = {.in = codes.data(),
                       .in_end = codes.data() + codes_end,
                       .readable_end = codes.data() + codes.size(),
                       .out = out.data(),
                       .out_end = out.data() + out.size()};
  const uint32_t base = LowHalf(out.data());
  size_t done = 0;
  size_t last_end = 0;
  while (done < code_ends.size()) {
    const auto begin = static_cast<size_t>(cursor.in - codes.data());
    DecodeBlocks<Words, true>(tables, cursor, trace.data());
    const auto end = static_cast<size_t>(cursor.in - codes.data());
    for (; done < code_ends.size() && code_ends[done] <= end; ++done) {
      const size_t place = code_ends[done];
      if (place < last_end) {
        return done;
      }
      const uint32_t text_end = trace[place - begin];
      // The last byte is an escape. Only escapes have no text.
      if (place > last_end && trace[place - begin - 1] == text_end) {
        return done;
      }
      out_ends[done] = text_end - base;
      last_end = place;
    }
    if (end == begin) {
      return done;
    }
  }
  return done;
}

template <class Words>
FsstStop WalkWith(const FsstDecodeTables& tables,
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
      if (Words::PlainCodes(word, tables.symbol_count) == kFsstWordCodes) {
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

}  // namespace

FsstStop DecodeWords(const FsstDecodeTables& tables, FsstCursor& cursor) {
  return tables.is_portable ? DecodeWordsWith<PortableWords>(tables, cursor)
                            : DecodeWordsWith<NativeWords>(tables, cursor);
}

size_t DecodeStringsWords(const FsstDecodeTables& tables,
                          std::span<const uint8_t> codes,
                          std::span<const uint32_t> code_ends,
                          std::span<uint8_t> out,
                          std::span<uint32_t> out_ends) {
  return tables.is_portable ? DecodeStringsWith<PortableWords>(
                                  tables, codes, code_ends, out, out_ends)
                            : DecodeStringsWith<NativeWords>(
                                  tables, codes, code_ends, out, out_ends);
}

FsstStop WalkCodes(const FsstDecodeTables& tables,
                   std::span<const uint8_t> codes, size_t target,
                   FsstWalk& walk) {
  return tables.is_portable
             ? WalkWith<PortableWords>(tables, codes, target, walk)
             : WalkWith<NativeWords>(tables, codes, target, walk);
}

}  // namespace quire
