// SPDX-License-Identifier: Apache-2.0
//
// Members of a tar in the pax interchange format of POSIX.1-2001, which every
// tar program reads. Written here rather than by a library because ids are any
// bytes: they go into the headers as they are, whatever the locale.
#ifndef QUIRE_CLIENT_CLI_TAR_FORMAT_H_
#define QUIRE_CLIENT_CLI_TAR_FORMAT_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace quire {

// What goes before the bytes of a regular file. Names of more than 100 bytes or
// with bytes other than ASCII, sizes from 8 GiB and times that are not whole
// seconds from 1970 to 2242 are in a pax header; a name that is not UTF-8 is
// marked as binary there. Without a time the member is of 1970.
// Thread-safe. REQUIRES: `name` is a result of TarName().
std::string TarHeader(absl::string_view name, uint64_t size_bytes,
                      std::optional<int64_t> time_ms);

// What goes behind the bytes of a member. Thread-safe.
std::string TarPadding(uint64_t size_bytes);

// What ends a tar. Thread-safe.
std::string TarEnd();

// The name for an id: the id itself, but for what a tar cannot hold or what
// leads out of the directory that it is unpacked into. NUL bytes become "%00",
// a slash at the start or the end becomes "%2F", the dot that is or begins a
// component "." or ".." becomes "%2E", and the empty id "%". Thread-safe.
std::string TarName(absl::string_view id);

}  // namespace quire

#endif  // QUIRE_CLIENT_CLI_TAR_FORMAT_H_
