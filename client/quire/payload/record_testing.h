// SPDX-License-Identifier: Apache-2.0
//
// Records of crawls; for tests only.
#ifndef QUIRE_CLIENT_QUIRE_PAYLOAD_RECORD_TESTING_H_
#define QUIRE_CLIENT_QUIRE_PAYLOAD_RECORD_TESTING_H_

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace quire {

// A record of a WARC, with further header fields.
inline std::string Record(absl::string_view type, const std::string& block,
                          absl::string_view fields = "",
                          absl::string_view content_type = "application/http") {
  return absl::StrCat("WARC/1.1\r\nWARC-Type: ", type,
                      "\r\nContent-Type: ", content_type, "\r\n", fields,
                      "Content-Length: ", block.size(), "\r\n\r\n", block,
                      "\r\n\r\n");
}

inline std::string Response(absl::string_view fields, const std::string& body) {
  return Record("response",
                absl::StrCat("HTTP/1.1 200 OK\r\n", fields, "\r\n", body));
}

inline std::string ArcRecord(absl::string_view url, const std::string& block) {
  return absl::StrCat(url, " 1.2.3.4 20050622190850 text/html ", block.size(),
                      "\n", block, "\n");
}

}  // namespace quire

#endif  // QUIRE_CLIENT_QUIRE_PAYLOAD_RECORD_TESTING_H_
