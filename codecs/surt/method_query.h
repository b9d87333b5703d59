// SPDX-License-Identifier: Apache-2.0
//
// Method and body of a request as arguments of its URL in an index of captures,
// so that answers are found by what was sent: "CDX entries for non-GET
// requests" of the IIPC, as cdxj-indexer -p and pywb write them.
#ifndef QUIRE_CODECS_SURT_METHOD_QUERY_H_
#define QUIRE_CODECS_SURT_METHOD_QUERY_H_

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"

namespace quire {

inline constexpr size_t kMethodSizeBytesMax = 32;
// Longest part of a query that comes from the body.
inline constexpr size_t kMethodQuerySizeBytesMax = 4096;
// Larger bodies of JSON and multipart forms are taken as if they had no type.
inline constexpr size_t kMethodBodySizeBytesMax = size_t{1} << 20;

// True for methods whose answers have other keys than those of GET: all others,
// of at most
// kMethodSizeBytesMax letters. So the empty answer to HEAD is not taken for the
// page; cdxj-indexer -p does this for POST and PUT only.
bool HasMethodKey(absl::string_view method);

// True for the methods that send a body: POST and PUT, in any case.
bool HasMethodQuery(absl::string_view method);

// Returns `url` with "__wb_method=METHOD" and the body's arguments added to its
// query: those of a form (application/x-www-form-urlencoded, multipart/),
// the values in JSON (application/json, text/plain) by the names of their
// members, and of any other body "__wb_post_data=" with its base64. At most
// kMethodQuerySizeBytesMax of the body's. AMF is not parsed. Thread-safe.
// `body` may end early, after kMethodBodySizeBytesMax.
std::string UrlWithMethod(absl::string_view url, absl::string_view method,
                          absl::string_view content_type,
                          absl::string_view body);

}  // namespace quire

#endif  // QUIRE_CODECS_SURT_METHOD_QUERY_H_
