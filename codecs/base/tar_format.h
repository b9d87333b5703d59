// SPDX-License-Identifier: Apache-2.0
//
// Members of a tar in the pax interchange format of POSIX.1-2001, which every
// tar program reads. Written without a library because ids are any bytes: they
// go into the headers unchanged, in any locale.
#ifndef QUIRE_CODECS_BASE_TAR_FORMAT_H_
#define QUIRE_CODECS_BASE_TAR_FORMAT_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace quire {

// Returns the header of a regular file. Names of more than 100 bytes or with
// bytes other than ASCII, sizes from 8 GiB and times that are not whole seconds
// from 1970 to 2242 are in a pax header; a name that is not UTF-8 is marked
// there as binary. Without `time_ms` the time is 0. Thread-safe. REQUIRES:
// `name` is a result of TarName().
std::string TarHeader(absl::string_view name, uint64_t size_bytes,
                      std::optional<int64_t> time_ms);

// Returns the padding after the bytes of a member. Thread-safe.
std::string TarPadding(uint64_t size_bytes);

// Returns the end of a tar. Thread-safe.
std::string TarEnd();

// Returns the name for an id: the id, escaped where a tar cannot store it or
// where it would leave the directory of extraction. NUL bytes become "%00", a
// slash at the start or the end becomes "%2F", the dot that is or begins a
// component "." or ".." becomes "%2E", and the empty id "%". Thread-safe.
std::string TarName(absl::string_view id);

}  // namespace quire

#endif  // QUIRE_CODECS_BASE_TAR_FORMAT_H_
