// SPDX-License-Identifier: Apache-2.0
//
// The hot loops of fsst_decoder.h, for no other code. All are bounded: with any
// codes they read only codes and write only output.
#ifndef QUIRE_CODECS_FSST_DECODE_FSST_DECODE_KERNEL_H_
#define QUIRE_CODECS_FSST_DECODE_FSST_DECODE_KERNEL_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "codecs/base/endian.h"

#if defined(__x86_64__)
// Decoding with the byte instructions of AVX-512, on machines that have them.
#define QUIRE_FSST_HAS_AVX512 1
#endif

namespace quire {

// Bytes after an escape are looked up like codes, at this offset.
inline constexpr size_t kFsstLiterals = 256;

// A symbol table in the form for decoders.
struct FsstDecodeTables {
  // By code; zero for codes without symbol and for the escape. Then the
  // literals.
  alignas(64) std::array<uint64_t, 2 * kFsstLiterals> symbols = {};
  // Sizes in bytes, also as words for codes: one instruction then loads a size
  // and adds it.
  alignas(64) std::array<uint8_t, 2 * kFsstLiterals> sizes = {};
  alignas(64) std::array<uint64_t, 256> steps = {};
  // The n-th bytes of all symbols.
  alignas(64) std::array<std::array<uint8_t, 256>, 8> planes = {};
  // Masks of the low bytes that a symbol has.
  alignas(64) std::array<uint8_t, 256> masks = {};
  // Codes from this one on have no symbol.
  uint8_t symbol_count = 0;
  // Avoid instructions that some machines lack.
  bool is_portable = false;
};

// The rest of the codes, and of the output buffer.
struct FsstCursor {
  const uint8_t* in = nullptr;
  const uint8_t* in_end = nullptr;
  // Bytes from in_end to here are readable, but not decoded.
  const uint8_t* readable_end = nullptr;
  uint8_t* out = nullptr;
  uint8_t* out_end = nullptr;

  size_t CodesLeft() const { return static_cast<size_t>(in_end - in); }

  size_t SpaceLeft() const { return static_cast<size_t>(out_end - out); }
};

enum class FsstStop {
  kEnd,          // All codes are decoded.
  kFull,         // The output buffer is full, perhaps within a symbol.
  kUnknownCode,  // At `in`.
  kBareEscape,   // At `in`.
};

inline constexpr size_t kFsstWordCodes = 8;

// Bytes [count, 8) all ones. REQUIRES: count < 8.
inline uint64_t OnesFromByte(size_t count) {
  return ~uint64_t{0} << (8 * count);
}

// Returns the codes at the front of `in`, first lowest, with ones after the
// last one. REQUIRES: in < in_end.
inline uint64_t LoadCodes(const uint8_t* in, const uint8_t* in_end,
                          const uint8_t* readable_end) {
  const auto count = static_cast<size_t>(in_end - in);
  if (readable_end - in >= 8) {
    const auto word = LoadLittleEndian<uint64_t>(in);
    return count >= 8 ? word : word | OnesFromByte(count);
  }
  uint64_t word = ~uint64_t{0};
  for (size_t i = count; i > 0; --i) {
    word = word << 8 | in[i - 1];
  }
  return word;
}

// Returns a bit for each code of 255 that is an escape. In a run of them every
// other one is the byte after an escape. The parity of the bit where a run
// begins therefore matters: adding to runs of one parity carries through them
// and clears them.
inline uint64_t FindFsstEscapes(uint64_t ones) {
  constexpr uint64_t kEvenBits = 0x5555555555555555;
  const uint64_t starts = ones & ~(ones << 1);
  const uint64_t even_runs = ones & ~(ones + (starts & kEvenBits));
  return (even_runs & kEvenBits) | (ones & ~even_runs & ~kEvenBits);
}

// Decodes until it must stop; `cursor` holds the position. For any machine.
FsstStop DecodeWords(const FsstDecodeTables& tables, FsstCursor& cursor);

// Decodes strings as FsstDecoder::DecodeStrings does, while the codes are right
// and space is left. Returns the number of strings whose out_ends it has set;
// the next string begins where the last of these ends.
// REQUIRES: out.size() < 2^32.
size_t DecodeStringsWords(const FsstDecodeTables& tables,
                          std::span<const uint8_t> codes,
                          std::span<const uint32_t> code_ends,
                          std::span<uint8_t> out, std::span<uint32_t> out_ends);

// Position of a walk over codes without decoding.
struct FsstWalk {
  size_t code_offset = 0;
  size_t decoded_offset = 0;
};

// Advances to the symbol that contains byte `target` of the text and stops
// before it (kFull), or where it must.
// REQUIRES: walk.decoded_offset <= target.
FsstStop WalkCodes(const FsstDecodeTables& tables,
                   std::span<const uint8_t> codes, size_t target,
                   FsstWalk& walk);

#if defined(QUIRE_FSST_HAS_AVX512)
bool HasFsstAvx512();

// Decodes while the codes are right and there is space for the next 64 codes,
// or for the rest. `cursor` stays between codes.
// REQUIRES: HasFsstAvx512().
void DecodeAvx512(const FsstDecodeTables& tables, FsstCursor& cursor);

// Like DecodeStringsWords. REQUIRES: HasFsstAvx512() as well.
size_t DecodeStringsAvx512(const FsstDecodeTables& tables,
                           std::span<const uint8_t> codes,
                           std::span<const uint32_t> code_ends,
                           std::span<uint8_t> out,
                           std::span<uint32_t> out_ends);
#endif

}  // namespace quire

#endif  // QUIRE_CODECS_FSST_DECODE_FSST_DECODE_KERNEL_H_
