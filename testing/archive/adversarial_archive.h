// SPDX-License-Identifier: GPL-3.0-or-later
//
// An archive within all limits of the format that takes as much memory for its
// size as possible; for tests only.
#ifndef QUIRE_TESTING_ARCHIVE_ADVERSARIAL_ARCHIVE_H_
#define QUIRE_TESTING_ARCHIVE_ADVERSARIAL_ARCHIVE_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

#include "server/archive/archive_writer.h"

namespace quire {

inline constexpr uint64_t kAdversarialMediaTypeCount = 200'000;
inline constexpr uint64_t kAdversarialLongIdCount = 8;

// Ordinal n below kAdversarialMediaTypeCount has the id "d" and the media type
// "t/" followed by n in decimal. The last kAdversarialLongIdCount documents
// have ids, media types and record types of the longest kind, all different.
// Takes some seconds. `replace` is as in ArchiveWriterOptions.
absl::StatusOr<ArchiveInfo> WriteAdversarialArchive(const std::string& path,
                                                    bool replace = false);

}  // namespace quire

#endif  // QUIRE_TESTING_ARCHIVE_ADVERSARIAL_ARCHIVE_H_
