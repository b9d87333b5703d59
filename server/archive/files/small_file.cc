// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/archive/files/small_file.h"

#include <array>
#include <cerrno>
#include <cstddef>
#include <fstream>
#include <system_error>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

#include "codecs/base/byte_size.h"

namespace quire {

absl::StatusOr<std::string> ReadSmallFile(const std::string& path,
                                          uint64_t size_bytes_max) {
  std::ifstream in(path, std::ios::binary);
  std::string text;
  std::array<char, size_t{64} << 10> buffer;
  while (in && text.size() <= size_bytes_max) {
    in.read(buffer.data(), buffer.size());
    text.append(buffer.data(), static_cast<size_t>(in.gcount()));
  }
  if (text.size() > size_bytes_max) {
    return absl::FailedPreconditionError(
        absl::StrCat(path, ": must have at most ",
                     FormatByteSize(size_bytes_max), ", and is larger"));
  }
  if (in.bad() || !in.eof()) {
    return absl::FailedPreconditionError(absl::StrCat(
        path, ": cannot be read: ", std::generic_category().message(errno)));
  }
  return text;
}

}  // namespace quire
