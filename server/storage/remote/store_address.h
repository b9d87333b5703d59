// SPDX-License-Identifier: GPL-3.0-or-later
//
// Where the files of an archive lie in an object store.
#ifndef QUIRE_SERVER_STORAGE_REMOTE_STORE_ADDRESS_H_
#define QUIRE_SERVER_STORAGE_REMOTE_STORE_ADDRESS_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace quire {

// True for text that begins with s3://, https:// or http://.
bool IsStoreUrl(absl::string_view text);

// An archive's location, and the parts of the requests for its objects.
struct StoreAddress {
  // "s3://BUCKET/PREFIX" or "https://HOST/PATH", without a slash at the end.
  std::string url;
  // Name of the drive: "s3://BUCKET" or "https://HOST". Archives of one drive
  // share a queue of reads.
  std::string drive;
  // True if requests are signed, as S3 needs it.
  bool is_s3 = false;
  // "https://HOST[:PORT]", and HOST[:PORT] as in the header Host: without the
  // default port of the scheme.
  std::string origin;
  std::string host;
  // Encoded path of the archive, beginning with a slash unless empty.
  std::string base_path;
  // Encoded path of the bucket, beginning with a slash unless empty; and the
  // archive's key in it, not encoded, with a slash at the end unless empty. Of
  // s3:// only.
  std::string bucket_path = {};
  std::string key_prefix = {};
  // Directory of MANIFEST below the path, with a slash at the end: that of a
  // part, whose other files are those of all parts; or empty.
  std::string manifest_directory = {};

  // Key of an object of the archive, not encoded.
  std::string KeyOf(absl::string_view object) const;

  // Encoded path of an object of the archive; of the address itself for "".
  std::string PathOf(absl::string_view object) const;

  std::string UrlOf(absl::string_view object) const {
    return origin + PathOf(object);
  }
};

// `endpoint` is for s3:// only: the URL of a store other than Amazon's, which
// has the bucket in the path, or empty. `region` selects Amazon's host. Without
// `may_be_part` a path that ends in parts/NAME is like any other.
// Errors: InvalidArgument  names the URL, what is wrong and what is expected.
absl::StatusOr<StoreAddress> ParseStoreAddress(absl::string_view url,
                                               absl::string_view endpoint,
                                               absl::string_view region,
                                               bool may_be_part = true);

// Percent-encodes all bytes except letters, digits, "-._~" and, between parts
// of a path, "/": the encoding that signatures of S3 need.
std::string EncodeStorePath(absl::string_view path);

}  // namespace quire

#endif  // QUIRE_SERVER_STORAGE_REMOTE_STORE_ADDRESS_H_
