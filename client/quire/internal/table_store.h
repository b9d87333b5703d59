// SPDX-License-Identifier: Apache-2.0
//
// Symbol tables, dictionaries and the decoders made from them, which a client
// needs to decode answers. Internal to the client library.
#ifndef QUIRE_CLIENT_QUIRE_INTERNAL_TABLE_STORE_H_
#define QUIRE_CLIENT_QUIRE_INTERNAL_TABLE_STORE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "client/quire/internal/fetch_once.h"
#include "client/quire/internal/table_directory.h"
#include "client/quire/wire_encoding.h"
#include "codecs/base/mutex.h"
#include "codecs/fsst/decode/fsst_decoder.h"
#include "codecs/payload/payload_codec.h"

namespace quire {

// Payload of the error of a table that the server withholds because documents
// of an archive with it were withdrawn.
inline constexpr absl::string_view kTableWithheldPayloadUrl =
    "quire/table-withheld";

// Source of missing tables; in a client, the server of the archive of an
// answer.
class TableSource {
 public:
  virtual ~TableSource() = default;

  // Fetches the bytes with this hash; does not verify them. Fails if they are
  // longer than `size_bytes_max`.
  // Errors: NotFound          no archive of the server uses the hash (any
  // more).
  //         PermissionDenied  withheld (IsWithdrawn()).
  virtual absl::StatusOr<std::string> FetchSymbolTable(
      absl::string_view archive, uint64_t hash, size_t size_bytes_max) = 0;
  virtual absl::StatusOr<std::string> FetchDictionary(
      absl::string_view archive, uint64_t hash, size_t size_bytes_max) = 0;
};

// A payload codec with its dictionary, and working memory for each thread that
// decodes at the same time. Thread-safe.
class StoredCodec {
 public:
  // Errors: as MakeBlockCodec().
  static absl::StatusOr<std::shared_ptr<const StoredCodec>> Make(
      const CodecInfo& info, uint32_t partition_size_bytes,
      std::shared_ptr<const CodecContext> context);

  // As PayloadCodec::DecodeRange().
  absl::Status DecodeRange(const Payload& payload, size_t raw_size,
                           size_t offset, MutableByteView out) const;

  // Size of dictionary and decoder, without working memory, which is a block or
  // two for each thread.
  size_t MemoryBytes() const;

 private:
  StoredCodec() = default;

  std::shared_ptr<const CodecContext> context_;
  std::unique_ptr<PayloadCodec> codec_;
  mutable Mutex mutex_;
  mutable std::vector<std::unique_ptr<PayloadCodec::Scratch>> free_
      ABSL_GUARDED_BY(mutex_);
};

struct TableStoreOptions {
  // For TableDirectory; empty: nothing is kept on disk.
  std::string directory = {};
  // Upper bound on a dictionary, and on all dictionaries in memory with their
  // decoders; the least recently used one is evicted first.
  size_t dictionary_size_bytes_max = size_t{256} << 20;
};

// Fetches each table once and keeps it, up to a thousand tables; dictionaries
// as TableStoreOptions defines. Thread-safe. Calls block during a fetch.
class TableStore {
 public:
  // `source` must outlive the store.
  TableStore(const TableStoreOptions& options, TableSource* source);

  // `archive` is one of those with the table.
  // Errors: DataLoss the server's bytes do not have this hash, or are not a
  // symbol table; and those of the source.
  absl::StatusOr<std::shared_ptr<const FsstDecoder>> GetFsstDecoder(
      absl::string_view archive, uint64_t hash);

  // Returns the decoder of blocks of `info`, with partitions of that size or 0,
  // and with the tables that an answer of `archive` names.
  // Errors: DataLoss           as above, or a hash is missing that the codec
  //                            needs.
  //         ResourceExhausted  the dictionary is over the limit; and those of
  //                            the source.
  absl::StatusOr<std::shared_ptr<const StoredCodec>> GetStoredCodec(
      absl::string_view archive, const CodecInfo& info,
      uint32_t partition_size_bytes, std::optional<uint64_t> dictionary_hash,
      std::optional<uint64_t> symbol_table_hash);

  // True if blocks can be decoded without fetching the dictionary: it is in
  // memory, or seems to be in the directory.
  bool HoldsDictionary(const CodecInfo& info, uint64_t hash) const;

  // Adds the memory in use to `stats`.
  void Describe(WireStats& stats) const;

 private:
  // Codec, partition size, dictionary, symbol table.
  using CodecKey = std::tuple<CodecId, uint32_t, std::optional<uint64_t>,
                              std::optional<uint64_t>>;

  absl::StatusOr<std::string> GetSymbolTableBytes(absl::string_view archive,
                                                  uint64_t hash);
  absl::StatusOr<std::string> GetDictionaryBytes(absl::string_view archive,
                                                 uint64_t hash);

  const TableStoreOptions options_;
  const TableDirectory directory_;
  TableSource* const source_;
  FetchOnce<uint64_t, FsstDecoder> decoders_;
  FetchOnce<CodecKey, StoredCodec> codecs_;
  std::atomic<uint64_t> fetched_size_bytes_ = 0;
};

}  // namespace quire

#endif  // QUIRE_CLIENT_QUIRE_INTERNAL_TABLE_STORE_H_
