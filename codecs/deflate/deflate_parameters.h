// SPDX-License-Identifier: Apache-2.0
#ifndef QUIRE_CODECS_DEFLATE_DEFLATE_PARAMETERS_H_
#define QUIRE_CODECS_DEFLATE_DEFLATE_PARAMETERS_H_

#include <cstdint>
#include <optional>
#include <string>

namespace quire {

// The program whose output is reproduced. The numbers are stored in archives.
// The output of an encoder never changes: another output gets a number of its
// own.
enum class DeflateEncoderId : uint8_t {
  // zlib's deflate() for a whole text without flushes: a block ends after
  // 2^(memory level + 6) - 1 symbols.
  kZlib = 1,
  // The program gzip: blocks of up to 32,767 symbols, which from level 3 on may
  // end after each 4,096 where the text seems to compress well.
  kGzip = 2,
};

// zlib's strategies, with zlib's numbers.
enum class DeflateStrategy : uint8_t {
  kDefault = 0,
  // No matches of less than 6 bytes.
  kFiltered = 1,
  // No matches.
  kHuffmanOnly = 2,
  // Matches of distance 1 only.
  kRle = 3,
  // Fixed codes only.
  kFixed = 4,
};

// All other inputs to an encoder's output. The default is what most programs
// use.
struct DeflateParameters {
  DeflateEncoderId encoder = DeflateEncoderId::kZlib;
  uint8_t level = 6;                                     // 1 to 9
  uint8_t memory_level = 8;                              // 1 to 9; 8 for gzip
  uint8_t window_bits = 15;                              // 9 to 15; 15 for gzip
  DeflateStrategy strategy = DeflateStrategy::kDefault;  // kDefault for gzip

  bool operator==(const DeflateParameters&) const = default;
};

bool AreValid(const DeflateParameters& parameters);

// Upper bound on all codes, exclusive: 18 bits.
inline constexpr uint32_t kDeflateParametersCodeEnd = uint32_t{1} << 18;

// Returns valid parameters as one number, for storing.
// REQUIRES: AreValid(parameters).
uint32_t DeflateParametersCode(const DeflateParameters& parameters);

// The inverse; unset if no valid parameters have this code.
std::optional<DeflateParameters> DeflateParametersFromCode(uint32_t code);

// Returns a text for messages: "zlib level 6", "gzip level 9", "zlib level 9,
// memory level 9". Names only what differs from the default.
std::string DeflateParametersText(const DeflateParameters& parameters);

}  // namespace quire

#endif  // QUIRE_CODECS_DEFLATE_DEFLATE_PARAMETERS_H_
