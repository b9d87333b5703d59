// SPDX-License-Identifier: Apache-2.0
#include "codecs/fsst/fsst_decoder.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "absl/strings/str_cat.h"

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
  return absl::OutOfRangeError("FSST codes decode to more than there is room");
}

}  // namespace

FsstDecoder::FsstDecoder(const SymbolTable& table) : symbols_{}, sizes_{} {
  for (size_t code = 0; code < table.symbol_count(); ++code) {
    symbols_[code] = table.symbol(code).bytes;
    sizes_[code] = table.symbol(code).size;
  }
}

absl::StatusOr<size_t> FsstDecoder::Decode(ByteView codes,
                                           MutableByteView out) const {
  size_t size = 0;
  for (size_t i = 0; i < codes.size(); ++i) {
    uint64_t symbol = symbols_[codes[i]];
    size_t symbol_size = sizes_[codes[i]];
    if (codes[i] == kFsstEscape) {
      if (++i == codes.size()) {
        return BareEscape();
      }
      symbol = codes[i];
      symbol_size = 1;
    } else if (symbol_size == 0) {
      return UnknownCode(codes[i]);
    }
    if (out.size() - size < symbol_size) {
      return NoRoom();
    }
    std::memcpy(out.data() + size, &symbol, symbol_size);
    size += symbol_size;
  }
  return size;
}

absl::Status FsstDecoder::DecodeExactly(ByteView codes,
                                        MutableByteView out) const {
  const auto size = Decode(codes, out);
  if (!size.ok() && size.status().code() != absl::StatusCode::kOutOfRange) {
    return size.status();
  }
  if (!size.ok() || *size != out.size()) {
    return absl::DataLossError(
        absl::StrCat("FSST codes do not decode to ", out.size(), " bytes"));
  }
  return absl::OkStatus();
}

absl::StatusOr<size_t> FsstDecoder::DecodedSize(ByteView codes) const {
  size_t size = 0;
  for (size_t i = 0; i < codes.size(); ++i) {
    if (codes[i] == kFsstEscape) {
      if (++i == codes.size()) {
        return BareEscape();
      }
      ++size;
    } else if (sizes_[codes[i]] == 0) {
      return UnknownCode(codes[i]);
    } else {
      size += sizes_[codes[i]];
    }
  }
  return size;
}

absl::StatusOr<FsstDecoder::CodePosition> FsstDecoder::Find(
    ByteView codes, size_t decoded_offset) const {
  CodePosition position;
  while (position.decoded_offset < decoded_offset) {
    if (position.code_offset == codes.size()) {
      return absl::OutOfRangeError("FSST codes decode to less than asked for");
    }
    const uint8_t code = codes[position.code_offset];
    size_t code_size = 1;
    size_t symbol_size = sizes_[code];
    if (code == kFsstEscape) {
      if (codes.size() - position.code_offset < 2) {
        return BareEscape();
      }
      code_size = 2;
      symbol_size = 1;
    } else if (symbol_size == 0) {
      return UnknownCode(code);
    }
    if (position.decoded_offset + symbol_size > decoded_offset) {
      break;
    }
    position.code_offset += code_size;
    position.decoded_offset += symbol_size;
  }
  return position;
}

absl::Status FsstDecoder::DecodeRange(ByteView codes, size_t offset,
                                      MutableByteView out) const {
  QUIRE_ASSIGN_OR_RETURN(const CodePosition begin, Find(codes, offset));
  size_t place = begin.code_offset;
  size_t cut = offset - begin.decoded_offset;
  size_t size = 0;
  while (size < out.size()) {
    if (place == codes.size()) {
      return absl::OutOfRangeError("FSST codes decode to less than asked for");
    }
    const size_t code_size = codes[place] == kFsstEscape ? 2 : 1;
    if (codes.size() - place < code_size) {
      return BareEscape();
    }
    std::array<uint8_t, kFsstSymbolSizeMax> symbol;
    QUIRE_ASSIGN_OR_RETURN(const size_t symbol_size,
                           Decode(codes.subspan(place, code_size), symbol));
    const size_t wanted = std::min(symbol_size - cut, out.size() - size);
    std::copy_n(symbol.data() + cut, wanted, out.data() + size);
    size += wanted;
    place += code_size;
    cut = 0;
  }
  return absl::OkStatus();
}

absl::Status FsstDecoder::DecodeStrings(ByteView codes,
                                        std::span<const uint32_t> code_ends,
                                        MutableByteView out,
                                        std::span<uint32_t> out_ends) const {
  out = out.first(
      std::min<size_t>(out.size(), std::numeric_limits<uint32_t>::max()));
  size_t begin = 0;
  size_t size = 0;
  for (size_t i = 0; i < code_ends.size(); ++i) {
    if (code_ends[i] < begin || code_ends[i] > codes.size()) {
      return absl::DataLossError("the ends of FSST strings do not ascend");
    }
    QUIRE_ASSIGN_OR_RETURN(
        const size_t string_size,
        Decode(codes.subspan(begin, code_ends[i] - begin), out.subspan(size)));
    begin = code_ends[i];
    size += string_size;
    out_ends[i] = static_cast<uint32_t>(size);
  }
  return absl::OkStatus();
}

}  // namespace quire
