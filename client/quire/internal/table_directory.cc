// SPDX-License-Identifier: Apache-2.0
#include "client/quire/internal/table_directory.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include "codecs/base/bytes.h"
#include "codecs/base/checksum.h"

namespace quire {
namespace {

// Closes a file when it goes out of scope.
class OpenFile {
 public:
  explicit OpenFile(int fd) : fd_(fd) {}

  ~OpenFile() {
    if (fd_ >= 0) {
      close(fd_);
    }
  }

  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;

  int fd() const { return fd_; }

 private:
  const int fd_;
};

bool ReadAll(int fd, std::string& bytes) {
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t size = read(fd, bytes.data() + done, bytes.size() - done);
    if (size > 0) {
      done += static_cast<size_t>(size);
    } else if (size == 0 || errno != EINTR) {
      return false;
    }
  }
  return true;
}

bool WriteAll(int fd, absl::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t size = write(fd, bytes.data(), bytes.size());
    if (size >= 0) {
      bytes.remove_prefix(static_cast<size_t>(size));
    } else if (errno != EINTR) {
      return false;
    }
  }
  return true;
}

void MakeDirectory(const std::string& path) {
  if (mkdir(path.c_str(), 0700) == 0 || errno != ENOENT) {
    return;
  }
  // For example a missing ~/.cache.
  const size_t slash = path.rfind('/');
  if (slash != std::string::npos && slash > 0) {
    mkdir(path.substr(0, slash).c_str(), 0700);
    mkdir(path.c_str(), 0700);
  }
}

}  // namespace

std::string FormatTableHash(uint64_t hash) {
  return absl::StrFormat("%016x", hash);
}

std::string TableDirectory::FilePath(absl::string_view kind,
                                     uint64_t hash) const {
  return absl::StrCat(path_, "/", kind, "-", FormatTableHash(hash));
}

bool TableDirectory::MayHold(absl::string_view kind, uint64_t hash) const {
  return !path_.empty() && access(FilePath(kind, hash).c_str(), R_OK) == 0;
}

std::optional<std::string> TableDirectory::Load(absl::string_view kind,
                                                uint64_t hash,
                                                size_t size_bytes_max) const {
  if (path_.empty()) {
    return std::nullopt;
  }
  // O_NONBLOCK: opening a FIFO of that name must not block.
  const OpenFile file(
      open(FilePath(kind, hash).c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat info = {};
  if (file.fd() < 0 || fstat(file.fd(), &info) != 0 || !S_ISREG(info.st_mode) ||
      static_cast<uint64_t>(info.st_size) > size_bytes_max) {
    return std::nullopt;
  }
  std::string bytes(static_cast<size_t>(info.st_size), '\0');
  if (!ReadAll(file.fd(), bytes) ||
      Checksum64(AsBytes({bytes.data(), bytes.size()})) != hash) {
    return std::nullopt;
  }
  return bytes;
}

void TableDirectory::Store(absl::string_view kind, uint64_t hash,
                           absl::string_view bytes) const {
  if (path_.empty()) {
    return;
  }
  MakeDirectory(path_);
  std::string aside = absl::StrCat(path_, "/.new-XXXXXX");
  bool written = false;
  {
    const OpenFile file(mkostemp(aside.data(), O_CLOEXEC));
    if (file.fd() < 0) {
      return;
    }
    // No fsync: a file that a crash truncated is detected when it is read, and
    // fetched again.
    written = WriteAll(file.fd(), bytes);
  }
  if (!written || rename(aside.c_str(), FilePath(kind, hash).c_str()) != 0) {
    unlink(aside.c_str());
  }
}

}  // namespace quire
