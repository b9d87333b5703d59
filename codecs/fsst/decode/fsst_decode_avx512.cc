// SPDX-License-Identifier: Apache-2.0
//
// Decodes 64 codes at a time. The paper's section 5.4 considers SIMD useless
// for decoding, but predates VBMI and VBMI2. The n-th bytes of 64 symbols are
// looked up at once in registers, since loading or gathering each symbol takes
// longer; a transposition makes them eight registers of eight symbols. One
// instruction removes the zeros of eight symbols, and one store replaces eight.
// Stores beyond the output buffer are masked.
#include "codecs/fsst/decode/fsst_decode_kernel.h"

#if defined(QUIRE_FSST_HAS_AVX512)
#include <immintrin.h>

#include <algorithm>
#include <bit>

#include "codecs/fsst/table/symbol_table.h"

// Everything that is inlined must have the same target.
#define QUIRE_FSST_AVX512                                        \
  __attribute__((                                                \
      target("avx512f,avx512bw,avx512vl,avx512vbmi,avx512vbmi2," \
             "avx512bitalg,bmi,bmi2,lzcnt,popcnt")))

namespace quire {
namespace {

constexpr size_t kBlockCodes = 64;
constexpr size_t kGroupCodes = 8;
constexpr size_t kBlockGroups = kBlockCodes / kGroupCodes;
constexpr size_t kBlockSizeMax = kBlockCodes * kFsstSymbolSizeMax;

// Codes that DecodeStringsAvx512 decodes before it looks for ends.
constexpr size_t kTracedCodes = 4096;

// Text ends of decoded codes. The first block contributes only its last code,
// which ends where the text begins.
struct Trace {
  static constexpr size_t kCodes = kBlockCodes + kTracedCodes;
  static constexpr uint8_t kIsNothing = 0x80;

  // Address at which the text of each group of eight codes begins, low half.
  std::array<uint32_t, kCodes / kGroupCodes> begins = {};
  // End of each code relative to its group's address; kIsNothing for an escape.
  alignas(64) std::array<uint8_t, kCodes> marks = {};
};

// Code in each byte of a register: byte 16 q + 2 g + i has code i of the pair
// for quarter q in group g.
alignas(64) constexpr auto kOrder = [] {
  std::array<uint8_t, kBlockCodes> order = {};
  for (size_t i = 0; i < order.size(); ++i) {
    order[i] =
        static_cast<uint8_t>(kGroupCodes * (i % 16 / 2) + 2 * (i / 16) + i % 2);
  }
  return order;
}();

uint32_t LowHalf(const uint8_t* place) {
  return static_cast<uint32_t>(reinterpret_cast<uintptr_t>(place));
}

// 64 codes, or fewer at the end.
struct Block {
  __m512i codes;
  // Bits of codes that exist.
  uint64_t live;
  // Bits of bytes after an escape.
  uint64_t literals = 0;
  // True if the last code is an escape of the next block's first byte.
  bool is_open = false;
};

// Finds the bytes that follow an escape.
QUIRE_FSST_AVX512 inline void FindLiterals(Block& block, uint64_t first) {
  const uint64_t ones = _mm512_mask_cmpeq_epu8_mask(block.live, block.codes,
                                                    _mm512_set1_epi8(-1));
  const uint64_t escapes = FindFsstEscapes(ones & ~first);
  block.literals = ((escapes << 1) & block.live) | first;
  const uint64_t last = block.live & ~(block.live >> 1);
  block.is_open = (escapes & last) != 0;
}

// Looks up a byte for each of 64 codes.
QUIRE_FSST_AVX512 inline __m512i LookUp(const std::array<uint8_t, 256>& table,
                                        const __m512i& codes) {
  const __m512i low = _mm512_permutex2var_epi8(
      _mm512_load_si512(&table[0]), codes, _mm512_load_si512(&table[64]));
  const __m512i high = _mm512_permutex2var_epi8(
      _mm512_load_si512(&table[128]), codes, _mm512_load_si512(&table[192]));
  return _mm512_mask_mov_epi8(low, _mm512_movepi8_mask(codes), high);
}

// Returns the bytes of the symbols that are text: one mask byte per code.
QUIRE_FSST_AVX512 inline __m512i FindMasks(const FsstDecodeTables& tables,
                                           const Block& block) {
  return _mm512_maskz_mov_epi8(
      block.live, _mm512_mask_mov_epi8(LookUp(tables.masks, block.codes),
                                       block.literals, _mm512_set1_epi8(1)));
}

// The symbols of a block, eight to a group.
struct Symbols {
  __m512i groups[kBlockGroups];

