// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/ingest/spool.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

#include "codecs/base/status_macros.h"
#include "server/archive/file_io.h"

namespace quire {
namespace {

absl::StatusOr<UniqueFd> CreateUnnamedFile(const std::string& folder) {
  UniqueFd fd(open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (fd.is_open()) {
    return fd;
  }
  if (errno != EOPNOTSUPP && errno != EISDIR) {
    return ErrnoStatus(errno, folder, "create a temporary file in");
  }
  // NFS and some others: a name, for a moment.
  std::string path = absl::StrCat(folder, "/.quire-spool-XXXXXX");
  UniqueFd named(mkostemp(path.data(), O_CLOEXEC));
  if (!named.is_open() || unlink(path.c_str()) != 0) {
    return ErrnoStatus(errno, folder, "create a temporary file in");
  }
  return named;
}

absl::Status WriteAll(int fd, ByteView bytes, const std::string& folder) {
  while (!bytes.empty()) {
    const ssize_t written = write(fd, bytes.data(), bytes.size());
    if (written >= 0) {
      bytes = bytes.subspan(static_cast<size_t>(written));
    } else if (errno != EINTR) {
      return ErrnoStatus(errno, folder, "copy standard input to");
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::shared_ptr<const InputFile>> SpoolToUnnamedFile(
    int fd, const std::string& name, const std::string& folder) {
  QUIRE_ASSIGN_OR_RETURN(UniqueFd spool, CreateUnnamedFile(folder));
  std::vector<uint8_t> buffer(1 << 20);
  while (true) {
    const ssize_t got = read(fd, buffer.data(), buffer.size());
    if (got == 0) {
      break;
    }
    if (got > 0) {
      QUIRE_RETURN_IF_ERROR(
          WriteAll(spool.get(),
                   ByteView(buffer).first(static_cast<size_t>(got)), folder));
    } else if (errno != EINTR) {
      return ErrnoStatus(errno, name, "read");
    }
  }
  return std::make_shared<const InputFile>(std::move(spool), name);
}

}  // namespace quire
