// SPDX-License-Identifier: Apache-2.0
//
// Text of sizes and counts, the same in every program of the project.
#ifndef QUIRE_CODECS_BASE_BYTE_SIZE_H_
#define QUIRE_CODECS_BASE_BYTE_SIZE_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace quire {

inline constexpr uint64_t kKiB = uint64_t{1} << 10;
inline constexpr uint64_t kMiB = uint64_t{1} << 20;
inline constexpr uint64_t kGiB = uint64_t{1} << 30;

// Parses a size in bytes: digits, an optional fraction, and an optional unit:
// B, KiB, MiB, GiB, TiB (powers of 1024) or kB, MB, GB, TB (powers of 1000); K,
// M, G and T alone mean powers of 1024. Case-insensitive.
// Errors: InvalidArgument  another form, negative, not a whole number of bytes,
//                          or over 2^63 - 1.
absl::StatusOr<uint64_t> ParseByteSize(absl::string_view text);

// "64 KiB", "1.45 GiB", "1023 B": rounded to three significant digits, four
// from 1000 on, in the largest binary unit that gives 1 or more.
std::string FormatByteSize(uint64_t size_bytes);

// A form that ParseByteSize reads back exactly: "64KiB", "1500B".
std::string FormatByteSizeExact(uint64_t size_bytes);

// 1234567 as "1,234,567".
std::string FormatCount(uint64_t count);

// "1 block", "1,234 blocks", "0 blocks": the count with `one` or `many`.
std::string FormatCounted(uint64_t count, absl::string_view one,
                          absl::string_view many);

}  // namespace quire

#endif  // QUIRE_CODECS_BASE_BYTE_SIZE_H_
