// SPDX-License-Identifier: Apache-2.0
#include "codecs/fsst/block/fsst_codec.h"

#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"

#include "codecs/base/check.h"
#include "codecs/base/status_macros.h"
#include "codecs/codec_base.h"
#include "codecs/fsst/block/fsst_block.h"
#include "codecs/fsst/decode/fsst_decoder.h"
#include "codecs/fsst/encode/fsst_encoder.h"
#include "codecs/fsst/table/symbol_table.h"
#include "codecs/fsst/training/symbol_trainer.h"

namespace quire {
namespace {

constexpr uint8_t kArchiveTable = 0;
constexpr uint8_t kOwnTable = 1;

// A block's own table must save at least 1/32 of the block.
constexpr size_t kOwnTableGain = 32;
// For shorter texts a table costs more than it saves.
constexpr size_t kOwnTableTextMin = 2048;

class FsstCodec final : public CodecBase {
 public:
  // `table` is the archive's table, if any.
  FsstCodec(const CodecInfo& info, FsstCodecLevel level,
            const std::optional<SymbolTable>& table, CodecUse use)
      : CodecBase(info, use), level_(level) {
    if (table.has_value()) {
      decoder_.emplace(*table);
      // A table without symbols would enlarge all blocks.
      if (use != CodecUse::kDecode && table->symbol_count() != 0) {
        encoder_.emplace(*table, parse_level());
      }
    }
  }

  size_t StoredSizeMax(size_t raw_size) const override {
    return 1 + kSerialisedSymbolTableSizeMax + FsstBlockSizeMax(raw_size);
  }

  std::unique_ptr<Scratch> NewScratch() const override {
    return std::make_unique<Scratch>();
  }

  size_t MemoryBytes() const override { return sizeof(*this); }

  absl::Status Decode(ByteView stored, MutableByteView raw,
                      Scratch& scratch) const override {
    return DecodeRange(stored, raw.size(), 0, raw, scratch);
  }

  absl::Status DecodeRange(ByteView stored, size_t raw_size, size_t offset,
                           MutableByteView out,
                           Scratch& /*scratch*/) const override {
    QUIRE_CHECK(offset <= raw_size && out.size() <= raw_size - offset);
    if (stored.empty()) {
      return Damaged(stored, "no bytes at all");
    }
    const ByteView rest = stored.subspan(1);
    if (stored[0] == kArchiveTable) {
      return decoder_.has_value()
                 ? DecodeBlock(*decoder_, stored, rest, raw_size, offset, out)
                 : Damaged(stored, "needs a symbol table that is not there");
    }
    if (stored[0] != kOwnTable) {
      return Damaged(stored, "begins with a reserved byte");
    }
    size_t table_size = 0;
    const auto table = SymbolTable::ParsePrefix(rest, &table_size);
    if (!table.ok()) {
      return Damaged(stored, table.status().message());
    }
    return DecodeBlock(FsstDecoder(*table), stored, rest.subspan(table_size),
                       raw_size, offset, out);
  }

 protected:
  absl::StatusOr<size_t> EncodeBlock(ByteView raw, MutableByteView stored,
                                     Scratch& scratch) const override {
    if (!encoder_.has_value()) {
      return EncodeWithOwnTable(raw, stored);
    }
    stored[0] = kArchiveTable;
    const size_t size = 1 + EncodeFsstBlock(*encoder_, raw, stored.subspan(1));
    if (level_ == FsstCodecLevel::kArchiveTable ||
        raw.size() < kOwnTableTextMin) {
      return size;
    }
    const MutableByteView own = scratch.TextBuffer(StoredSizeMax(raw.size()));
    const size_t own_size = EncodeWithOwnTable(raw, own);
    if (own_size > size - size / kOwnTableGain) {
      return size;
    }
    std::ranges::copy(own.first(own_size), stored.begin());
    return own_size;
  }

 private:
  FsstLevel parse_level() const {
    return level_ == FsstCodecLevel::kMax ? FsstLevel::kHigh
                                          : FsstLevel::kDefault;
  }

  absl::Status DecodeBlock(const FsstDecoder& decoder, ByteView stored,
                           ByteView block, size_t raw_size, size_t offset,
                           MutableByteView out) const {
    const auto view = FsstBlockView::Parse(block, raw_size);
    if (!view.ok()) {
      return Damaged(stored, view.status().message());
    }
    const absl::Status status = view->DecodeRange(decoder, offset, out);
    return status.ok() ? status : Damaged(stored, status.message());
  }

  size_t EncodeWithOwnTable(ByteView raw, MutableByteView stored) const {
    // The fast training at any level; the other takes a third of a second.
    const SymbolTable table = TrainSymbolTable(std::span(&raw, 1));
    const std::string serialised = table.Serialise();
    stored[0] = kOwnTable;
    std::ranges::copy(AsBytes(serialised), stored.begin() + 1);
    const size_t header_size = 1 + serialised.size();
    return header_size + EncodeFsstBlock(FsstEncoder(table, parse_level()), raw,
                                         stored.subspan(header_size));
  }

  const FsstCodecLevel level_;
  // Codecs of the archive's table, if any; the encoder only when encoding.
  std::optional<FsstDecoder> decoder_;
  std::optional<FsstEncoder> encoder_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<BlockCodec>> MakeFsstCodec(
    const CodecInfo& info, FsstCodecLevel level,
    const std::shared_ptr<const CodecContext>& context, CodecUse use) {
  std::optional<SymbolTable> table;
  if (context != nullptr && !context->symbol_table.empty()) {
    auto parsed = SymbolTable::Parse(AsBytes(context->symbol_table));
    if (!parsed.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("symbol table for codec ", info.name, ": ",
                       parsed.status().message()));
    }
    table = *parsed;
  }
  return std::make_unique<FsstCodec>(info, level, table, use);
}

std::optional<ByteView> FindArchiveTableBlock(ByteView stored) {
  if (stored.empty() || stored[0] != kArchiveTable) {
    return std::nullopt;
  }
  return stored.subspan(1);
}

}  // namespace quire
