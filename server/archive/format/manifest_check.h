// SPDX-License-Identifier: GPL-3.0-or-later
//
// The limits of a manifest, and what its numbers must have in common.
#ifndef QUIRE_SERVER_ARCHIVE_FORMAT_MANIFEST_CHECK_H_
#define QUIRE_SERVER_ARCHIVE_FORMAT_MANIFEST_CHECK_H_

#include "absl/status/status.h"

#include "server/archive/format/manifest.h"

namespace quire {

// Codec numbers of members fit into a byte.
inline constexpr int kMemberCountMax = 255;

// Checks a manifest that was read from a file, before its numbers are used for
// allocations and sums. Thread-safe.
// Errors: DataLoss            a number is out of range, or contradicts others.
//         FailedPrecondition  a codec or level not known here.
absl::Status CheckManifest(const Manifest& manifest);

}  // namespace quire

#endif  // QUIRE_SERVER_ARCHIVE_FORMAT_MANIFEST_CHECK_H_
