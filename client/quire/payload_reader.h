// SPDX-License-Identifier: Apache-2.0
//
// Reading pages of a crawl as a browser would have got them. A document of a
// crawl is a whole WARC record; Client::Read() and its like hand it out as it
// is, ReadPayload() what it carries.
#ifndef QUIRE_CLIENT_QUIRE_PAYLOAD_READER_H_
#define QUIRE_CLIENT_QUIRE_PAYLOAD_READER_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"

#include "proto/quire/v1/archive.pb.h"

#include "client/quire/client.h"
#include "client/quire/payload/payload_decoder.h"
#include "client/quire/read_target.h"

namespace quire {

struct PayloadOptions {
  // What a coded payload may decode to.
  uint64_t size_bytes_max = kPayloadSizeBytesMax;
  ReadOptions read = {};
};

// Where a payload comes from.
struct PayloadOrigin {
  // The document whose payload it is.
  v1::Document document;
  // The revisit that led to it: a record of a capture that found what an
  // earlier one had found already.
  std::optional<v1::Document> revisit = {};
  // Set if the newest capture is a revisit that refers to what the archive does
  // not hold: where it refers, for people. Then `document` is the newest
  // capture that the archive does hold.
  std::string unresolved = {};
  // Of the record and of HTTP; unset for a document that is no WARC record, or
  // no HTTP message.
  std::optional<WarcFields> warc = {};
  std::optional<HttpFields> http = {};
};

// Called before the first byte, also of an empty payload.
using PayloadOriginSink =
    absl::FunctionRef<absl::Status(const PayloadOrigin& origin)>;

// The payload of one record, in pieces, in bounded memory; see
// payload_decoder.h for what it is. A document that is no WARC record is handed
// out as it is. What `sink` has had is right even if the call fails.
//
// Where `key` names an id alone, or an id and a time, revisits count as
// responses; where the id has neither, a second call reads what
// DocumentKey::record_types says. Any revisit is followed to the record that it
// refers to: the newest of its WARC-Refers-To-Target-URI that is as old as its
// WARC-Refers-To-Date or has its WARC-Payload-Digest.
//
// Blocks; thread-safe as `client` is. REQUIRES: `key` names no part.
// Errors: NotFound  also: the named revisit refers to a record that the archive
//                   does not hold; the message says to which.
//         DataLoss  also: the payload is cut short or damaged.
//         Others as Client::ReadStream() and PayloadDecoder, and what the sinks
//         return.
absl::Status ReadPayload(Client& client, absl::string_view archive,
                         const DocumentKey& key, const PayloadOptions& options,
                         PayloadOriginSink on_origin, PayloadSink sink);

// Whether `status`, of ReadPayload(), says that the record has no whole
// payload: Client::Read() hands out the record itself. Thread-safe.
bool IsPayloadFault(const absl::Status& status);

}  // namespace quire

#endif  // QUIRE_CLIENT_QUIRE_PAYLOAD_READER_H_
