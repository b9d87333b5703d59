// SPDX-License-Identifier: Apache-2.0
#include "loadtest/generator/http_get.h"

#include <curl/curl.h>

#include <array>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace quire {
namespace {

// What has come of a page.
struct Page {
  std::string text;
  size_t size_bytes_max = 0;
};

// Taking less than came makes curl fail with CURLE_WRITE_ERROR.
size_t TakePart(char* data, size_t /*always 1*/, size_t size_bytes,
                void* page_pointer) {
  Page& page = *static_cast<Page*>(page_pointer);
  if (size_bytes > page.size_bytes_max - page.text.size()) {
    return 0;
  }
  page.text.append(data, size_bytes);
  return size_bytes;
}

absl::StatusCode CodeOf(CURLcode code) {
  switch (code) {
    case CURLE_OPERATION_TIMEDOUT:
      return absl::StatusCode::kDeadlineExceeded;
    case CURLE_PARTIAL_FILE:
      return absl::StatusCode::kDataLoss;
    default:
      return absl::StatusCode::kUnavailable;
  }
}

}  // namespace

absl::Status CheckHttpUrl(const std::string& url) {
  const std::unique_ptr<CURLU, decltype(&curl_url_cleanup)> parsed(
      curl_url(), curl_url_cleanup);
  char* scheme = nullptr;
  const bool is_url =
      parsed != nullptr &&
      curl_url_set(parsed.get(), CURLUPART_URL, url.c_str(), 0) == CURLUE_OK &&
      curl_url_get(parsed.get(), CURLUPART_SCHEME, &scheme, 0) == CURLUE_OK;
  const bool is_http = is_url && absl::string_view(scheme) == "http";
  curl_free(scheme);
  return is_http ? absl::OkStatus()
                 : absl::InvalidArgumentError(absl::StrCat(
                       "a URL must be like http://host:port/path, got '", url,
                       "'"));
}

absl::StatusOr<std::string> HttpGet(const std::string& url,
                                    const HttpLimits& limits) {
  static const CURLcode started = curl_global_init(CURL_GLOBAL_DEFAULT);
  const std::unique_ptr<CURL, decltype(&curl_easy_cleanup)> curl(
      started == CURLE_OK ? curl_easy_init() : nullptr, curl_easy_cleanup);
  if (curl == nullptr) {
    return absl::ResourceExhaustedError("no memory for an HTTP request");
  }
  Page page{.text = {}, .size_bytes_max = limits.size_bytes_max};
  std::array<char, CURL_ERROR_SIZE> error = {};
  curl_easy_setopt(curl.get(), CURLOPT_URL, url.c_str());
  curl_easy_setopt(curl.get(), CURLOPT_PROTOCOLS_STR, "http");
  curl_easy_setopt(curl.get(), CURLOPT_NOPROXY, "*");
  curl_easy_setopt(curl.get(), CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl.get(), CURLOPT_TIMEOUT_MS,
                   static_cast<long>(limits.time_max.count()));
  curl_easy_setopt(curl.get(), CURLOPT_ERRORBUFFER, error.data());
  curl_easy_setopt(curl.get(), CURLOPT_WRITEFUNCTION, &TakePart);
  curl_easy_setopt(curl.get(), CURLOPT_WRITEDATA, &page);
  const CURLcode code = curl_easy_perform(curl.get());
  if (code == CURLE_WRITE_ERROR) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "the page is larger than ", limits.size_bytes_max, " bytes"));
  }
  if (code != CURLE_OK) {
    return absl::Status(CodeOf(code), error.front() == '\0'
                                          ? curl_easy_strerror(code)
                                          : error.data());
  }
  long status = 0;  // NOLINT(google-runtime-int): as curl has it.
  curl_easy_getinfo(curl.get(), CURLINFO_RESPONSE_CODE, &status);
  if (status != 200) {
    return absl::UnavailableError(
        absl::StrCat("the server answered with HTTP status ", status));
  }
  return std::move(page.text);
}

}  // namespace quire
