// SPDX-License-Identifier: Apache-2.0
//
// 64 codes at a time. The paper's section 5.4 ends in the opinion that decoding
// has no use for SIMD, but that was before VBMI2: eight symbols are gathered
// into a register, their zeros are squeezed out by one instruction, and one
// store takes the place of eight. Which bytes are text is looked up for 64
// codes at once. Stores that would reach beyond the room are masked.
#include "codecs/fsst/fsst_decode_kernel.h"

#if defined(QUIRE_FSST_HAS_AVX512)
#include <immintrin.h>

#include <algorithm>
#include <bit>

#include "codecs/fsst/symbol_table.h"

// Everything that is inlined must have the same target.
#define QUIRE_FSST_AVX512                                        \
  __attribute__((                                                \
      target("avx512f,avx512bw,avx512vl,avx512vbmi,avx512vbmi2," \
             "bmi,bmi2,lzcnt,popcnt")))

namespace quire {
namespace {

constexpr size_t kBlockCodes = 64;
constexpr size_t kGroupCodes = 8;
constexpr size_t kBlockGroups = kBlockCodes / kGroupCodes;
constexpr size_t kBlockSizeMax = kBlockCodes * kFsstSymbolSizeMax;

// How many codes DecodeStringsAvx512 decodes before it looks for ends.
constexpr size_t kTracedCodes = 4096;

// What is known of each group of eight codes once they are decoded.
struct Trace {
  // Where in the text the group begins.
  std::array<uint32_t, kTracedCodes / kGroupCodes + 1> begins;
  // A byte for each code with as many low bits as it has bytes of text.
  alignas(64) std::array<uint64_t, kTracedCodes / kGroupCodes + 1> masks;
};

// 64 codes, or as many as there are.
struct Block {
  __m512i codes;
  // Bits of codes that are there.
  uint64_t live;
  // Bits of bytes behind an escape.
  uint64_t literals = 0;
  // Whether the last code is an escape, to the first byte of the next block.
  bool is_open = false;
};

// Finds the bytes that stand for themselves. In a run of escape codes every
// other one is such a byte, so it matters whether a run begins on an even bit:
// adding to those alone carries through them and clears them.
QUIRE_FSST_AVX512 inline void FindLiterals(Block& block, uint64_t first) {
  constexpr uint64_t kEvenBits = 0x5555555555555555;
  const uint64_t codes = _mm512_mask_cmpeq_epu8_mask(block.live, block.codes,
                                                     _mm512_set1_epi8(-1)) &
                         ~first;
  const uint64_t starts = codes & ~(codes << 1);
  const uint64_t even_runs = codes & ~(codes + (starts & kEvenBits));
  const uint64_t escapes =
      (even_runs & kEvenBits) | (codes & ~even_runs & ~kEvenBits);
  block.literals = ((escapes << 1) & block.live) | first;
  const uint64_t last = block.live & ~(block.live >> 1);
  block.is_open = (escapes & last) != 0;
}

// Which bytes of the symbols are text: a byte for each code.
struct MaskTable {
  __m512i quarters[4];

  QUIRE_FSST_AVX512 explicit MaskTable(const FsstDecodeTables& tables) {
    for (size_t i = 0; i < 4; ++i) {
      quarters[i] = _mm512_load_si512(&tables.masks[64 * i]);
    }
  }

