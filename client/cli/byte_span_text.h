// SPDX-License-Identifier: Apache-2.0
//
// Sizes and ranges on the command line. Thread-safe.
#ifndef QUIRE_CLIENT_CLI_BYTE_SPAN_TEXT_H_
#define QUIRE_CLIENT_CLI_BYTE_SPAN_TEXT_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "client/quire/read_target.h"

namespace quire {

// As ParseByteSize(), naming what the size is of.
absl::StatusOr<uint64_t> ParseNamedSize(const char* name,
                                        const std::string& text);

// Parses OFFSET:LENGTH of --range. Errors: InvalidArgument.
absl::StatusOr<ByteSpan> ParsePart(absl::string_view text);

}  // namespace quire

#endif  // QUIRE_CLIENT_CLI_BYTE_SPAN_TEXT_H_
