// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/archive/captures/capture_digest.h"

#include "absl/strings/strip.h"

namespace quire {
namespace {

constexpr absl::string_view kPrefix = "sha1:";
constexpr absl::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
constexpr size_t kDigitCount = kSha1SizeBytes * 8 / 5;

}  // namespace

std::optional<Sha1> ParseSha1Digest(absl::string_view digest) {
  if (!absl::ConsumePrefix(&digest, kPrefix) || digest.size() != kDigitCount) {
    return std::nullopt;
  }
  Sha1 bytes = {};
  uint32_t bits = 0;
  int bit_count = 0;
  size_t size = 0;
  for (const char c : digest) {
    const size_t digit = kDigits.find(c);
    if (digit == kDigits.npos) {
      return std::nullopt;
    }
    bits = (bits << 5 | static_cast<uint32_t>(digit)) & 0xFFF;
    bit_count += 5;
    if (bit_count >= 8) {
      bit_count -= 8;
      bytes[size++] = static_cast<uint8_t>(bits >> bit_count);
    }
  }
  return bytes;
}

std::string FormatSha1Digest(absl::string_view bytes) {
  std::string digest(kPrefix);
  uint32_t bits = 0;
  int bit_count = 0;
  for (const char c : bytes) {
    bits = (bits << 8 | static_cast<uint8_t>(c)) & 0xFFF;
    bit_count += 8;
    while (bit_count >= 5) {
      bit_count -= 5;
      digest.push_back(kDigits[bits >> bit_count & 0x1F]);
    }
  }
  return digest;
}

}  // namespace quire
