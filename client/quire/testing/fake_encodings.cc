// SPDX-License-Identifier: Apache-2.0
#include "client/quire/testing/fake_encodings.h"

#include <algorithm>
#include <memory>

#include "absl/strings/str_format.h"

#include "codecs/base/bytes.h"
#include "codecs/base/check.h"
#include "codecs/base/checksum.h"
#include "codecs/block_codec.h"
#include "codecs/fsst/encode/fsst_encoder.h"
#include "codecs/fsst/table/symbol_table.h"

namespace quire {
namespace {

std::string HashText(uint64_t hash) {
  return absl::StrFormat("%016x", hash);
}

// Every third byte has no symbol, so that codes have escapes.
SymbolTable MakeTable() {
  std::vector<FsstSymbol> symbols;
  for (const char* text : {"th", "the ", "document", "wor", "word", "s of"}) {
    FsstSymbol symbol;
    for (const char* c = text; *c != '\0'; ++c) {
      symbol.bytes |= uint64_t{static_cast<uint8_t>(*c)} << (8 * symbol.size++);
    }
    symbols.push_back(symbol);
  }
  for (unsigned byte = 0; byte < 256; ++byte) {
    if (byte % 3 != 2) {
      symbols.push_back({.bytes = byte, .size = 1});
    }
  }
  absl::StatusOr<SymbolTable> table = SymbolTable::FromSymbols(symbols);
  QUIRE_CHECK(table.ok());
  return *table;
}

}  // namespace

FakeEncodings::FakeEncodings(const FakeArchive& archive, absl::string_view text,
                             v1::ArchiveDescription& description)
    : codec_(archive.codec), text_size_bytes_(text.size()) {
  if (archive.has_symbol_table) {
    EncodeFsst(text);
    description.set_symbol_table_hash(HashText(symbol_table_hash_));
  }
  if (codec_.empty()) {
    return;
  }
  EncodeBlocks(archive, text);
  description.set_codec(codec_);
  description.set_block_size_bytes(kFakeBlockSizeBytes);
  has_dictionary_ = !archive.dictionary.empty();
  if (has_dictionary_) {
    dictionary_hash_ = Checksum64(AsBytes(archive.dictionary));
    description.set_dictionary_hash(HashText(dictionary_hash_));
  }
}

void FakeEncodings::EncodeFsst(absl::string_view text) {
  const SymbolTable table = MakeTable();
  symbol_table_ = table.Serialise();
  symbol_table_hash_ = Checksum64(AsBytes(symbol_table_));
  const FsstEncoder encoder(table);
  for (size_t at = 0; at < text.size(); at += kFakeStringSizeBytes) {
    const ByteView piece = AsBytes(text.substr(at, kFakeStringSizeBytes));
    std::string codes(FsstEncoder::CodesSizeMax(piece.size()), '\0');
    codes.resize(encoder.Encode(piece, AsMutableBytes(codes)));
    strings_.push_back(std::move(codes));
  }
}

void FakeEncodings::EncodeBlocks(const FakeArchive& archive,
                                 absl::string_view text) {
  auto context = std::make_shared<CodecContext>();
  context->dictionary = archive.dictionary;
  const CodecInfo* info = FindCodec(codec_);
  auto codec = MakeBlockCodec(DefaultCodecSpec(*info), context,
                              CodecUse::kEncodeAndDecode);
  QUIRE_CHECK(codec.ok());
  const auto scratch = (*codec)->NewScratch();
  for (size_t at = 0; at < text.size(); at += kFakeBlockSizeBytes) {
    const absl::string_view raw = text.substr(at, kFakeBlockSizeBytes);
    std::string stored((*codec)->StoredSizeMax(raw.size()), '\0');
    stored.resize(
        *(*codec)->Encode(AsBytes(raw), AsMutableBytes(stored), *scratch));
    is_uncoded_.push_back(stored.size() >= raw.size());
    blocks_.push_back(is_uncoded_.back() ? std::string(raw)
                                         : std::move(stored));
  }
}

bool FakeEncodings::Has(v1::WireEncoding encoding) const {
  return encoding == v1::WIRE_ENCODING_IDENTITY ||
         (encoding == v1::WIRE_ENCODING_FSST && !symbol_table_.empty()) ||
         (encoding == v1::WIRE_ENCODING_STORED && !codec_.empty());
}

std::string FakeEncodings::Encode(v1::WireEncoding encoding,
                                  const v1::ByteRange& range,
                                  v1::EncodingDetails& details) const {
  const bool is_fsst = encoding == v1::WIRE_ENCODING_FSST;
  const size_t grid = is_fsst ? kFakeStringSizeBytes : kFakeBlockSizeBytes;
  if (is_fsst) {
    details.set_table_hash(symbol_table_hash_);
  } else {
    details.set_codec(codec_);
    if (has_dictionary_) {
      details.set_table_hash(dictionary_hash_);
    }
  }
  std::string data;
  if (range.size_bytes() == 0) {
    return data;
  }
  const size_t end = range.offset() + range.size_bytes();
  const size_t first = range.offset() / grid;
  const size_t last = (end - 1) / grid;
  const size_t last_end = std::min((last + 1) * grid, text_size_bytes_);
  details.set_front_cut_size_bytes(
      static_cast<uint32_t>(range.offset() - first * grid));
  details.set_back_cut_size_bytes(static_cast<uint32_t>(last_end - end));
  for (size_t i = first; i <= last; ++i) {
    data += is_fsst ? strings_[i] : blocks_[i];
    if (!is_fsst) {
      v1::StoredBlock* block = details.add_blocks();
      block->set_stored_size_bytes(static_cast<uint32_t>(blocks_[i].size()));
      block->set_size_bytes(
          static_cast<uint32_t>(std::min(grid, text_size_bytes_ - i * grid)));
      block->set_is_uncoded(is_uncoded_[i]);
    }
  }
  return data;
}

}  // namespace quire
