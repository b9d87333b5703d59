// SPDX-License-Identifier: Apache-2.0
//
// Names of archives, in requests and in the metadata that routes calls.
#ifndef QUIRE_CODECS_BASE_ARCHIVE_NAME_H_
#define QUIRE_CODECS_BASE_ARCHIVE_NAME_H_

#include <algorithm>
#include <cstddef>

#include "absl/strings/ascii.h"
#include "absl/strings/string_view.h"

namespace quire {

inline constexpr size_t kArchiveNameSizeMax = 128;

// Metadata of calls that name an archive: its name. Proxies route by it;
// servers do not read it.
inline constexpr char kArchiveMetadataKey[] = "quire-archive";

// Metadata of repeated calls: the number of attempts before, in a row, that
// ended with UNAVAILABLE, in decimal. The first attempt has none. Refusals by
// RESOURCE_EXHAUSTED or ARCHIVE_OPENING are not counted: the same server is to
// answer later.
// Proxies send other attempts to other servers; servers do not read it.
inline constexpr char kAttemptMetadataKey[] = "quire-attempt";

// True for names that archives may have: 1 to kArchiveNameSizeMax letters,
// digits, dots, underscores and dashes, all of which a header may hold. "." and
// ".." are none: a URL or a path with them is that of another place.
// Thread-safe.
inline bool IsArchiveName(absl::string_view name) {
  return !name.empty() && name.size() <= kArchiveNameSizeMax && name != "." &&
         name != ".." && std::all_of(name.begin(), name.end(), [](char c) {
           return absl::ascii_isalnum(static_cast<unsigned char>(c)) ||
                  c == '.' || c == '_' || c == '-';
         });
}

}  // namespace quire

#endif  // QUIRE_CODECS_BASE_ARCHIVE_NAME_H_
