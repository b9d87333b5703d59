// SPDX-License-Identifier: Apache-2.0
//
// Reads pages of a crawl as a browser would receive them. A document of a crawl
// is a whole WARC record: Client::Read() returns the record, ReadPayload() its
// payload.
#ifndef QUIRE_CLIENT_QUIRE_PAYLOAD_READER_H_
#define QUIRE_CLIENT_QUIRE_PAYLOAD_READER_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

#include "client/quire/client.h"
#include "client/quire/payload_search.h"
#include "client/quire/read_target.h"

namespace quire {

struct PayloadOptions {
  // Upper bound on the decoded size of a coded payload.
  uint64_t size_bytes_max = kPayloadSizeBytesMax;
  // A payload may take several calls; read.archive_uuid keeps them to the same
  // contents.
  ReadOptions read = {};
};

// Reads the payload of one record, in pieces, in bounded memory;
// payload_decoder.h defines it. A document that is not a WARC record is output
// unchanged. Bytes passed to `sink` are correct even if the call fails.
//
// If `key` has only an id, or an id and a time, revisits count as responses,
// and captures that are no pages are passed if the id has any other: redirects
// (3xx) and answers to HEAD, of which the newest kCapturesMax are tried.
// Otherwise one call reads a document, or a page. A revisit is followed to its
// target: the newest record of its WARC-Refers-To-Target-URI with the time of
// its WARC-Refers-To-Date or with its WARC-Payload-Digest.
//
// Blocks; thread-safe as `client` is. REQUIRES: `key` names no part.
// Errors: NotFound  also: the target of the named revisit is not in the
//                   archive; the message names it.
//         DataLoss  also: the payload is truncated or damaged.
//         Others as Client::ReadStream() and PayloadDecoder, and the results of
//         the sinks.
absl::Status ReadPayload(Client& client, absl::string_view archive,
                         const DocumentKey& key, const PayloadOptions& options,
                         PayloadOriginSink on_origin, PayloadSink sink);

}  // namespace quire

#endif  // QUIRE_CLIENT_QUIRE_PAYLOAD_READER_H_