  QUIRE_FSST_AVX512 inline __m512i Find(const Block& block) const {
    const __m512i low =
        _mm512_permutex2var_epi8(quarters[0], block.codes, quarters[1]);
    const __m512i high =
        _mm512_permutex2var_epi8(quarters[2], block.codes, quarters[3]);
    const __m512i masks =
        _mm512_mask_mov_epi8(low, _mm512_movepi8_mask(block.codes), high);
    return _mm512_maskz_mov_epi8(
        block.live,
        _mm512_mask_mov_epi8(masks, block.literals, _mm512_set1_epi8(1)));
  }
};

// The text of eight codes, squeezed together.
template <bool kHasLiterals>
QUIRE_FSST_AVX512 inline __m512i GroupText(const FsstDecodeTables& tables,
                                           const uint8_t* codes,
                                           uint64_t literals, uint64_t mask) {
  const __m512i indexes = _mm512_maskz_cvtepu8_epi64(
      0xff, _mm_loadl_epi64(reinterpret_cast<const __m128i*>(codes)));
  __m512i symbols = _mm512_mask_i64gather_epi64(
      _mm512_setzero_si512(), 0xff, indexes, tables.symbols.data(), 8);
  if constexpr (kHasLiterals) {
    symbols = _mm512_mask_mov_epi64(symbols, static_cast<__mmask8>(literals),
                                    indexes);
  }
  return _mm512_maskz_compress_epi8(mask, symbols);
}

// Writes the text of a block, of `masks`; returns its end. If kIsExact, not a
// byte more, and the block may be short; else up to 64 more.
template <bool kHasLiterals, bool kIsExact>
QUIRE_FSST_AVX512 inline uint8_t* WriteBlock(const FsstDecodeTables& tables,
                                             const Block& block,
                                             const uint8_t* codes,
                                             const uint64_t* masks,
                                             uint8_t* out) {
  const size_t group_count =
      kIsExact ? (static_cast<size_t>(std::bit_width(block.live)) + 7) / 8
               : kBlockGroups;
  for (size_t i = 0; i < group_count; ++i) {
    const __m512i text = GroupText<kHasLiterals>(
        tables, codes + kGroupCodes * i, block.literals >> (8 * i), masks[i]);
    const auto size = static_cast<unsigned>(std::popcount(masks[i]));
    if constexpr (kIsExact) {
      _mm512_mask_storeu_epi8(out, _bzhi_u64(~uint64_t{0}, size), text);
    } else {
      _mm512_storeu_si512(out, text);
    }
    out += size;
  }
  return out;
}

QUIRE_FSST_AVX512 inline uint8_t* WriteAnyBlock(const FsstDecodeTables& tables,
                                                const Block& block,
                                                const uint8_t* codes,
                                                const uint64_t* masks,
                                                bool is_exact, uint8_t* out) {
  if (block.literals != 0) {
    return is_exact ? WriteBlock<true, true>(tables, block, codes, masks, out)
                    : WriteBlock<true, false>(tables, block, codes, masks, out);
  }
  return is_exact ? WriteBlock<false, true>(tables, block, codes, masks, out)
                  : WriteBlock<false, false>(tables, block, codes, masks, out);
}

// If kIsTraced, leaves what it learns in `trace`, with offsets from `base`.
template <bool kIsTraced>
QUIRE_FSST_AVX512 void DecodeBlocks(const FsstDecodeTables& tables,
                                    FsstCursor& cursor, Trace* trace,
                                    const uint8_t* base) {
  const MaskTable mask_table(tables);
  const __m512i limit =
      _mm512_set1_epi8(static_cast<char>(tables.symbol_count));
  const __m512i escape = _mm512_set1_epi8(-1);
  size_t group = 0;
  uint64_t first_is_literal = 0;
  while (cursor.in != cursor.in_end) {
    const size_t count = std::min(cursor.CodesLeft(), kBlockCodes);
    Block block;
    block.live = _bzhi_u64(~uint64_t{0}, static_cast<unsigned>(count));
    block.codes = _mm512_maskz_loadu_epi8(block.live, cursor.in);
    const uint64_t special =
        _mm512_mask_cmpge_epu8_mask(block.live, block.codes, limit);
    if ((special | first_is_literal) != 0) {
      FindLiterals(block, first_is_literal);
      if ((_mm512_mask_cmpneq_epu8_mask(special, block.codes, escape) &
           ~block.literals) != 0) {
        break;
      }
    }
    alignas(64) std::array<uint64_t, kBlockGroups> masks;
    _mm512_store_si512(masks.data(), mask_table.Find(block));
    const size_t room = cursor.RoomLeft();
    const bool is_exact = room < kBlockSizeMax || count < kBlockCodes;
    if (is_exact) {
      size_t size = 0;
      for (const uint64_t mask : masks) {
        size += static_cast<size_t>(std::popcount(mask));
      }
      if (size > room) {
        break;
      }
    }
    if constexpr (kIsTraced) {
      auto begin = static_cast<uint32_t>(cursor.out - base);
      for (size_t i = 0; i < kBlockGroups; ++i) {
        trace->begins[group] = begin;
        trace->masks[group++] = masks[i];
        begin += static_cast<uint32_t>(std::popcount(masks[i]));
      }
    }
    alignas(64) std::array<uint8_t, kBlockCodes> last;
    const uint8_t* codes = cursor.in;
    if (count < kBlockCodes) {
      _mm512_store_si512(last.data(), block.codes);
      codes = last.data();
    }
    cursor.out =
        WriteAnyBlock(tables, block, codes, masks.data(), is_exact, cursor.out);
    cursor.in += count;
    first_is_literal = block.is_open ? 1 : 0;
  }
  if constexpr (kIsTraced) {
    trace->begins[group] = static_cast<uint32_t>(cursor.out - base);
    trace->masks[group] = 0;
  }
  // Back to the escape: it has not written anything.
  cursor.in -= first_is_literal;
}

}  // namespace

bool HasFsstAvx512() {
  return __builtin_cpu_supports("avx512f") != 0 &&
         __builtin_cpu_supports("avx512bw") != 0 &&
         __builtin_cpu_supports("avx512vl") != 0 &&
         __builtin_cpu_supports("avx512vbmi") != 0 &&
         __builtin_cpu_supports("avx512vbmi2") != 0 &&
         __builtin_cpu_supports("bmi") != 0 &&
         __builtin_cpu_supports("bmi2") != 0 &&
         __builtin_cpu_supports("popcnt") != 0;
}

QUIRE_FSST_AVX512 void DecodeAvx512(const FsstDecodeTables& tables,
                                    FsstCursor& cursor) {
  DecodeBlocks<false>(tables, cursor, nullptr, nullptr);
}

QUIRE_FSST_AVX512 size_t DecodeStringsAvx512(
    const FsstDecodeTables& tables, std::span<const uint8_t> codes,
    std::span<const uint32_t> code_ends, std::span<uint8_t> out,
    std::span<uint32_t> out_ends) {
  Trace trace;
  FsstCursor cursor = {.in = codes.data(),
                       .in_end = codes.data(),
                       .readable_end = codes.data() + codes.size(),
                       .out = out.data(),
                       .out_end = out.data() + out.size()};
  size_t done = 0;
  size_t last_end = 0;
  // Codes behind the last string are not looked at.
  const size_t codes_end =
      code_ends.empty() ? 0 : std::min<size_t>(code_ends.back(), codes.size());
  while (done < code_ends.size()) {
    const auto begin = static_cast<size_t>(cursor.in - codes.data());
    cursor.in_end =
        codes.data() + begin + std::min(codes_end - begin, kTracedCodes);
    DecodeBlocks<true>(tables, cursor, &trace, out.data());
    const auto end = static_cast<size_t>(cursor.in - codes.data());
    for (; done < code_ends.size() && code_ends[done] <= end; ++done) {
      const size_t place = code_ends[done];
      if (place < last_end) {
        return done;
      }
      const size_t local = place - begin;
      // Whose last byte is an escape?
      if (place > last_end &&
          (trace.masks[(local - 1) / 8] >> (8 * ((local - 1) % 8)) & 1) == 0) {
        return done;
      }
      const uint64_t before = _bzhi_u64(trace.masks[local / 8],
                                        static_cast<unsigned>(local % 8 * 8));
      out_ends[done] = trace.begins[local / 8] +
                       static_cast<uint32_t>(std::popcount(before));
      last_end = place;
    }
    if (end == begin || (end == codes_end && done < code_ends.size())) {
      return done;
    }
  }
  return done;
}

}  // namespace quire
#endif  // QUIRE_FSST_HAS_AVX512
