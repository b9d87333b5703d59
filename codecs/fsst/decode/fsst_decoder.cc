// SPDX-License-Identifier: Apache-2.0
#include "codecs/fsst/decode/fsst_decoder.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "absl/strings/str_cat.h"

#include "codecs/base/check.h"
#include "codecs/base/status_macros.h"

namespace quire {
namespace {

absl::Status BareEscape() {
  return absl::DataLossError("FSST codes end in an escape");
}

absl::Status UnknownCode(uint8_t code) {
  return absl::DataLossError(
      absl::StrCat("FSST code ", code, " is not in the symbol table"));
}

absl::Status NoRoom() {
  return absl::OutOfRangeError(
      "FSST codes decode to more than the output buffer holds");
}

absl::Status TooShort() {
  return absl::OutOfRangeError("FSST codes decode to less than asked for");
}

absl::Status Fault(FsstStop stop, uint8_t code) {
  return stop == FsstStop::kUnknownCode ? UnknownCode(code) : BareEscape();
}

FsstCursor MakeCursor(ByteView codes, MutableByteView out) {
  const uint8_t* const codes_end = codes.data() + codes.size();
  return {.in = codes.data(),
          .in_end = codes_end,
          .readable_end = codes_end,
          .out = out.data(),
          .out_end = out.data() + out.size()};
}

}  // namespace

FsstDecoder::FsstDecoder(const SymbolTable& table,
                         FsstInstructions instructions) {
  for (size_t code = 0; code < table.symbol_count(); ++code) {
    const FsstSymbol& symbol = table.symbol(code);
    tables_.symbols[code] = symbol.bytes;
    tables_.steps[code] = symbol.size;
    tables_.sizes[code] = symbol.size;
    for (size_t i = 0; i < kFsstSymbolSizeMax; ++i) {
      tables_.planes[i][code] = static_cast<uint8_t>(symbol.bytes >> (8 * i));
    }
    tables_.masks[code] = static_cast<uint8_t>((1U << symbol.size) - 1);
  }
  for (size_t byte = 0; byte < kFsstLiterals; ++byte) {
    tables_.symbols[kFsstLiterals + byte] = byte;
    tables_.sizes[kFsstLiterals + byte] = 1;
  }
  tables_.symbol_count = static_cast<uint8_t>(table.symbol_count());
  tables_.is_portable = instructions == FsstInstructions::kPortable;
#if defined(QUIRE_FSST_HAS_AVX512)
  has_avx512_ = instructions == FsstInstructions::kBest && HasFsstAvx512();
#endif
}

FsstStop FsstDecoder::Run(FsstCursor& cursor) const {
#if defined(QUIRE_FSST_HAS_AVX512)
  if (has_avx512_) {
    DecodeAvx512(tables_, cursor);
  }
#endif
  // Decodes the rest and finds the error.
  return DecodeWords(tables_, cursor);
}

absl::StatusOr<size_t> FsstDecoder::Decode(ByteView codes,
                                           MutableByteView out) const {
  FsstCursor cursor = MakeCursor(codes, out);
  const FsstStop stop = Run(cursor);
  if (stop == FsstStop::kEnd) {
    return static_cast<size_t>(cursor.out - out.data());
  }
  return stop == FsstStop::kFull ? NoRoom() : Fault(stop, *cursor.in);
}

absl::Status FsstDecoder::DecodeExactly(ByteView codes,
                                        MutableByteView out) const {
  FsstCursor cursor = MakeCursor(codes, out);
  const FsstStop stop = Run(cursor);
  if (stop == FsstStop::kEnd && cursor.SpaceLeft() == 0) {
    return absl::OkStatus();
  }
  if (stop == FsstStop::kEnd || stop == FsstStop::kFull) {
    return absl::DataLossError(
        absl::StrCat("FSST codes do not decode to ", out.size(), " bytes"));
  }
  return Fault(stop, *cursor.in);
}

absl::StatusOr<size_t> FsstDecoder::DecodedSize(ByteView codes) const {
  FsstWalk walk;
  const FsstStop stop =
      WalkCodes(tables_, codes, std::numeric_limits<size_t>::max(), walk);
  if (stop != FsstStop::kEnd) {
    return Fault(stop, codes[walk.code_offset]);
  }
  return walk.decoded_offset;
}

absl::StatusOr<FsstDecoder::CodePosition> FsstDecoder::Find(
    ByteView codes, size_t decoded_offset) const {
  FsstWalk walk;
  const FsstStop stop = WalkCodes(tables_, codes, decoded_offset, walk);
  const CodePosition position = {.code_offset = walk.code_offset,
                                 .decoded_offset = walk.decoded_offset};
  switch (stop) {
    case FsstStop::kFull:
      return position;
    case FsstStop::kEnd:
      if (walk.decoded_offset == decoded_offset) {
        return position;
      }
      return TooShort();
    default:
      return Fault(stop, codes[walk.code_offset]);
  }
}

absl::Status FsstDecoder::DecodeRange(ByteView codes, size_t offset,
                                      MutableByteView out) const {
  QUIRE_ASSIGN_OR_RETURN(const CodePosition begin, Find(codes, offset));
  codes = codes.subspan(begin.code_offset);
  const size_t cut = offset - begin.decoded_offset;
  if (cut > 0 && !out.empty()) {
    // The rest of a symbol; an escape has none.
    const size_t size =
        std::min<size_t>(tables_.sizes[codes.front()] - cut, out.size());
    const uint64_t rest = tables_.symbols[codes.front()] >> (8 * cut);
    std::memcpy(out.data(), &rest, size);
    out = out.subspan(size);
    codes = codes.subspan(1);
  }
  if (out.empty()) {
    return absl::OkStatus();
  }
  FsstCursor cursor = MakeCursor(codes, out);
  const FsstStop stop = Run(cursor);
  if (cursor.SpaceLeft() == 0) {
    return absl::OkStatus();
  }
  return stop == FsstStop::kEnd ? TooShort() : Fault(stop, *cursor.in);
}

absl::Status FsstDecoder::DecodeStrings(ByteView codes,
                                        std::span<const uint32_t> code_ends,
                                        MutableByteView out,
                                        std::span<uint32_t> out_ends) const {
  QUIRE_CHECK(code_ends.size() == out_ends.size());
  out = out.first(
      std::min<size_t>(out.size(), std::numeric_limits<uint32_t>::max()));
#if defined(QUIRE_FSST_HAS_AVX512)
  size_t done =
      has_avx512_
          ? DecodeStringsAvx512(tables_, codes, code_ends, out, out_ends)
          : DecodeStringsWords(tables_, codes, code_ends, out, out_ends);
#else
  size_t done = DecodeStringsWords(tables_, codes, code_ends, out, out_ends);
#endif
  FsstCursor cursor = MakeCursor(codes, out);
  if (done > 0) {
    cursor.in += code_ends[done - 1];
    cursor.out += out_ends[done - 1];
  }
  for (; done < code_ends.size(); ++done) {
    const auto begin = static_cast<size_t>(cursor.in - codes.data());
    if (code_ends[done] < begin || code_ends[done] > codes.size()) {
      return absl::DataLossError("the ends of FSST strings do not ascend");
    }
    cursor.in_end = codes.data() + code_ends[done];
    const FsstStop stop = DecodeWords(tables_, cursor);
    if (stop != FsstStop::kEnd) {
      return stop == FsstStop::kFull ? NoRoom() : Fault(stop, *cursor.in);
    }
    out_ends[done] = static_cast<uint32_t>(cursor.out - out.data());
  }
  return absl::OkStatus();
}

}  // namespace quire
