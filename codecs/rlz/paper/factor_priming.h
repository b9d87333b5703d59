// SPDX-License-Identifier: Apache-2.0
//
// What RLZ-ZZ' primes its streams with ("Access Time Tradeoffs in Archive
// Compression", section 5, "Priming in RLZ-ZZ"): offsets and lengths of factors
// such as blocks will have. The paper stores them; here they follow from the
// dictionary alone, so that there is nothing to store.
//
// Its first part D0 has half of its bytes, rounded down, and 1 MiB at most.
// What follows, 1 MiB at most, is factorised against D0 as a block would be. Of
// the factors that are no literals those count that occur at least twice, each
// once, in order of how often, and where that is equal of where they occur
// first; of them the last 8192, which have 32 KiB of offsets.
#ifndef QUIRE_CODECS_RLZ_PAPER_FACTOR_PRIMING_H_
#define QUIRE_CODECS_RLZ_PAPER_FACTOR_PRIMING_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "codecs/base/bytes.h"

namespace quire {

// Immutable after Make(), hence thread-safe.
class FactorPriming {
 public:
  // Takes about 0.15 s for a large dictionary. `dictionary` must outlive the
  // result.
  // Errors: ResourceExhausted  not enough memory.
  static absl::StatusOr<std::unique_ptr<const FactorPriming>> Make(
      ByteView dictionary);

  // 32-bit little-endian integers.
  ByteView offsets() const { return AsBytes(offsets_); }

  // Varints.
  ByteView lengths() const { return AsBytes(lengths_); }

  // Of factors into the dictionary: where one's text is that of a factor in the
  // priming, gives it that one's offset. What a stream has had before costs it
  // less.
  void UseKnownOffsets(const std::vector<uint32_t>& lengths,
                       std::vector<uint32_t>& offsets) const;

  size_t MemoryBytes() const;

 private:
  explicit FactorPriming(ByteView dictionary) : dictionary_(dictionary) {}

  const ByteView dictionary_;
  std::string offsets_;
  std::string lengths_;
  // By their text, which lies in the dictionary.
  absl::flat_hash_map<absl::string_view, uint32_t> offset_of_text_;
};

}  // namespace quire

#endif  // QUIRE_CODECS_RLZ_PAPER_FACTOR_PRIMING_H_
