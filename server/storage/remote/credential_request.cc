// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/storage/remote/credential_request.h"

#include <arpa/inet.h>
#include <curl/curl.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <memory>
#include <thread>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

#include "codecs/base/check.h"

namespace quire {
namespace {

constexpr std::chrono::milliseconds kPause{1'000};
constexpr std::chrono::milliseconds kPauseStep{20};
constexpr int kServerError = 500;
constexpr int kTooManyCalls = 429;

// Those of Amazon's agents in containers.
constexpr std::array<absl::string_view, 4> kContainerHosts = {
    "169.254.170.2", "169.254.170.23", "fd00:ec2::23", "localhost"};

// Parts of a URL as libcurl, which will use it, understands them.
class UrlParts {
 public:
  explicit UrlParts(absl::string_view url) {
    is_good_ = url_ != nullptr &&
               curl_url_set(url_.get(), CURLUPART_URL, std::string(url).c_str(),
                            0) == CURLUE_OK;
  }

  // Empty if there is none.
  std::string Get(CURLUPart part) const {
    char* text = nullptr;
    if (!is_good_ || curl_url_get(url_.get(), part, &text, 0) != CURLUE_OK) {
      return "";
    }
    std::string copy = text;
    curl_free(text);
    return copy;
  }

 private:
  std::unique_ptr<CURLU, decltype(&curl_url_cleanup)> url_{curl_url(),
                                                           &curl_url_cleanup};
  bool is_good_ = false;
};

bool IsLoopback(const std::string& host) {
  in_addr four{};
  if (inet_pton(AF_INET, host.c_str(), &four) == 1) {
    return ntohl(four.s_addr) >> 24 == 127;
  }
  in6_addr six{};
  return inet_pton(AF_INET6, host.c_str(), &six) == 1 &&
         IN6_IS_ADDR_LOOPBACK(&six);
}

// One request. Used by libcurl's callbacks.
struct Exchange {
  const std::atomic<bool>& cancel;
  std::string body = {};
  bool is_too_large = false;
  std::array<char, CURL_ERROR_SIZE> error{};
};

size_t OnAnswerPart(char* bytes, size_t size, size_t count, void* exchange) {
  Exchange& to = *static_cast<Exchange*>(exchange);
  const size_t size_bytes = size * count;
  if (size_bytes > kCredentialAnswerSizeBytesMax - to.body.size()) {
    to.is_too_large = true;
    return 0;
  }
  to.body.append(bytes, size_bytes);
  return size_bytes;
}

int OnProgress(void* exchange, curl_off_t /*in_all*/, curl_off_t /*in*/,
               curl_off_t /*out_all*/, curl_off_t /*out*/) {
  return static_cast<Exchange*>(exchange)->cancel ? 1 : 0;
}

void SetRequest(CURL* easy, const CredentialRequest& request,
                const curl_slist* headers, Exchange& exchange) {
  const auto set = [easy](CURLoption option, auto value) {
    const CURLcode code = curl_easy_setopt(easy, option, value);
    QUIRE_CHECK(code == CURLE_OK, "libcurl refuses option ",
                static_cast<int>(option));
  };
  // NOLINTBEGIN(google-runtime-int): libcurl's type.
  set(CURLOPT_URL, request.url.c_str());
  set(CURLOPT_PATH_AS_IS, 1L);
  set(CURLOPT_HTTPHEADER, headers);
  set(CURLOPT_USERAGENT, "quired");
  set(CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
  set(CURLOPT_PROTOCOLS_STR, "http,https");
  set(CURLOPT_NOSIGNAL, 1L);
  set(CURLOPT_QUICK_EXIT, 1L);
  set(CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(request.time_max.count()));
  set(CURLOPT_TIMEOUT_MS, static_cast<long>(request.time_max.count()));
  set(CURLOPT_NOPROGRESS, 0L);
  if (!request.may_use_proxy) {
    set(CURLOPT_NOPROXY, "*");
  }
  if (request.method == CredentialRequest::Method::kPost) {
    set(CURLOPT_POSTFIELDSIZE, static_cast<long>(request.body.size()));
    set(CURLOPT_POSTFIELDS, request.body.c_str());
  } else if (request.method == CredentialRequest::Method::kPut) {
    // Without a body.
    set(CURLOPT_POSTFIELDSIZE, 0L);
    set(CURLOPT_POSTFIELDS, "");
    set(CURLOPT_CUSTOMREQUEST, "PUT");
  }
  // NOLINTEND(google-runtime-int)
  set(CURLOPT_XFERINFOFUNCTION, &OnProgress);
  set(CURLOPT_XFERINFODATA, &exchange);
  set(CURLOPT_WRITEFUNCTION, &OnAnswerPart);
  set(CURLOPT_WRITEDATA, &exchange);
  set(CURLOPT_ERRORBUFFER, exchange.error.data());
  // As Amazon's tools do. The environment does not change.
  // NOLINTNEXTLINE(concurrency-mt-unsafe)
  if (const char* ca_file = std::getenv("AWS_CA_BUNDLE"); ca_file != nullptr) {
    set(CURLOPT_CAINFO, ca_file);
  }
}

absl::StatusOr<CredentialAnswer> SendOnce(const CredentialRequest& request,
                                          const std::atomic<bool>& cancel) {
  const std::unique_ptr<CURL, decltype(&curl_easy_cleanup)> easy(
      curl_easy_init(), &curl_easy_cleanup);
  QUIRE_CHECK(easy != nullptr, "libcurl has no memory");
  curl_slist* list = nullptr;
  for (const auto& [name, value] : request.headers) {
    list = curl_slist_append(list, absl::StrCat(name, ": ", value).c_str());
  }
  if (request.method == CredentialRequest::Method::kPut) {
    // Not libcurl's, as there is no body.
    list = curl_slist_append(list, "Content-Type:");
  }
  const std::unique_ptr<curl_slist, decltype(&curl_slist_free_all)> headers(
      list, &curl_slist_free_all);
  Exchange exchange{.cancel = cancel};
  SetRequest(easy.get(), request, headers.get(), exchange);
  const CURLcode code = curl_easy_perform(easy.get());
  const std::string origin = OriginOf(request.url);
  if (exchange.is_too_large) {
    return absl::ResourceExhaustedError(
        absl::StrCat(origin, " answered more than ",
                     kCredentialAnswerSizeBytesMax, " bytes"));
  }
  if (code == CURLE_ABORTED_BY_CALLBACK) {
    return absl::CancelledError("the server stops");
  }
  curl_off_t connected_us = 0;
  curl_easy_getinfo(easy.get(), CURLINFO_CONNECT_TIME_T, &connected_us);
  if (code == CURLE_OPERATION_TIMEDOUT && connected_us > 0) {
    return absl::DeadlineExceededError(absl::StrCat(
        origin, " does not answer within ", request.time_max.count(), " ms"));
  }
  if (code != CURLE_OK) {
    return absl::UnavailableError(absl::StrCat(origin, " cannot be asked: ",
                                               exchange.error[0] != '\0'
                                                   ? exchange.error.data()
                                                   : curl_easy_strerror(code)));
  }
  long status = 0;  // NOLINT(google-runtime-int): libcurl's type.
  curl_easy_getinfo(easy.get(), CURLINFO_RESPONSE_CODE, &status);
  return CredentialAnswer{.status = static_cast<int>(status),
                          .body = std::move(exchange.body)};
}

// True if the same request may be answered otherwise in a second.
bool IsPassing(const absl::StatusOr<CredentialAnswer>& answer) {
  return answer.ok()
             ? answer->status >= kServerError || answer->status == kTooManyCalls
             : absl::IsUnavailable(answer.status()) ||
                   absl::IsDeadlineExceeded(answer.status());
}

}  // namespace

std::string OriginOf(absl::string_view url) {
  const UrlParts parts(url);
  const std::string port = parts.Get(CURLUPART_PORT);
  const std::string host = parts.Get(CURLUPART_HOST);
  return host.empty() ? ""
                      : absl::StrCat(parts.Get(CURLUPART_SCHEME), "://", host,
                                     port.empty() ? "" : ":", port);
}

bool IsContainerUrl(absl::string_view url) {
  const UrlParts parts(url);
  const std::string scheme = parts.Get(CURLUPART_SCHEME);
  const std::string bracketed = parts.Get(CURLUPART_HOST);
  absl::string_view host = bracketed;
  if (absl::ConsumePrefix(&host, "[")) {
    absl::ConsumeSuffix(&host, "]");
  }
  if (host.empty() || !parts.Get(CURLUPART_USER).empty() ||
      !parts.Get(CURLUPART_PASSWORD).empty()) {
    return false;
  }
  return scheme == "https" ||
         (scheme == "http" &&
          (IsLoopback(std::string(host)) ||
           std::find(kContainerHosts.begin(), kContainerHosts.end(), host) !=
               kContainerHosts.end()));
}

absl::StatusOr<CredentialAnswer> SendCredentialRequest(
    const CredentialRequest& request, const std::atomic<bool>& cancel) {
  absl::StatusOr<CredentialAnswer> answer = SendOnce(request, cancel);
  for (int i = 1; i < request.tries_max && IsPassing(answer); ++i) {
    for (auto waited = kPauseStep; waited < kPause && !cancel;
         waited += kPauseStep) {
      std::this_thread::sleep_for(kPauseStep);
    }
    answer = SendOnce(request, cancel);
  }
  return answer;
}

}  // namespace quire
