// SPDX-License-Identifier: Apache-2.0
#include "client/quire/internal/table_store.h"

#include <utility>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"

#include "client/quire/client_status.h"
#include "codecs/base/bytes.h"
#include "codecs/base/checksum.h"
#include "codecs/base/status_macros.h"
#include "codecs/fsst/table/symbol_table.h"

namespace quire {
namespace {

constexpr size_t kDecodersMax = 1000;
// Kinds, as in the file names of archives on disk.
constexpr char kSymbols[] = "symbols";
constexpr char kDictionary[] = "dictionary";

absl::Status CheckHash(const char* what, uint64_t hash,
                       const std::string& bytes) {
  if (Checksum64(AsBytes(bytes)) != hash) {
    return absl::DataLossError(absl::StrCat("the server sent other bytes as ",
                                            what, " ", FormatTableHash(hash),
                                            " than its hash is of"));
  }
  return absl::OkStatus();
}

// Marks the error of a table that the server withholds.
absl::StatusOr<std::string> MarkIfWithheld(absl::StatusOr<std::string> table) {
  if (!IsWithdrawn(table.status())) {
    return table;
  }
  absl::Status status = table.status();
  status.SetPayload(kTableWithheldPayloadUrl, absl::Cord("1"));
  return status;
}

}  // namespace

absl::StatusOr<std::shared_ptr<const StoredCodec>> StoredCodec::Make(
    const CodecInfo& info, uint32_t partition_size_bytes,
    std::shared_ptr<const CodecContext> context) {
  std::shared_ptr<StoredCodec> stored(new StoredCodec());
  CodecSpec spec = DefaultCodecSpec(info);
  spec.partition_size_bytes = partition_size_bytes;
  QUIRE_ASSIGN_OR_RETURN(stored->codec_,
                         MakePayloadCodec(spec, context, CodecUse::kDecode,
                                          kInflatedLargeSizeMax));
  stored->context_ = std::move(context);
  return std::shared_ptr<const StoredCodec>(std::move(stored));
}

absl::Status StoredCodec::DecodeRange(const Payload& payload, size_t raw_size,
                                      size_t offset,
                                      MutableByteView out) const {
  std::unique_ptr<PayloadCodec::Scratch> scratch;
  {
    MutexLock lock(&mutex_);
    if (!free_.empty()) {
      scratch = std::move(free_.back());
      free_.pop_back();
    }
  }
  if (scratch == nullptr) {
    scratch = codec_->NewScratch();
  }
  const absl::Status status =
      codec_->DecodeRange(payload, raw_size, offset, out, *scratch);
  MutexLock lock(&mutex_);
  free_.push_back(std::move(scratch));
  return status;
}

size_t StoredCodec::MemoryBytes() const {
  return context_->dictionary.size() + context_->symbol_table.size() +
         codec_->MemoryBytes();
}

TableStore::TableStore(const TableStoreOptions& options, TableSource* source)
    : options_(options),
      directory_(options.directory),
      source_(source),
      decoders_(kDecodersMax),
      codecs_(options.dictionary_size_bytes_max) {}

absl::StatusOr<std::string> TableStore::GetSymbolTableBytes(
    absl::string_view archive, uint64_t hash) {
  std::optional<std::string> held =
      directory_.Load(kSymbols, hash, kSerialisedSymbolTableSizeMax);
  if (held.has_value()) {
    return *std::move(held);
  }
  QUIRE_ASSIGN_OR_RETURN(std::string bytes,
                         MarkIfWithheld(source_->FetchSymbolTable(
                             archive, hash, kSerialisedSymbolTableSizeMax)));
  QUIRE_RETURN_IF_ERROR(CheckHash("symbol table", hash, bytes));
  fetched_size_bytes_ += bytes.size();
  directory_.Store(kSymbols, hash, bytes);
  return bytes;
}

absl::StatusOr<std::string> TableStore::GetDictionaryBytes(
    absl::string_view archive, uint64_t hash) {
  std::optional<std::string> held =
      directory_.Load(kDictionary, hash, options_.dictionary_size_bytes_max);
  if (held.has_value()) {
    return *std::move(held);
  }
  QUIRE_ASSIGN_OR_RETURN(
      std::string bytes,
      MarkIfWithheld(source_->FetchDictionary(
          archive, hash, options_.dictionary_size_bytes_max)));
  QUIRE_RETURN_IF_ERROR(CheckHash("dictionary", hash, bytes));
  fetched_size_bytes_ += bytes.size();
  directory_.Store(kDictionary, hash, bytes);
  return bytes;
}

absl::StatusOr<std::shared_ptr<const FsstDecoder>> TableStore::GetFsstDecoder(
    absl::string_view archive, uint64_t hash) {
  return decoders_.Get(
      hash,
      [&]() -> absl::StatusOr<std::shared_ptr<const FsstDecoder>> {
        QUIRE_ASSIGN_OR_RETURN(const std::string bytes,
                               GetSymbolTableBytes(archive, hash));
        const absl::StatusOr<SymbolTable> table =
            SymbolTable::Parse(AsBytes(bytes));
        if (!table.ok()) {
          return absl::DataLossError(
              absl::StrCat("the server's symbol table ", FormatTableHash(hash),
                           " is damaged: ", table.status().message()));
        }
        return std::make_shared<const FsstDecoder>(*table);
      },
      [](const FsstDecoder&) { return size_t{1}; });
}

absl::StatusOr<std::shared_ptr<const StoredCodec>> TableStore::GetStoredCodec(
    absl::string_view archive, const CodecInfo& info,
    uint32_t partition_size_bytes, std::optional<uint64_t> dictionary_hash,
    std::optional<uint64_t> symbol_table_hash) {
  if (info.needs_dictionary != dictionary_hash.has_value()) {
    return absl::DataLossError(absl::StrCat(
        "the server sent blocks of the codec ", info.name,
        dictionary_hash.has_value() ? " with" : " without", " a dictionary"));
  }
  return codecs_.Get(
      CodecKey(info.id, partition_size_bytes, dictionary_hash,
               symbol_table_hash),
      [&]() -> absl::StatusOr<std::shared_ptr<const StoredCodec>> {
        const auto context = std::make_shared<CodecContext>();
        if (dictionary_hash.has_value()) {
          QUIRE_ASSIGN_OR_RETURN(context->dictionary,
                                 GetDictionaryBytes(archive, *dictionary_hash));
        }
        if (symbol_table_hash.has_value()) {
          QUIRE_ASSIGN_OR_RETURN(
              context->symbol_table,
              GetSymbolTableBytes(archive, *symbol_table_hash));
        }
        absl::StatusOr<std::shared_ptr<const StoredCodec>> codec =
            StoredCodec::Make(info, partition_size_bytes, context);
        // The server's bytes do not fit the codec that it named.
        if (absl::IsInvalidArgument(codec.status())) {
          return absl::DataLossError(codec.status().message());
        }
        return codec;
      },
      [](const StoredCodec& codec) { return codec.MemoryBytes(); });
}

bool TableStore::HoldsDictionary(const CodecInfo& info, uint64_t hash) const {
  return codecs_.Has(CodecKey(info.id, 0, hash, std::nullopt)) ||
         directory_.MayHold(kDictionary, hash);
}

void TableStore::Describe(WireStats& stats) const {
  stats.table_count += decoders_.count();
  stats.dictionary_count += codecs_.count();
  stats.dictionary_memory_bytes += codecs_.cost();
  stats.fetched_size_bytes += fetched_size_bytes_;
}

}  // namespace quire
