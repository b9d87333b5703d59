// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/ingest/sources/spool.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

#include "codecs/base/status_macros.h"
#include "server/archive/files/file_io.h"
#include "server/ingest/sources/input_limits.h"

namespace quire {
namespace {

// Waits until the non-blocking `fd` has input or ends.
absl::Status WaitForInput(int fd, const std::string& name) {
  pollfd waiting = {.fd = fd, .events = POLLIN, .revents = 0};
  if (poll(&waiting, 1, /*timeout=*/-1) < 0 && errno != EINTR) {
    return ErrnoStatus(errno, name, "wait for");
  }
  return absl::OkStatus();
}

}  // namespace

std::string SpoolDirectoryFor(std::string archive_path) {
  while (archive_path.size() > 1 && archive_path.back() == '/') {
    archive_path.pop_back();
  }
  const std::string directory =
      std::filesystem::path(archive_path).parent_path();
  return directory.empty() ? "." : directory;
}

absl::StatusOr<Spool> Spool::Create(const std::string& directory,
                                    std::string what) {
  QUIRE_ASSIGN_OR_RETURN(UniqueFd fd, CreateUnnamedFile(directory));
  return Spool(std::move(fd), directory, std::move(what));
}

absl::Status Spool::Append(ByteView bytes) {
  // Zeros become a hole if the file system supports it: a sparse file may hold
  // far more than the disk.
  if (std::all_of(bytes.begin(), bytes.end(),
                  [](uint8_t byte) { return byte == 0; })) {
    size_bytes_ += bytes.size();
    return absl::OkStatus();
  }
  while (!bytes.empty()) {
    const ssize_t written = pwrite(fd_.get(), bytes.data(), bytes.size(),
                                   static_cast<off_t>(size_bytes_));
    if (written >= 0) {
      bytes = bytes.subspan(static_cast<size_t>(written));
      size_bytes_ += static_cast<uint64_t>(written);
    } else if (errno != EINTR) {
      return ErrnoStatus(errno, directory_,
                         absl::StrCat("copy ", what_, " to"));
    }
  }
  return absl::OkStatus();
}

absl::Status Spool::ReadAt(uint64_t offset, MutableByteView out) const {
  while (!out.empty()) {
    const ssize_t got =
        pread(fd_.get(), out.data(), out.size(), static_cast<off_t>(offset));
    if (got == 0) {
      // Zeros at the end are not yet in the file.
      break;
    }
    if (got > 0) {
      out = out.subspan(static_cast<size_t>(got));
      offset += static_cast<uint64_t>(got);
    } else if (errno != EINTR) {
      return ErrnoStatus(errno, directory_,
                         absl::StrCat("read the copy of ", what_, " in"));
    }
  }
  std::ranges::fill(out, uint8_t{0});
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<const InputFile>> Spool::Finish(
    std::string name) && {
  // Sets the size of a file that ends in a hole.
  if (ftruncate(fd_.get(), static_cast<off_t>(size_bytes_)) != 0) {
    return ErrnoStatus(errno, directory_, absl::StrCat("copy ", what_, " to"));
  }
  return std::make_shared<const InputFile>(std::move(fd_), std::move(name));
}

absl::StatusOr<std::shared_ptr<const InputFile>> SpoolToUnnamedFile(
    int fd, const std::string& name, const std::string& directory,
    uint64_t size_bytes_max) {
  QUIRE_ASSIGN_OR_RETURN(Spool spool, Spool::Create(directory, name));
  std::vector<uint8_t> buffer(1 << 20);
  while (true) {
    const ssize_t got = read(fd, buffer.data(), buffer.size());
    if (got == 0) {
      break;
    }
    if (got > 0) {
      QUIRE_RETURN_IF_ERROR(
          spool.Append(ByteView(buffer).first(static_cast<size_t>(got))));
      if (spool.size_bytes() > size_bytes_max) {
        return InputTooLarge(absl::StrCat(name, ": has more bytes"),
                             size_bytes_max);
      }
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      QUIRE_RETURN_IF_ERROR(WaitForInput(fd, name));
    } else if (errno != EINTR) {
      return ErrnoStatus(errno, name, "read");
    }
  }
  return std::move(spool).Finish(name);
}

}  // namespace quire
