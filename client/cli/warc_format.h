// SPDX-License-Identifier: Apache-2.0
//
// Records of a WARC (ISO 28500:2017, version 1.1) around documents that are not
// records already.
#ifndef QUIRE_CLIENT_CLI_WARC_FORMAT_H_
#define QUIRE_CLIENT_CLI_WARC_FORMAT_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

#include "proto/quire/v1/archive.pb.h"

namespace quire {

// What ends every record.
inline constexpr absl::string_view kWarcRecordEnd = "\r\n\r\n";

// A whole record of type `warcinfo` that describes an export of `archive`.
// Thread-safe.
std::string WarcInfoRecord(const v1::ArchiveDescription& archive,
                           int64_t now_ms);

// The header of a record of type `resource` whose block is the document; after
// the block goes kWarcRecordEnd. Its target is WarcTargetUri(), its date the
// document's time or, without one, `now_ms`, its type the document's or
// application/octet-stream. The record's id is derived from the archive's uuid
// and the ordinal, so that a second export gives the same. Thread-safe.
std::string WarcResourceHeader(const v1::ArchiveDescription& archive,
                               const v1::Document& document, int64_t now_ms);

// The id, if it begins as a URI does ("https://", "urn:", "dns:"), else
// "file:///" and the id. Bytes that a URI must not have become %XX; in ids that
// are no URIs also '%', '?', '#' and a slash at the front, so that the id can
// be had back. Thread-safe.
std::string WarcTargetUri(absl::string_view id);

}  // namespace quire

#endif  // QUIRE_CLIENT_CLI_WARC_FORMAT_H_
