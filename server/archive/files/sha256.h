// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef QUIRE_SERVER_ARCHIVE_FILES_SHA256_H_
#define QUIRE_SERVER_ARCHIVE_FILES_SHA256_H_

#include <array>
#include <cstdint>
#include <memory>

#include "codecs/base/bytes.h"

namespace quire {

// SHA-256 (FIPS 180-4) of bytes that come in pieces. Thread-compatible.
class Sha256Summer {
 public:
  Sha256Summer();
  ~Sha256Summer();
  Sha256Summer(const Sha256Summer&) = delete;
  Sha256Summer& operator=(const Sha256Summer&) = delete;

  void Add(ByteView piece);

  // Returns the digest of all pieces. At most once, after the last Add().
  std::array<uint8_t, 32> Finish();

 private:
  struct State;
  const std::unique_ptr<State> state_;
};

}  // namespace quire

#endif  // QUIRE_SERVER_ARCHIVE_FILES_SHA256_H_
