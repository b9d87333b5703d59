// SPDX-License-Identifier: GPL-3.0-or-later
//
// The dictionary frame at the start of a .warc.zst: a skippable frame (RFC
// 8878, section 3.1.2) with magic number 0x184D2A5D that holds a zstd
// dictionary (section 5), plain or as one zstd frame. All frames after it are
// decoded with it.
#ifndef QUIRE_SERVER_INGEST_SOURCES_STREAMS_ZSTD_DICTIONARY_H_
#define QUIRE_SERVER_INGEST_SOURCES_STREAMS_ZSTD_DICTIONARY_H_

#include <zstd.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"

#include "codecs/base/bytes.h"
#include "server/ingest/sources/streams/byte_stream.h"

namespace quire {

// Upper bound on a dictionary, compressed and plain, and on the memory for it:
// about twice that while it is read.
inline constexpr size_t kZstdDictionarySizeBytesMax = size_t{16} << 20;

inline constexpr size_t kZstdMagicSizeBytes = 4;

// True if `bytes` begin a zstd frame.
bool IsZstdFrame(ByteView bytes);

// True if `bytes` begin a skippable frame. lz4 has the same ones.
bool IsSkippableFrame(ByteView bytes);

// Immutable, thread-safe.
class ZstdDictionary {
 public:
  // `contents` are those of the skippable frame, and are copied.
  // Errors: DataLoss  neither a zstd dictionary nor one in a zstd frame,
  //                   damaged, or larger than kZstdDictionarySizeBytesMax. The
  //                   message does not name the file: the caller knows it.
  //         ResourceExhausted  no memory.
  static absl::StatusOr<std::shared_ptr<const ZstdDictionary>> Parse(
      ByteView contents);

  const ZSTD_DDict* get() const { return dictionary_.get(); }

  // 0 if it has none.
  uint32_t id() const { return ZSTD_getDictID_fromDDict(get()); }

 private:
  struct Deleter {
    void operator()(ZSTD_DDict* dictionary) const {
      ZSTD_freeDDict(dictionary);
    }
  };

  explicit ZstdDictionary(ZSTD_DDict* dictionary) : dictionary_(dictionary) {}

  const std::unique_ptr<ZSTD_DDict, Deleter> dictionary_;
};

// Reads the dictionary frame at the start of `stream`; null if there is none.
// `name` is for messages.
// Errors: as ZstdDictionary::Parse(), with the name; DataLoss if the file ends
//   inside the frame; and those of `stream`.
absl::StatusOr<std::shared_ptr<const ZstdDictionary>> ReadZstdDictionary(
    ByteStream& stream, const std::string& name);

}  // namespace quire

#endif  // QUIRE_SERVER_INGEST_SOURCES_STREAMS_ZSTD_DICTIONARY_H_
