// SPDX-License-Identifier: Apache-2.0
//
// Digests of crawl records and their parts.
#ifndef QUIRE_CLIENT_CLI_RECORD_DIGEST_H_
#define QUIRE_CLIENT_CLI_RECORD_DIGEST_H_

#include <openssl/evp.h>

#include <array>
#include <cstdint>
#include <string>

#include "codecs/base/bytes.h"

namespace quire {

// A digest of bytes that are added in pieces. Thread-compatible.
class RecordDigest {
 public:
  // `algorithm` is EVP_sha1() or EVP_sha256().
  explicit RecordDigest(const EVP_MD* algorithm);
  ~RecordDigest();

  RecordDigest(const RecordDigest&) = delete;
  RecordDigest& operator=(const RecordDigest&) = delete;

  void Add(ByteView bytes);

  // Returns "sha1:ABC", in base 32, as WARC headers have it. Ends the digest.
  // REQUIRES: the algorithm is SHA-1.
  std::string Sha1Text();

  // Returns the first 16 bytes. Ends the digest.
  std::array<uint8_t, 16> Prefix();

 private:
  std::array<uint8_t, EVP_MAX_MD_SIZE> End();

  EVP_MD_CTX* const context_;
};

}  // namespace quire

#endif  // QUIRE_CLIENT_CLI_RECORD_DIGEST_H_
