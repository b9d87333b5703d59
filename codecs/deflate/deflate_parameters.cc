// SPDX-License-Identifier: Apache-2.0
#include "codecs/deflate/deflate_parameters.h"

#include "absl/strings/str_cat.h"

#include "codecs/base/check.h"

namespace quire {
namespace {

constexpr uint8_t kLevelMax = 9;
constexpr uint8_t kMemoryLevelMax = 9;
constexpr uint8_t kWindowBitsMin = 9;
constexpr uint8_t kWindowBitsMax = 15;
constexpr uint8_t kMemoryLevelDefault = 8;

// Shifts of the fields of a code, from the lowest bit on.
constexpr unsigned kLevelShift = 4;
constexpr unsigned kMemoryLevelShift = 8;
constexpr unsigned kWindowShift = 12;
constexpr unsigned kStrategyShift = 15;

const char* StrategyName(DeflateStrategy strategy) {
  switch (strategy) {
    case DeflateStrategy::kDefault:
      return "default";
    case DeflateStrategy::kFiltered:
      return "filtered";
    case DeflateStrategy::kHuffmanOnly:
      return "Huffman only";
    case DeflateStrategy::kRle:
      return "RLE";
    case DeflateStrategy::kFixed:
      return "fixed";
  }
  return "unknown";
}

}  // namespace

bool AreValid(const DeflateParameters& parameters) {
  const bool in_range = parameters.level >= 1 &&
                        parameters.level <= kLevelMax &&
                        parameters.memory_level >= 1 &&
                        parameters.memory_level <= kMemoryLevelMax &&
                        parameters.window_bits >= kWindowBitsMin &&
                        parameters.window_bits <= kWindowBitsMax &&
                        parameters.strategy >= DeflateStrategy::kDefault &&
                        parameters.strategy <= DeflateStrategy::kFixed;
  if (!in_range) {
    return false;
  }
  switch (parameters.encoder) {
    case DeflateEncoderId::kZlib:
      return true;
    case DeflateEncoderId::kGzip:
      return parameters.memory_level == kMemoryLevelDefault &&
             parameters.window_bits == kWindowBitsMax &&
             parameters.strategy == DeflateStrategy::kDefault;
  }
  return false;
}

uint32_t DeflateParametersCode(const DeflateParameters& parameters) {
  QUIRE_CHECK(AreValid(parameters));
  return static_cast<uint32_t>(parameters.encoder) |
         uint32_t{parameters.level} << kLevelShift |
         uint32_t{parameters.memory_level} << kMemoryLevelShift |
         (uint32_t{parameters.window_bits} - kWindowBitsMin) << kWindowShift |
         static_cast<uint32_t>(parameters.strategy) << kStrategyShift;
}

std::optional<DeflateParameters> DeflateParametersFromCode(uint32_t code) {
  if (code >= kDeflateParametersCodeEnd) {
    return std::nullopt;
  }
  const DeflateParameters parameters = {
      .encoder = static_cast<DeflateEncoderId>(code & 15),
      .level = static_cast<uint8_t>(code >> kLevelShift & 15),
      .memory_level = static_cast<uint8_t>(code >> kMemoryLevelShift & 15),
      .window_bits =
          static_cast<uint8_t>((code >> kWindowShift & 7) + kWindowBitsMin),
      .strategy = static_cast<DeflateStrategy>(code >> kStrategyShift & 7)};
  if (!AreValid(parameters)) {
    return std::nullopt;
  }
  return parameters;
}

std::string DeflateParametersText(const DeflateParameters& parameters) {
  const DeflateParameters usual;
  std::string text = absl::StrCat(
      parameters.encoder == DeflateEncoderId::kGzip ? "gzip" : "zlib",
      " level ", parameters.level);
  if (parameters.memory_level != usual.memory_level) {
    absl::StrAppend(&text, ", memory level ", parameters.memory_level);
  }
  if (parameters.window_bits != usual.window_bits) {
    absl::StrAppend(&text, ", window bits ", parameters.window_bits);
  }
  if (parameters.strategy != usual.strategy) {
    absl::StrAppend(&text, ", strategy ", StrategyName(parameters.strategy));
  }
  return text;
}

}  // namespace quire
