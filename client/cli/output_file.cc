// SPDX-License-Identifier: Apache-2.0
#include "client/cli/output_file.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <system_error>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"

#include "client/cli/shown_text.h"
#include "codecs/base/check.h"
#include "codecs/base/printable_text.h"
#include "codecs/base/status_macros.h"

namespace quire {
namespace {

constexpr size_t kFlushSizeBytes = size_t{64} << 10;
constexpr char kClosedOutputUrl[] = "quire.cli/closed-output";

std::string DirectoryOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) {
    return ".";
  }
  return slash == 0 ? "/" : path.substr(0, slash);
}

// Returns the end of a chain of links; `path` itself if it is no link or leads
// nowhere.
std::string FollowLinks(const std::string& path) {
  struct stat info;
  if (lstat(path.c_str(), &info) != 0 || !S_ISLNK(info.st_mode)) {
    return path;
  }
  char* const resolved = realpath(path.c_str(), nullptr);
  std::string target = resolved == nullptr ? path : resolved;
  free(resolved);
  return target;
}

}  // namespace

bool IsClosedOutput(const absl::Status& status) {
  return status.GetPayload(kClosedOutputUrl).has_value();
}

absl::Status SystemError(absl::string_view what, absl::string_view path) {
  const int error = errno;
  if (error == EPIPE) {
    absl::Status closed =
        absl::CancelledError("the reader of the output went away");
    closed.SetPayload(kClosedOutputUrl, absl::Cord("1"));
    return closed;
  }
  return absl::FailedPreconditionError(absl::StrCat(
      what, " ", path == "-" ? "standard output" : QuotedText(path), ": ",
      std::generic_category().message(error)));
}

absl::StatusOr<std::unique_ptr<OutputFile>> OutputFile::Open(
    const std::string& path) {
  if (path == "-") {
    return std::unique_ptr<OutputFile>(new OutputFile(path, STDOUT_FILENO));
  }
  std::unique_ptr<OutputFile> file(new OutputFile(FollowLinks(path), -1));
  struct stat info;
  if (stat(file->path_.c_str(), &info) == 0 && !S_ISREG(info.st_mode)) {
    file->fd_ = open(file->path_.c_str(), O_WRONLY | O_CLOEXEC);
    if (file->fd_ < 0) {
      return SystemError("cannot write to", path);
    }
    return file;
  }
  QUIRE_RETURN_IF_ERROR(file->OpenAside());
  return file;
}

absl::StatusOr<std::unique_ptr<OutputFile>> OutputFile::OpenNew(
    const std::string& path) {
  std::unique_ptr<OutputFile> file(new OutputFile(path, -1));
  QUIRE_RETURN_IF_ERROR(file->OpenAside());
  return file;
}

OutputFile::~OutputFile() {
  if (fd_ >= 0 && !is_standard_output()) {
    close(fd_);
  }
  if (!aside_path_.empty()) {
    unlink(aside_path_.c_str());
  }
}

// A file without a name vanishes by itself however the program ends; where the
// file system has none, a name aside must do.
absl::Status OutputFile::OpenAside() {
  aside_ = true;
  const std::string directory = DirectoryOf(path_);
  fd_ = open(directory.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666);
  if (fd_ >= 0) {
    return absl::OkStatus();
  }
  if (errno != EOPNOTSUPP && errno != EISDIR) {
    return SystemError("cannot create", path_);
  }
  std::string aside_path = absl::StrCat(directory, "/.quire-XXXXXX");
  fd_ = mkostemp(aside_path.data(), O_CLOEXEC);
  if (fd_ < 0) {
    return SystemError("cannot create", path_);
  }
  aside_path_ = std::move(aside_path);
  const mode_t mask = umask(0);
  umask(mask);
  if (fchmod(fd_, 0666 & ~mask) != 0) {
    return SystemError("cannot create", path_);
  }
  return absl::OkStatus();
}

absl::Status OutputFile::Write(ByteView bytes) {
  const absl::string_view text = AsText(bytes);
  buffer_.append(text.data(), text.size());
  return buffer_.size() < kFlushSizeBytes ? absl::OkStatus() : Flush();
}

