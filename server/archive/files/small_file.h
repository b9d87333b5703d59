// SPDX-License-Identifier: GPL-3.0-or-later
//
// Files written by users: certificates, keys, tokens, rules.
#ifndef QUIRE_SERVER_ARCHIVE_FILES_SMALL_FILE_H_
#define QUIRE_SERVER_ARCHIVE_FILES_SMALL_FILE_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace quire {

// Returns all of a file, or of a pipe to its end.
// Errors: FailedPrecondition  cannot be read, or has more than
//                             `size_bytes_max`; the message names the file.
absl::StatusOr<std::string> ReadSmallFile(const std::string& path,
                                          uint64_t size_bytes_max);

}  // namespace quire

#endif  // QUIRE_SERVER_ARCHIVE_FILES_SMALL_FILE_H_
