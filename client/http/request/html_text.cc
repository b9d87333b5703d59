// SPDX-License-Identifier: Apache-2.0
#include "client/http/request/html_text.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"

#include "client/http/request/request_target.h"
#include "codecs/base/byte_size.h"
#include "codecs/base/printable_text.h"

namespace quire {
namespace {

// True if browsers change a path that ends with `id`.
bool IsResolved(absl::string_view id) {
  for (const absl::string_view segment : absl::StrSplit(id, '/')) {
    if (segment == "." || segment == "..") {
      return true;
    }
  }
  return false;
}

void AppendLink(const BrowsePage& page, const BrowseRow& row,
                std::string& html) {
  absl::StrAppend(&html, "<a href=\"", HtmlEscape(page.base_path),
                  HtmlEscape(row.link), "\">", HtmlEscape(row.name), "</a>");
}

}  // namespace

std::string HtmlEscape(absl::string_view text) {
  const std::string printable = PrintableText(text);
  return absl::StrReplaceAll(printable, {{"&", "&amp;"},
                                         {"<", "&lt;"},
                                         {">", "&gt;"},
                                         {"\"", "&quot;"},
                                         {"'", "&#39;"}});
}

std::string DocumentLink(absl::string_view root, absl::string_view kind,
                         absl::string_view id, absl::string_view uuid,
                         uint64_t ordinal) {
  return id.empty() || IsResolved(id)
             ? absl::StrCat(root, "@", uuid, "/ordinal/", ordinal)
             : absl::StrCat(root, "/", kind, "/",
                            PercentEncode(id, /*keeps_slashes=*/true));
}

std::string BrowseLink(absl::string_view archive, absl::string_view prefix) {
  return IsResolved(prefix)
             ? absl::StrCat("/browse/", archive, "/?prefix=",
                            PercentEncode(prefix, /*keeps_slashes=*/false))
             : absl::StrCat("/browse/", archive, "/",
                            PercentEncode(prefix, /*keeps_slashes=*/true));
}

std::string RenderBrowsePage(const BrowsePage& page) {
  std::string html = absl::StrCat(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<title>",
      HtmlEscape(page.title),
      "</title>\n<style>body{font-family:sans-serif;margin:2em}"
      "td{padding:0 1.5em 0 0}td.n{text-align:right}</style>\n<h1>");
  for (const BrowseRow& level : page.path) {
    AppendLink(page, level, html);
    html.push_back(' ');
  }
  html.append("</h1>\n<table>\n");
  for (const BrowseRow& row : page.rows) {
    html.append("<tr><td>");
    AppendLink(page, row, html);
    absl::StrAppend(&html, "</td><td class=\"n\">", HtmlEscape(row.size),
                    "</td><td>", HtmlEscape(row.time), "</td><td>",
                    HtmlEscape(row.media_type), "</td><td>");
    if (!row.record_link.empty()) {
      AppendLink(page, {.link = row.record_link, .name = "record"}, html);
    }
    html.append("</td></tr>\n");
  }
  html.append("</table>\n");
  if (page.withdrawn_count > 0) {
    absl::StrAppend(&html, "<p>",
                    FormatCounted(page.withdrawn_count, "withdrawn document is",
                                  "withdrawn documents are"),
                    " not shown</p>\n");
  }
  if (!page.next_link.empty()) {
    html.append("<p>");
    AppendLink(page, {.link = page.next_link, .name = "next page"}, html);
    html.append("</p>\n");
  }
  html.append("</html>\n");
  return html;
}

}  // namespace quire