absl::Status OutputFile::WriteAt(uint64_t offset, ByteView bytes) {
  QUIRE_CHECK(aside_ && buffer_.empty());
  while (!bytes.empty()) {
    const ssize_t written =
        pwrite(fd_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (written >= 0) {
      bytes = bytes.subspan(static_cast<size_t>(written));
      offset += static_cast<uint64_t>(written);
    } else if (errno != EINTR) {
      return SystemError("cannot write to", path_);
    }
  }
  return absl::OkStatus();
}

absl::Status OutputFile::Flush() {
  size_t done = 0;
  absl::Status status;
  while (done < buffer_.size() && status.ok()) {
    const ssize_t written =
        write(fd_, buffer_.data() + done, buffer_.size() - done);
    if (written >= 0) {
      done += static_cast<size_t>(written);
    } else if (errno == EAGAIN) {
      // Another program that has the same pipe or terminal made it so.
      struct pollfd writable = {.fd = fd_, .events = POLLOUT, .revents = 0};
      poll(&writable, 1, -1);
    } else if (errno != EINTR) {
      status = SystemError("cannot write to", path_);
    }
  }
  // Written bytes are not written again, also after an error.
  buffer_.erase(0, done);
  return status;
}

absl::Status OutputFile::Commit(bool sync) {
  QUIRE_RETURN_IF_ERROR(Flush());
  if (aside_) {
    QUIRE_RETURN_IF_ERROR(PutInPlace(sync));
  }
  // Some file systems report a full disk only here.
  if (close(std::exchange(fd_, -1)) != 0 && errno != EINTR) {
    return SystemError("cannot write to", path_);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> OutputFile::CommitPartial() {
  QUIRE_CHECK(aside_);
  path_ += ".partial";
  QUIRE_RETURN_IF_ERROR(Commit());
  return path_;
}

absl::Status OutputFile::PutInPlace(bool sync) {
  if (sync && fsync(fd_) != 0) {
    return SystemError("cannot write to", path_);
  }
  const std::string directory = DirectoryOf(path_);
  if (aside_path_.empty()) {
    // A nameless file can only take a name that is free: one aside first.
    static std::atomic<uint64_t> name_count{0};
    const std::string self = absl::StrCat("/proc/self/fd/", fd_);
    std::string aside_path;
    int linked = -1;
    do {
      // The name may be taken by a program that was killed: process ids are
      // reused.
      aside_path =
          absl::StrCat(directory, "/.quire-", getpid(), "-", name_count++);
      linked = linkat(AT_FDCWD, self.c_str(), AT_FDCWD, aside_path.c_str(),
                      AT_SYMLINK_FOLLOW);
    } while (linked != 0 && errno == EEXIST);
    if (linked != 0) {
      return SystemError("cannot create", path_);
    }
    aside_path_ = std::move(aside_path);
  }
  if (rename(aside_path_.c_str(), path_.c_str()) != 0) {
    return SystemError("cannot create", path_);
  }
  aside_path_.clear();
  const int directory_fd =
      sync ? open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
  if (directory_fd >= 0) {
    fsync(directory_fd);
    close(directory_fd);
  }
  return absl::OkStatus();
}

bool OutputFile::is_terminal() const {
  return isatty(fd_) == 1;
}

absl::StatusOr<OutputDirectory> OutputDirectory::Create(
    const std::string& path) {
  if (mkdir(path.c_str(), 0777) != 0 && errno != EEXIST) {
    return SystemError("cannot create", path);
  }
  return OutputDirectory(path);
}

absl::Status OutputDirectory::WriteFile(
    const std::string& name,
    absl::FunctionRef<
        absl::Status(absl::FunctionRef<absl::Status(ByteView)> sink)>
        write) const {
  QUIRE_ASSIGN_OR_RETURN(const std::unique_ptr<OutputFile> file,
                         OutputFile::OpenNew(absl::StrCat(path_, "/", name)));
  QUIRE_RETURN_IF_ERROR(
      write([&](ByteView bytes) { return file->Write(bytes); }));
  return file->Commit(/*sync=*/false);
}

absl::Status OutputDirectory::Sync() const {
  const int fd = open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0 || syncfs(fd) != 0) {
    const absl::Status status = SystemError("cannot write to", path_);
    if (fd >= 0) {
      close(fd);
    }
    return status;
  }
  close(fd);
  return absl::OkStatus();
}

}  // namespace quire
