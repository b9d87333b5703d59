// SPDX-License-Identifier: Apache-2.0
#include "client/http/request/content_headers.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace quire {
namespace {

constexpr size_t kContentTypeSizeMax = 256;
constexpr const char* kPageRules =
    "sandbox; default-src 'none'; style-src 'self' 'unsafe-inline'; img-src "
    "'self' data:; font-src 'self' data:; media-src 'self'";

// Types that browsers show, by the suffix of a name.
constexpr std::pair<absl::string_view, const char*> kMediaTypes[] = {
    {"css", "text/css"},
    {"csv", "text/csv; charset=utf-8"},
    {"gif", "image/gif"},
    {"htm", "text/html"},
    {"html", "text/html"},
    {"jpeg", "image/jpeg"},
    {"jpg", "image/jpeg"},
    {"js", "text/javascript"},
    {"json", "application/json"},
    {"log", "text/plain; charset=utf-8"},
    {"md", "text/plain; charset=utf-8"},
    {"pdf", "application/pdf"},
    {"png", "image/png"},
    {"svg", "image/svg+xml"},
    {"txt", "text/plain; charset=utf-8"},
    {"webp", "image/webp"},
    {"xml", "application/xml"}};

}  // namespace

bool IsHttpToken(absl::string_view text) {
  static constexpr absl::string_view kMarks = "!#$%&'*+-.^_`|~";
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) ||
           kMarks.find(c) != absl::string_view::npos;
  });
}

bool IsContentType(absl::string_view text) {
  const absl::string_view essence =
      absl::StripAsciiWhitespace(text.substr(0, text.find(';')));
  const size_t slash = essence.find('/');
  return text.size() <= kContentTypeSizeMax &&
         slash != absl::string_view::npos &&
         IsHttpToken(essence.substr(0, slash)) &&
         IsHttpToken(essence.substr(slash + 1)) &&
         std::all_of(text.begin(), text.end(),
                     [](char c) { return c >= ' ' && c <= '~'; });
}

std::string DocumentMediaType(absl::string_view media_type,
                              absl::string_view id) {
  if (IsContentType(media_type)) {
    return std::string(media_type);
  }
  const size_t dot = id.rfind('.');
  if (dot != absl::string_view::npos) {
    for (const auto& [suffix, type] : kMediaTypes) {
      if (absl::EqualsIgnoreCase(id.substr(dot + 1), suffix)) {
        return type;
      }
    }
  }
  return "application/octet-stream";
}

void AddCaching(const HttpRequest& request, Answer& answer) {
  const char* const age =
      request.target.uuid.empty() ? "no-cache" : "max-age=604800";
  answer.headers.emplace_back("Cache-Control",
                              request.headers.authorization.empty()
                                  ? age
                                  : absl::StrCat("private, ", age));
}

void AddContentHeaders(const HttpRequest& request, absl::string_view etag,
                       Answer& answer) {
  answer.headers.reserve(10);
  if (!etag.empty()) {
    answer.headers.emplace_back("ETag", std::string(etag));
  }
  AddCaching(request, answer);
  answer.headers.emplace_back("Content-Security-Policy", kPageRules);
  answer.headers.emplace_back("X-Content-Type-Options", "nosniff");
  answer.headers.emplace_back("Referrer-Policy", "no-referrer");
}

Answer UnsatisfiableRange(uint64_t size_bytes) {
  Answer answer = TextAnswer(
      416, absl::StrCat("no single range within ", size_bytes, " bytes"));
  answer.headers.emplace_back("Content-Range",
                              absl::StrCat("bytes */", size_bytes));
  answer.headers.emplace_back("Accept-Ranges", "bytes");
  return answer;
}

absl::Status MemoryExhausted() {
  return absl::ResourceExhaustedError(
      "the memory of the gateway (--memory) is in use; try again later");
}

}  // namespace quire
