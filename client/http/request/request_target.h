// SPDX-License-Identifier: Apache-2.0
//
// Request targets of the gateway (RFC 9112, section 3.2): which resource a path
// and a query name. Nothing is normalised: `//`, `.` and `..` are bytes of ids.
#ifndef QUIRE_CLIENT_HTTP_REQUEST_REQUEST_TARGET_H_
#define QUIRE_CLIENT_HTTP_REQUEST_REQUEST_TARGET_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "client/http/request/cdx_query.h"

namespace quire {

enum class Resource {
  kArchives,        // /v1/
  kArchive,         // /v1/A
  kDocument,        // /v1/A/doc/ID and /v1/A/ordinal/N
  kPage,            // /v1/A/page/ID
  kSpace,           // /v1/A/space
  kList,            // /v1/A/list
  kCaptures,        // /v1/A/cdx and /v1/A,B/cdx
  kDeposit,         // /v1/A/file/PATH
  kBrowseArchives,  // /browse/
  kBrowse,          // /browse/A/PREFIX
  kFile,            // /files/NAME
};

// An archive in a target, as RequestTarget has the first.
struct NamedArchive {
  std::string name;
  std::string uuid;
};

struct RequestTarget {
  Resource resource = Resource::kArchives;
  // Empty for the lists of archives and for files.
  std::string archive;
  // From "A@UUID": only these contents. Empty: the current ones.
  std::string uuid;
  // Decoded id of a document or page, prefix of a list, name of a file, or path
  // of a deposited file; any bytes.
  std::string id;
  // Set instead of `id` by /ordinal/N.
  std::optional<uint64_t> ordinal;

  // Query of documents and pages; see DocumentKey.
  std::optional<int64_t> at_time_ms;
  std::vector<std::string> record_types;
  std::optional<uint64_t> occurrence;

  // Query of lists.
  std::string delimiter;
  // At least 1.
  std::optional<uint32_t> limit;
  // Opaque; empty: from the start.
  std::string token;
  // Names of fields to show, each once.
  std::vector<std::string> fields;
  // A filter of codecs/filter/filter.h, well-formed.
  std::optional<std::string> where;

  // Set for kCaptures: all archives, `archive` first, and the query.
  std::vector<NamedArchive> archives;
  CdxQuery cdx;
};

// Parses the target of a request line, as received. Names in queries are those
// of docs/http.md; `+` means a space there. Thread-safe.
// Errors: NotFound         no resource has this path.
//         InvalidArgument  a malformed escape, or a malformed, repeated or
//                          unknown parameter.
absl::StatusOr<RequestTarget> ParseRequestTarget(absl::string_view raw);

// True for texts that may be uuids of archives. Thread-safe.
bool IsArchiveUuid(absl::string_view text);

// Parses the path below which a proxy serves the gateway: "/archives", without
// a slash at the end; "" and "/" are none. Letters, digits and -._~ only, so
// that it may stand in links. Thread-safe. Errors: InvalidArgument  another
// form.
absl::StatusOr<std::string> ParseBasePath(absl::string_view text);

// Returns `text` with each %XX as its byte.
// Errors: InvalidArgument  a % without two hex digits.
absl::StatusOr<std::string> PercentDecode(absl::string_view text);

// Returns `bytes` with all bytes except letters, digits and -._~ as %XX; `/`
// also stays if `keeps_slashes`.
std::string PercentEncode(absl::string_view bytes, bool keeps_slashes);

// Host of a target in absolute form ("http://HOST:PORT/path"), which clients of
// proxies send: removes scheme and authority from `raw` and returns the
// authority; nullopt for other forms.
std::optional<absl::string_view> TakeAuthority(absl::string_view& raw);

}  // namespace quire

#endif  // QUIRE_CLIENT_HTTP_REQUEST_REQUEST_TARGET_H_
