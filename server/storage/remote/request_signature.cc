// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/storage/remote/request_signature.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <algorithm>
#include <array>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"

#include "codecs/base/check.h"
#include "server/storage/remote/store_address.h"

namespace quire {
namespace {

constexpr size_t kSha256SizeBytes = 32;
constexpr char kAlgorithm[] = "AWS4-HMAC-SHA256";

std::string Sha256(absl::string_view text) {
  std::string digest(kSha256SizeBytes, '\0');
  unsigned int size_bytes = 0;
  const int done = EVP_Digest(text.data(), text.size(),
                              reinterpret_cast<unsigned char*>(digest.data()),
                              &size_bytes, EVP_sha256(), nullptr);
  QUIRE_CHECK(done == 1 && size_bytes == kSha256SizeBytes,
              "OpenSSL has no SHA-256");
  return digest;
}

std::string Hmac(absl::string_view key, absl::string_view text) {
  std::string code(kSha256SizeBytes, '\0');
  unsigned int size_bytes = 0;
  const unsigned char* done =
      HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
           reinterpret_cast<const unsigned char*>(text.data()), text.size(),
           reinterpret_cast<unsigned char*>(code.data()), &size_bytes);
  QUIRE_CHECK(done != nullptr && size_bytes == kSha256SizeBytes,
              "OpenSSL has no HMAC with SHA-256");
  return code;
}

}  // namespace

std::string EncodeStoreQuery(const HttpQuery& query) {
  std::vector<std::string> parts;
  parts.reserve(query.size());
  for (const auto& [name, value] : query) {
    const auto encode = [](const std::string& text) {
      return absl::StrReplaceAll(EncodeStorePath(text), {{"/", "%2F"}});
    };
    parts.push_back(absl::StrCat(encode(name), "=", encode(value)));
  }
  std::sort(parts.begin(), parts.end());
  return absl::StrJoin(parts, "&");
}

HttpHeaders SignRequest(const UnsignedRequest& request,
                        const StoreCredentials& credentials,
                        absl::string_view region, absl::Time now) {
  const absl::TimeZone utc = absl::UTCTimeZone();
  const std::string time = absl::FormatTime("%Y%m%dT%H%M%SZ", now, utc);
  const std::string scope =
      absl::StrCat(time.substr(0, 8), "/", region, "/s3/aws4_request");
  const std::string body_hash = absl::BytesToHexString(Sha256(request.body));
  HttpHeaders headers = request.headers;
  headers.emplace_back("x-amz-content-sha256", body_hash);
  headers.emplace_back("x-amz-date", time);
  if (!credentials.session_token.empty()) {
    headers.emplace_back("x-amz-security-token", credentials.session_token);
  }
  HttpHeaders sorted = headers;
  sorted.emplace_back("host", request.host);
  for (auto& [name, value] : sorted) {
    absl::AsciiStrToLower(&name);
  }
  std::sort(sorted.begin(), sorted.end());
  std::string signed_names;
  std::string lines;
  for (const auto& [name, value] : sorted) {
    absl::StrAppend(&signed_names, signed_names.empty() ? "" : ";", name);
    absl::StrAppend(&lines, name, ":", value, "\n");
  }
  const std::string canonical = absl::StrCat(
      request.method, "\n", request.path, "\n", EncodeStoreQuery(request.query),
      "\n", lines, "\n", signed_names, "\n", body_hash);
  const std::string to_sign =
      absl::StrCat(kAlgorithm, "\n", time, "\n", scope, "\n",
                   absl::BytesToHexString(Sha256(canonical)));
  std::string key = absl::StrCat("AWS4", credentials.secret_access_key);
  for (const absl::string_view part :
       {absl::string_view(time).substr(0, 8), region, absl::string_view("s3"),
        absl::string_view("aws4_request")}) {
    key = Hmac(key, part);
  }
  headers.emplace_back(
      "Authorization",
      absl::StrCat(kAlgorithm, " Credential=", credentials.access_key_id, "/",
                   scope, ",SignedHeaders=", signed_names,
                   ",Signature=", absl::BytesToHexString(Hmac(key, to_sign))));
  return headers;
}

}  // namespace quire
