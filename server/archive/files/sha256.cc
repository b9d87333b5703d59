// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/archive/files/sha256.h"

#include <openssl/evp.h>

#include "codecs/base/check.h"

namespace quire {

struct Sha256Summer::State {
  EVP_MD_CTX* context = EVP_MD_CTX_new();
};

Sha256Summer::Sha256Summer() : state_(std::make_unique<State>()) {
  QUIRE_CHECK(
      state_->context != nullptr &&
          EVP_DigestInit_ex(state_->context, EVP_sha256(), nullptr) == 1,
      "OpenSSL has no SHA-256");
}

Sha256Summer::~Sha256Summer() {
  EVP_MD_CTX_free(state_->context);
}

void Sha256Summer::Add(ByteView piece) {
  QUIRE_CHECK(
      EVP_DigestUpdate(state_->context, piece.data(), piece.size()) == 1,
      "OpenSSL cannot compute a SHA-256");
}

std::array<uint8_t, 32> Sha256Summer::Finish() {
  std::array<uint8_t, 32> digest = {};
  unsigned size = 0;
  QUIRE_CHECK(EVP_DigestFinal_ex(state_->context, digest.data(), &size) == 1 &&
                  size == digest.size(),
              "OpenSSL cannot compute a SHA-256");
  return digest;
}

}  // namespace quire
