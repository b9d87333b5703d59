// SPDX-License-Identifier: Apache-2.0
#include "codecs/fsst/fsst_encoder.h"

#include <algorithm>
#include <cassert>

namespace quire {

FsstEncoder::FsstEncoder(const SymbolTable& table, FsstLevel level) {
  if (level == FsstLevel::kHigh) {
    optimal_parse_.emplace(table);
  }
  for (size_t code = 0; code < table.symbol_count(); ++code) {
    const FsstSymbol& symbol = table.symbol(code);
    entries_[symbol.bytes & 0xff].push_back(
        {symbol, static_cast<uint8_t>(code)});
  }
  for (auto& entries : entries_) {
    std::stable_sort(entries.begin(), entries.end(),
                     [](const Entry& a, const Entry& b) {
                       return a.symbol.size > b.symbol.size;
                     });
  }
}

size_t FsstEncoder::EncodePiece(ByteView piece, uint8_t* codes) const {
  if (optimal_parse_.has_value()) {
    return optimal_parse_->Encode(piece, codes);
  }
  size_t size = 0;
  for (size_t i = 0; i < piece.size();) {
    uint64_t word = 0;
    const size_t left = std::min(piece.size() - i, kFsstSymbolSizeMax);
    std::copy_n(piece.data() + i, left, reinterpret_cast<uint8_t*>(&word));
    const auto& entries = entries_[piece[i]];
    const auto match =
        std::find_if(entries.begin(), entries.end(), [&](const Entry& entry) {
          const size_t shift = 64 - 8 * size_t{entry.symbol.size};
          return entry.symbol.size <= left &&
                 (word ^ entry.symbol.bytes) << shift == 0;
        });
    if (match == entries.end()) {
      codes[size++] = kFsstEscape;
      codes[size++] = piece[i++];
    } else {
      codes[size++] = match->code;
      i += match->symbol.size;
    }
  }
  return size;
}

size_t FsstEncoder::Encode(ByteView text, MutableByteView codes) const {
  assert(codes.size() >= CodesSizeMax(text.size()));
  size_t size = 0;
  while (!text.empty()) {
    const size_t piece_size = std::min(text.size(), kFsstStringSizeMax);
    size += EncodePiece(text.first(piece_size), codes.data() + size);
    text = text.subspan(piece_size);
  }
  return size;
}

size_t FsstEncoder::EncodeStrings(std::span<const ByteView> texts,
                                  MutableByteView codes,
                                  std::span<uint32_t> code_ends) const {
  size_t size = 0;
  for (size_t i = 0; i < texts.size(); ++i) {
    size += Encode(texts[i], codes.subspan(size));
    code_ends[i] = static_cast<uint32_t>(size);
  }
  return size;
}

bool FsstEquals(ByteView codes_a, ByteView codes_b) {
  return std::equal(codes_a.begin(), codes_a.end(), codes_b.begin(),
                    codes_b.end());
}

}  // namespace quire
