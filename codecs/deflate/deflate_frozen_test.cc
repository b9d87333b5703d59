// SPDX-License-Identifier: Apache-2.0
//
// Checks that the encoders' output for a text never changes, whatever libraries
// are installed: archives hold members as their text and need the same bytes
// years later. If this test fails, the change that broke it is wrong, or needs
// a new encoder id.
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "gtest/gtest.h"

#include "codecs/base/checksum.h"
#include "codecs/deflate/deflate_encoder.h"
#include "testing/base/status_matchers.h"

namespace quire {
namespace {

// Generated here, so that no other change can affect it: a linear congruence
// gives bytes, runs, words and repetitions of earlier text.
std::string FrozenText(uint64_t seed, size_t size) {
  uint64_t state = seed;
  const auto next = [&](uint64_t bound) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    return (state >> 33) % bound;
  };
  std::string text;
  while (text.size() < size) {
    const uint64_t kind = next(8);
    const uint64_t length = 1 + next(600);
    if (kind == 0) {
      for (uint64_t i = 0; i < length; ++i) {
        text += static_cast<char>(next(256));
      }
    } else if (kind == 1) {
      text.append(length, static_cast<char>(next(4)));
    } else if (kind < 6 || text.empty()) {
      for (uint64_t i = 0; i < length; ++i) {
        text += "etaoin shrdlu\n"[next(1 + next(14))];
      }
    } else {
      const std::string again = text.substr(next(text.size()), length);
      text += again;
    }
  }
  text.resize(size);
  return text;
}

uint64_t HashOfAll(DeflateParameters parameters,
                   const std::vector<std::string>& texts) {
  DeflateEncoder encoder;
  uint64_t hash = 0;
  for (const std::string& text : texts) {
    std::string stream;
    QUIRE_EXPECT_OK(
        encoder.Encode(parameters, AsBytes(text), [&](ByteView bytes) {
          stream.append(bytes.begin(), bytes.end());
          return true;
        }));
    hash = Checksum64(AsBytes(stream), hash);
  }
  return hash;
}

std::vector<std::string> FrozenTexts() {
  std::vector<std::string> texts;
  for (const size_t size : {size_t{0}, size_t{1}, size_t{5}, size_t{300},
                            size_t{20000}, size_t{150000}}) {
    texts.push_back(FrozenText(size + 1, size));
  }
  // Incompressible bytes: stored blocks.
  std::string noise;
  for (uint64_t state = 1; noise.size() < 80000;) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    noise += static_cast<char>(state >> 56);
  }
  texts.push_back(noise);
  return texts;
}

// Per level: zlib's usual bytes, those of other parameters, and gzip's.
struct Golden {
  uint64_t zlib;
  uint64_t zlib_others;
  uint64_t gzip;
};

constexpr std::array<Golden, 9> kGolden = {{
    {0x4d5c6da522b0b956, 0x5ccf14243b802085, 0x3edea69601de1d8f},
    {0x91a4b68da9bc7406, 0x711eec2a3cd57d83, 0x1e85c5f35ccb58b1},
    {0xde1be886ad64dc51, 0x77f7605be1de7dd3, 0xe110f95bf4c3a3f5},
    {0xcd42afef68d1bee5, 0xc3b390663324e0e9, 0xd4136b8be4bb6d7f},
    {0xd7193e7027894554, 0xab097ebeec622bb2, 0xb2c316bab07259a0},
    {0xfed342ff4132595d, 0x46dd6ac29a079361, 0x46ea63d2e9ef70a5},
    {0x6d60d1b497982ca0, 0x287a0ddf3107e6a7, 0xa75c23e277b5a73f},
    {0xf0467199354fc8e2, 0x52babb05f4685b6, 0xb29b484253503cf2},
    {0x52406896807b5299, 0xfdfa70ed2275d86a, 0xe27f3774067a09c7},
}};

TEST(DeflateFrozenTest, MakesWhatItAlwaysMade) {
  const std::vector<std::string> texts = FrozenTexts();
  for (size_t i = 0; i < kGolden.size(); ++i) {
    const auto level = static_cast<uint8_t>(i + 1);
    uint64_t others = 0;
    for (uint8_t memory_level = 1; memory_level <= 9; ++memory_level) {
      for (uint8_t window_bits = 9; window_bits <= 15; ++window_bits) {
        const auto strategy =
            static_cast<DeflateStrategy>((memory_level + window_bits) % 5);
        others = others * 31 + HashOfAll({.level = level,
                                          .memory_level = memory_level,
                                          .window_bits = window_bits,
                                          .strategy = strategy},
                                         texts);
      }
    }
    const Golden found = {
        HashOfAll({.level = level}, texts), others,
        HashOfAll({.encoder = DeflateEncoderId::kGzip, .level = level}, texts)};
    EXPECT_TRUE(found.zlib == kGolden[i].zlib &&
                found.zlib_others == kGolden[i].zlib_others &&
                found.gzip == kGolden[i].gzip)
        << "level " << i + 1 << std::hex << ": {0x" << found.zlib << ", 0x"
        << found.zlib_others << ", 0x" << found.gzip << "}";
  }
}

}  // namespace
}  // namespace quire