  QUIRE_FSST_AVX512 inline Symbols(const FsstDecodeTables& tables,
                                   const Block& block) {
    // Interleaving joins neighbours within each quarter of a register. Codes 2n
    // and 2n + 1 of each group must therefore be in quarter n.
    const __m512i order = _mm512_load_si512(kOrder.data());
    const __m512i codes =
        _mm512_maskz_permutexvar_epi8(~uint64_t{0}, order, block.codes);
    __m512i bytes[kFsstSymbolSizeMax];
    // Literals are their own text.
    bytes[0] = _mm512_maskz_permutexvar_epi8(
        ~uint64_t{0}, order,
        _mm512_mask_mov_epi8(LookUp(tables.planes[0], block.codes),
                             block.literals, block.codes));
    for (size_t i = 1; i < kFsstSymbolSizeMax; ++i) {
      bytes[i] = LookUp(tables.planes[i], codes);
    }
    __m512i pairs[8];
    for (size_t i = 0; i < 8; i += 2) {
      pairs[i] = _mm512_unpacklo_epi8(bytes[i], bytes[i + 1]);
      pairs[i + 1] = _mm512_unpackhi_epi8(bytes[i], bytes[i + 1]);
    }
    // The low and the high halves of symbols.
    __m512i halves[8];
    for (size_t i = 0; i < 8; i += 4) {
      for (size_t k = 0; k < 2; ++k) {
        halves[i + 2 * k] =
            _mm512_unpacklo_epi16(pairs[i + k], pairs[i + k + 2]);
        halves[i + 2 * k + 1] =
            _mm512_unpackhi_epi16(pairs[i + k], pairs[i + k + 2]);
      }
    }
    for (size_t i = 0; i < 4; ++i) {
      groups[2 * i] =
          _mm512_maskz_unpacklo_epi32(0xffff, halves[i], halves[i + 4]);
      groups[2 * i + 1] =
          _mm512_maskz_unpackhi_epi32(0xffff, halves[i], halves[i + 4]);
    }
  }
};

// Writes the text of a block, as `masks` selects it, and returns its end. With
// kIsExact it writes no byte more, and the block may be short; otherwise it may
// write up to 64 bytes more. With kIsTraced, `begins` receives where the text
// of each group begins.
template <bool kIsExact, bool kIsTraced>
QUIRE_FSST_AVX512 inline uint8_t* WriteBlock(const Symbols& symbols,
                                             const uint64_t* masks,
                                             [[maybe_unused]] uint32_t* begins,
                                             uint8_t* out) {
#pragma GCC unroll 8
  for (size_t i = 0; i < kBlockGroups; ++i) {
    if constexpr (kIsTraced) {
      begins[i] = LowHalf(out);
    }
    const __m512i text =
        _mm512_maskz_compress_epi8(masks[i], symbols.groups[i]);
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

// Records where the codes of a block end.
QUIRE_FSST_AVX512 inline void MarkEnds(const __m512i& masks, uint8_t* marks) {
  const __m512i sizes = _mm512_popcnt_epi8(masks);
  __m512i ends =
      _mm512_add_epi8(sizes, _mm512_maskz_slli_epi64(0xff, sizes, 8));
  ends = _mm512_add_epi8(ends, _mm512_maskz_slli_epi64(0xff, ends, 16));
  ends = _mm512_add_epi8(ends, _mm512_maskz_slli_epi64(0xff, ends, 32));
  _mm512_store_si512(
      marks, _mm512_mask_add_epi8(
                 ends, _mm512_testn_epi8_mask(masks, masks), ends,
                 _mm512_set1_epi8(static_cast<char>(Trace::kIsNothing))));
}

// Sets out_ends of the strings that end at traced codes from `begin` to `end`,
// until one is wrong. `text` is where all text begins, `last_end` is where the
// string before them ends. Returns their number.
// REQUIRES: code_ends[0] >= begin, or it is less than last_end.
QUIRE_FSST_AVX512 size_t ReadTrace(const Trace& trace, uint32_t begin,
                                   uint32_t end, const uint8_t* text,
                                   uint32_t last_end,
                                   std::span<const uint32_t> code_ends,
                                   uint32_t* out_ends) {
  constexpr size_t kLanes = 16;
  const uint32_t base = LowHalf(text);
  const auto first = static_cast<uint32_t>(begin - (kBlockCodes - 1));
  __m512i last = _mm512_set1_epi32(static_cast<int>(last_end));
  size_t done = 0;
  while (done < code_ends.size()) {
    const size_t count = std::min(code_ends.size() - done, kLanes);
    const auto lanes = static_cast<__mmask16>((1U << count) - 1);
    const __m512i ends = _mm512_maskz_loadu_epi32(lanes, &code_ends[done]);
    const __m512i before =
        _mm512_maskz_alignr_epi32(lanes, ends, last, kLanes - 1);
    const unsigned here = _mm512_mask_cmple_epu32_mask(
        lanes, ends, _mm512_set1_epi32(static_cast<int>(end)));
    if (_mm512_mask_cmplt_epu32_mask(static_cast<__mmask16>(here), ends,
                                     before) != 0 ||
        (here & (here + 1)) != 0) {
      break;
    }
    const auto here_count = static_cast<size_t>(std::popcount(here));
    uint32_t all_marks = 0;
    const auto read = [&](size_t i) {
      // The last code of the string.
      const uint32_t code = code_ends[i] - first;
      const uint32_t mark = trace.marks[code];
      all_marks |= mark;
      out_ends[i] = trace.begins[code / kGroupCodes] - base + mark;
    };
    if (here_count == kLanes) [[likely]] {
#pragma GCC unroll 16
      for (size_t i = 0; i < kLanes; ++i) {
        read(done + i);
      }
    } else {
      for (size_t i = 0; i < here_count; ++i) {
        read(done + i);
      }
    }
    // An escape may not take its byte from the next string.
    if ((all_marks & Trace::kIsNothing) != 0) {
      break;
    }
    done += here_count;
    if (here_count != kLanes) {
      break;
    }
    last = ends;
  }
  return done;
}

// With kIsTraced, leaves a trace. REQUIRES for that: at most kTracedCodes
// codes.
template <bool kIsTraced>
QUIRE_FSST_AVX512 void DecodeBlocks(const FsstDecodeTables& tables,
                                    FsstCursor& cursor,
                                    [[maybe_unused]] Trace* trace) {
  const __m512i limit =
      _mm512_set1_epi8(static_cast<char>(tables.symbol_count));
  const __m512i escape = _mm512_set1_epi8(-1);
  uint32_t* begins = nullptr;
  uint8_t* marks = nullptr;
  if constexpr (kIsTraced) {
    begins = trace->begins.data() + kBlockGroups;
    marks = trace->marks.data() + kBlockCodes;
    begins[-1] = LowHalf(cursor.out);
  }
  uint64_t first_is_literal = 0;
  while (cursor.in != cursor.in_end) {
    const size_t count = std::min(cursor.CodesLeft(), kBlockCodes);
    Block block;
    block.live = _bzhi_u64(~uint64_t{0}, static_cast<unsigned>(count));
    block.codes = _mm512_maskz_loadu_epi8(block.live, cursor.in);
    // Always, since escapes come too irregularly to predict a branch.
    FindLiterals(block, first_is_literal);
    const uint64_t special =
        _mm512_mask_cmpge_epu8_mask(block.live, block.codes, limit);
    if ((_mm512_mask_cmpneq_epu8_mask(special, block.codes, escape) &
         ~block.literals) != 0) {
      break;
    }
    alignas(64) std::array<uint64_t, kBlockGroups> masks;
    const __m512i mask_bytes = FindMasks(tables, block);
    _mm512_store_si512(masks.data(), mask_bytes);
    const size_t space = cursor.SpaceLeft();
    const bool is_exact = space < kBlockSizeMax || count < kBlockCodes;
    if (is_exact) {
      size_t size = 0;
      for (const uint64_t mask : masks) {
        size += static_cast<size_t>(std::popcount(mask));
      }
      if (size > space) {
        break;
      }
    }
    const Symbols symbols(tables, block);
    cursor.out = is_exact ? WriteBlock<true, kIsTraced>(symbols, masks.data(),
                                                        begins, cursor.out)
                          : WriteBlock<false, kIsTraced>(symbols, masks.data(),
                                                         begins, cursor.out);
    if constexpr (kIsTraced) {
      MarkEnds(mask_bytes, marks);
      marks += kBlockCodes;
      begins += kBlockGroups;
    }
    cursor.in += count;
    first_is_literal = block.is_open ? 1 : 0;
  }
  // Return to the escape: it has written nothing.
  cursor.in -= first_is_literal;
}

}  // namespace

bool HasFsstAvx512() {
  return __builtin_cpu_supports("avx512f") != 0 &&
         __builtin_cpu_supports("avx512bw") != 0 &&
         __builtin_cpu_supports("avx512vl") != 0 &&
         __builtin_cpu_supports("avx512vbmi") != 0 &&
         __builtin_cpu_supports("avx512vbmi2") != 0 &&
         __builtin_cpu_supports("avx512bitalg") != 0 &&
         __builtin_cpu_supports("bmi") != 0 &&
         __builtin_cpu_supports("bmi2") != 0 &&
         __builtin_cpu_supports("popcnt") != 0;
}

QUIRE_FSST_AVX512 void DecodeAvx512(const FsstDecodeTables& tables,
                                    FsstCursor& cursor) {
  DecodeBlocks<false>(tables, cursor, nullptr);
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
  // Ignore codes after the last string.
  const size_t codes_end =
      code_ends.empty() ? 0 : std::min<size_t>(code_ends.back(), codes.size());
  while (done < code_ends.size()) {
    const auto begin = static_cast<size_t>(cursor.in - codes.data());
    cursor.in_end =
        codes.data() + begin + std::min(codes_end - begin, kTracedCodes);
    DecodeBlocks<true>(tables, cursor, &trace);
    const auto end = static_cast<size_t>(cursor.in - codes.data());
    done += ReadTrace(trace, static_cast<uint32_t>(begin),
                      static_cast<uint32_t>(end), out.data(),
                      done == 0 ? 0 : code_ends[done - 1],
                      code_ends.subspan(done), out_ends.data() + done);
    // A string is wrong, or no more can be decoded.
    if (done == code_ends.size() || code_ends[done] <= end || end == begin ||
        end == codes_end) {
      break;
    }
  }
  return done;
}

}  // namespace quire
#endif  // QUIRE_FSST_HAS_AVX512
