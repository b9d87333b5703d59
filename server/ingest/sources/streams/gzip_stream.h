// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef QUIRE_SERVER_INGEST_SOURCES_STREAMS_GZIP_STREAM_H_
#define QUIRE_SERVER_INGEST_SOURCES_STREAMS_GZIP_STREAM_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"

#include "server/ingest/sources/streams/byte_stream.h"

namespace quire {

// Returns the text of a gzip file (RFC 1952): a MemberStream, stricter than
// libarchive's reader, which neither verifies the checksums of members nor
// distinguishes garbage between them from the end. Zeros after the last member
// are skipped, as gzip does. `name` is for messages.
// Errors: ResourceExhausted  no memory for zlib.
absl::StatusOr<std::unique_ptr<ByteStream>> OpenGzipStream(
    std::unique_ptr<ByteStream> compressed, std::string name);

}  // namespace quire

#endif  // QUIRE_SERVER_INGEST_SOURCES_STREAMS_GZIP_STREAM_H_
