// SPDX-License-Identifier: Apache-2.0
//
// HTML of /browse: pages without scripts, of names that anybody may have
// chosen.
#ifndef QUIRE_CLIENT_HTTP_REQUEST_HTML_TEXT_H_
#define QUIRE_CLIENT_HTTP_REQUEST_HTML_TEXT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace quire {

// Returns `text` for use in HTML text and in attributes in double quotes:
// control characters and bytes that are not UTF-8 as PrintableText() writes
// them, then & < > " ' as entities. Thread-safe.
std::string HtmlEscape(absl::string_view text);

// Link to a document of an archive that stays valid in browsers, which resolve
// `.` and `..` in paths: by id, or by ordinal if the id has such a segment or
// is empty. `root` is "/v1/ARCHIVE", `kind` "page" or "doc"; ordinals are those
// of the contents `uuid`. Thread-safe.
std::string DocumentLink(absl::string_view root, absl::string_view kind,
                         absl::string_view id, absl::string_view uuid,
                         uint64_t ordinal);

// Link to the page of /browse for a prefix; as a parameter if the prefix has
// segments that browsers resolve. Thread-safe.
std::string BrowseLink(absl::string_view archive, absl::string_view prefix);

struct BrowseRow {
  std::string link = {};
  std::string name = {};
  // Empty for prefixes.
  std::string size = {};
  std::string time = {};
  std::string media_type = {};
  // Link to the unchanged record; empty: none.
  std::string record_link = {};
};

struct BrowsePage {
  // In front of all links; see ParseBasePath().
  std::string base_path = {};
  std::string title = {};
  // Links to the levels above, with their names.
  std::vector<BrowseRow> path = {};
  std::vector<BrowseRow> rows = {};
  // Link to the next page; empty: none.
  std::string next_link = {};
  // Documents without a row.
  uint64_t withdrawn_count = 0;
};

// Returns the page as HTML. Thread-safe.
std::string RenderBrowsePage(const BrowsePage& page);

}  // namespace quire

#endif  // QUIRE_CLIENT_HTTP_REQUEST_HTML_TEXT_H_
