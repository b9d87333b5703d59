// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef QUIRE_SERVER_INGEST_SOURCES_STREAMS_ZSTD_STREAM_H_
#define QUIRE_SERVER_INGEST_SOURCES_STREAMS_ZSTD_STREAM_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"

#include "server/ingest/sources/streams/byte_stream.h"
#include "server/ingest/sources/streams/zstd_dictionary.h"

namespace quire {

// Returns the text of all frames of a zstd file (RFC 8878): a MemberStream.
// Skippable frames have no text. Windows of up to `window_size_bytes_max`,
// rounded down to a power of two, are accepted, and take as much memory. Every
// frame is decoded with `dictionary`, if not null. `name` is for messages.
// Errors: ResourceExhausted  no memory.
absl::StatusOr<std::unique_ptr<ByteStream>> OpenZstdStream(
    std::unique_ptr<ByteStream> compressed, std::string name,
    std::shared_ptr<const ZstdDictionary> dictionary,
    uint64_t window_size_bytes_max);

}  // namespace quire

#endif  // QUIRE_SERVER_INGEST_SOURCES_STREAMS_ZSTD_STREAM_H_
