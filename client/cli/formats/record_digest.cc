// SPDX-License-Identifier: Apache-2.0
#include "client/cli/formats/record_digest.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

#include "codecs/base/check.h"

namespace quire {
namespace {

constexpr size_t kSha1SizeBytes = 20;

// RFC 4648, of a size without padding.
std::string Base32(ByteView bytes) {
  constexpr absl::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
  std::string text;
  uint32_t bits = 0;
  int bit_count = 0;
  for (const uint8_t byte : bytes) {
    bits = (bits << 8) | byte;
    for (bit_count += 8; bit_count >= 5; bit_count -= 5) {
      text += kDigits[(bits >> (bit_count - 5)) & 31];
    }
  }
  return text;
}

}  // namespace

RecordDigest::RecordDigest(const EVP_MD* algorithm)
    : context_(EVP_MD_CTX_new()) {
  QUIRE_CHECK(context_ != nullptr &&
                  EVP_DigestInit_ex(context_, algorithm, nullptr) == 1,
              "OpenSSL lacks a digest");
}

RecordDigest::~RecordDigest() {
  EVP_MD_CTX_free(context_);
}

void RecordDigest::Add(ByteView bytes) {
  QUIRE_CHECK(EVP_DigestUpdate(context_, bytes.data(), bytes.size()) == 1,
              "a digest failed");
}

std::array<uint8_t, EVP_MAX_MD_SIZE> RecordDigest::End() {
  std::array<uint8_t, EVP_MAX_MD_SIZE> hash = {};
  QUIRE_CHECK(EVP_DigestFinal_ex(context_, hash.data(), nullptr) == 1,
              "a digest failed");
  return hash;
}

std::string RecordDigest::Sha1Text() {
  const std::array<uint8_t, EVP_MAX_MD_SIZE> hash = End();
  return absl::StrCat("sha1:", Base32(ByteView(hash).first(kSha1SizeBytes)));
}

std::array<uint8_t, 16> RecordDigest::Prefix() {
  const std::array<uint8_t, EVP_MAX_MD_SIZE> hash = End();
  std::array<uint8_t, 16> prefix = {};
  std::copy_n(hash.begin(), prefix.size(), prefix.begin());
  return prefix;
}

}  // namespace quire
