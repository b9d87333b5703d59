// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/archive/files/direct_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstdint>
#include <system_error>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

#include "codecs/base/status_macros.h"

namespace quire {
namespace {

absl::Status Refused(absl::string_view file, absl::string_view reason) {
  return absl::FailedPreconditionError(absl::StrCat(
      file, ": cannot be read past the page cache (O_DIRECT): ", reason));
}

// Kernels before 6.1 and many file systems do not report it: then a page, which
// suffices for all.
absl::StatusOr<uint32_t> AlignmentOf(int fd, absl::string_view file) {
#ifdef STATX_DIOALIGN
  struct statx status {};

  if (statx(fd, "", AT_EMPTY_PATH, STATX_DIOALIGN, &status) == 0 &&
      (status.stx_mask & STATX_DIOALIGN) != 0) {
    const uint32_t alignment_bytes =
        std::max(status.stx_dio_mem_align, status.stx_dio_offset_align);
    if (status.stx_dio_offset_align == 0) {
      return Refused(file, "the file system says so");
    }
    if (!std::has_single_bit(alignment_bytes) ||
        alignment_bytes > kDirectAlignmentBytesMax) {
      return Refused(file,
                     absl::StrCat("the file system asks for reads aligned to ",
                                  alignment_bytes, " bytes"));
    }
    return alignment_bytes;
  }
#else
  static_cast<void>(fd);
  static_cast<void>(file);
#endif
  return kDirectAlignmentBytesMax;
}

}  // namespace

absl::StatusOr<DirectFile> OpenDirect(int directory_fd, const std::string& name,
                                      absl::string_view file) {
  DirectFile direct;
  direct.fd =
      UniqueFd(openat(directory_fd, name.c_str(),
                      O_RDONLY | O_DIRECT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
  if (!direct.fd.is_open()) {
    return errno == EINVAL
               ? Refused(file, std::generic_category().message(errno))
               : ErrnoStatus(errno, file, "open");
  }
  QUIRE_ASSIGN_OR_RETURN(direct.alignment_bytes,
                         AlignmentOf(direct.fd.get(), file));
  alignas(kDirectAlignmentBytesMax) uint8_t page[kDirectAlignmentBytesMax];
  ssize_t size = 0;
  do {
    size = pread(direct.fd.get(), page, direct.alignment_bytes, 0);
  } while (size < 0 && errno == EINTR);
  if (size < 0) {
    return errno == EINVAL
               ? Refused(file, std::generic_category().message(errno))
               : ErrnoStatus(errno, file, "read");
  }
  return direct;
}

}  // namespace quire
