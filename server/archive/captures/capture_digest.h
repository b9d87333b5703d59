// SPDX-License-Identifier: GPL-3.0-or-later
//
// Digests of captures: those of SHA-1, which most crawlers write, as 20 bytes.
#ifndef QUIRE_SERVER_ARCHIVE_CAPTURES_CAPTURE_DIGEST_H_
#define QUIRE_SERVER_ARCHIVE_CAPTURES_CAPTURE_DIGEST_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace quire {

// How a part states a digest. Never renumbered.
enum class CaptureDigestKind : uint8_t {
  kNone = 0,
  // "sha1:" and 32 characters of base32 in upper case.
  kSha1 = 1,
  // Any text.
  kText = 2,
};

inline constexpr size_t kSha1SizeBytes = 20;

using Sha1 = std::array<uint8_t, kSha1SizeBytes>;

// All functions are thread-safe.

// Returns the bytes of a digest of kind kSha1; nothing for other text.
std::optional<Sha1> ParseSha1Digest(absl::string_view digest);

// REQUIRES: `bytes` has kSha1SizeBytes.
std::string FormatSha1Digest(absl::string_view bytes);

}  // namespace quire

#endif  // QUIRE_SERVER_ARCHIVE_CAPTURES_CAPTURE_DIGEST_H_
