// SPDX-License-Identifier: Apache-2.0
//
// WARC records (ISO 28500:2017, version 1.1) for documents that are not
// records of a WARC.
#ifndef QUIRE_CLIENT_CLI_WARC_FORMAT_H_
#define QUIRE_CLIENT_CLI_WARC_FORMAT_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

#include "proto/quire/v1/archive.pb.h"

namespace quire {

// End of every record.
inline constexpr absl::string_view kWarcRecordEnd = "\r\n\r\n";

// Returns the WARC-Record-ID of the record that a document becomes: derived
// from the archive's uuid and the ordinal, so that exports are reproducible.
// Thread-safe.
std::string WarcRecordId(const v1::ArchiveDescription& archive,
                         const v1::Document& document);

// Returns a record of type `warcinfo` that describes an export of `archive`.
// Thread-safe.
std::string WarcInfoRecord(const v1::ArchiveDescription& archive,
                           int64_t now_ms);

// Returns the header of a record of type `resource` whose block is the
// document; kWarcRecordEnd follows the block. Its target is WarcTargetUri().
// Its date is the document's time, or else `now_ms`. Its media type is the
// document's, or else application/octet-stream. Its id is WarcRecordId().
// Thread-safe.
std::string WarcResourceHeader(const v1::ArchiveDescription& archive,
                               const v1::Document& document, int64_t now_ms);

// Returns the id if it begins like a URI ("https://", "urn:", "dns:"), else
// "file:///" and the id. Bytes that a URI must not have become %XX. In ids that
// are not URIs so do '%', '?', '#' and a slash at the front, so that the id can
// be recovered. Thread-safe.
std::string WarcTargetUri(absl::string_view id);

}  // namespace quire

#endif  // QUIRE_CLIENT_CLI_WARC_FORMAT_H_
