// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/storage/remote/store_address.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

#include "codecs/base/status_macros.h"

namespace quire {
namespace {

absl::Status BadUrl(absl::string_view url, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat("\"", url, "\": ", why));
}

bool IsUnreserved(char c) {
  return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '-' ||
         c == '.' || c == '_' || c == '~';
}

struct HttpUrl {
  std::string origin;
  std::string host;
  std::string path;
};

// Splits "https://HOST[:PORT][/PATH]", without slashes at the end.
absl::StatusOr<HttpUrl> SplitHttpUrl(absl::string_view url) {
  absl::string_view rest = url;
  absl::string_view scheme = "https://";
  if (!absl::ConsumePrefix(&rest, scheme)) {
    scheme = "http://";
    if (!absl::ConsumePrefix(&rest, scheme)) {
      return BadUrl(url, "expected https://HOST[:PORT]/PATH");
    }
  }
  const bool is_printable = std::all_of(rest.begin(), rest.end(), [](char c) {
    return absl::ascii_isgraph(static_cast<unsigned char>(c));
  });
  if (!is_printable) {
    return BadUrl(url,
                  "has spaces or bytes that are not ASCII; percent-encode "
                  "them");
  }
  if (rest.find_first_of("?#") != absl::string_view::npos) {
    return BadUrl(url, "has a query or fragment; expected a path only");
  }
  while (absl::ConsumeSuffix(&rest, "/")) {
  }
  const absl::string_view authority = rest.substr(0, rest.find('/'));
  // Clients leave the default port out of the header Host, which is signed.
  const absl::string_view host =
      absl::StripSuffix(authority, scheme == "https://" ? ":443" : ":80");
  if (host.find('@') != absl::string_view::npos) {
    return BadUrl(url, "has a user name; credentials do not belong in a URL");
  }
  if (host.empty() ||
      host.find_first_of("\"<>\\^`{|}") != absl::string_view::npos) {
    return BadUrl(url, "names no host; expected https://HOST[:PORT]/PATH");
  }
  return HttpUrl{.origin = absl::StrCat(scheme, host),
                 .host = std::string(host),
                 .path = std::string(rest.substr(authority.size()))};
}

// Name of the file that a part has for itself.
constexpr absl::string_view kManifest = "MANIFEST";

// Returns "parts/NAME/" if a key ends in "/parts/NAME", and shortens the key;
// otherwise an empty string.
std::string TakePart(absl::string_view& key) {
  const size_t name = key.rfind('/');
  constexpr absl::string_view kParts = "/parts";
  if (name == absl::string_view::npos ||
      !absl::EndsWith(key.substr(0, name), kParts)) {
    return "";
  }
  const std::string part =
      absl::StrCat(key.substr(name + 1 - kParts.size()), "/");
  key.remove_suffix(key.size() - (name - kParts.size()));
  return part;
}

bool IsBucketName(absl::string_view name) {
  return name.size() >= 3 && name.size() <= 63 &&
         std::all_of(name.begin(), name.end(),
                     [](char c) { return IsUnreserved(c) && c != '~'; });
}

}  // namespace

bool IsStoreUrl(absl::string_view text) {
  return absl::StartsWith(text, "s3://") ||
         absl::StartsWith(text, "https://") ||
         absl::StartsWith(text, "http://");
}

std::string EncodeStorePath(absl::string_view path) {
  constexpr char kDigits[] = "0123456789ABCDEF";
  std::string encoded;
  encoded.reserve(path.size());
  for (const char c : path) {
    if (IsUnreserved(c) || c == '/') {
      encoded.push_back(c);
    } else {
      const auto byte = static_cast<unsigned char>(c);
      encoded.push_back('%');
      encoded.push_back(kDigits[byte >> 4]);
      encoded.push_back(kDigits[byte & 15]);
    }
  }
  return encoded;
}

std::string StoreAddress::KeyOf(absl::string_view object) const {
  return absl::StrCat(key_prefix, object == kManifest ? manifest_directory : "",
                      object);
}

std::string StoreAddress::PathOf(absl::string_view object) const {
  if (object.empty()) {
    return base_path;
  }
  return absl::StrCat(
      base_path, "/",
      EncodeStorePath(
          absl::StrCat(object == kManifest ? manifest_directory : "", object)));
}

absl::StatusOr<StoreAddress> ParseStoreAddress(absl::string_view url,
                                               absl::string_view endpoint,
                                               absl::string_view region,
                                               bool may_be_part) {
  StoreAddress address;
  absl::string_view rest = url;
  while (absl::ConsumeSuffix(&rest, "/")) {
  }
  address.url = std::string(rest);
  if (!absl::ConsumePrefix(&rest, "s3://")) {
    QUIRE_ASSIGN_OR_RETURN(const HttpUrl parts, SplitHttpUrl(url));
    address.drive = parts.origin;
    address.origin = parts.origin;
    address.host = parts.host;
    address.base_path = parts.path;
    return address;
  }
  address.is_s3 = true;
  const absl::string_view bucket = rest.substr(0, rest.find('/'));
  if (!IsBucketName(bucket)) {
    return BadUrl(url,
                  "names no bucket; expected s3://BUCKET/PREFIX with a bucket "
                  "of 3 to 63 letters, digits, dots, dashes and underscores");
  }
  rest.remove_prefix(bucket.size());
  address.manifest_directory = may_be_part ? TakePart(rest) : "";
  const std::string key = EncodeStorePath(rest);
  address.key_prefix = rest.empty() ? "" : absl::StrCat(rest.substr(1), "/");
  address.drive = absl::StrCat("s3://", bucket);
  if (!endpoint.empty()) {
    absl::StatusOr<HttpUrl> parts = SplitHttpUrl(endpoint);
    if (!parts.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("--store-endpoint ", parts.status().message()));
    }
    address.origin = parts->origin;
    address.host = parts->host;
    address.bucket_path = absl::StrCat(parts->path, "/", bucket);
    address.base_path = absl::StrCat(address.bucket_path, key);
    return address;
  }
  // A certificate for *.s3 does not cover names with further dots.
  const bool in_path = bucket.find('.') != absl::string_view::npos;
  address.host = absl::StrCat(in_path ? "" : absl::StrCat(bucket, "."), "s3.",
                              region, ".amazonaws.com");
  address.origin = absl::StrCat("https://", address.host);
  address.bucket_path = in_path ? absl::StrCat("/", bucket) : "";
  address.base_path = absl::StrCat(address.bucket_path, key);
  return address;
}

}  // namespace quire
