// SPDX-License-Identifier: Apache-2.0
#include "client/cli/answer_spool.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "absl/strings/str_cat.h"

#include "client/cli/output_file.h"
#include "client/cli/shown_text.h"
#include "codecs/base/printable_text.h"

namespace quire {
namespace {

// Holes in files are made of whole pages.
constexpr uint64_t kPageSizeBytes = 4096;
constexpr char kWhat[] = "cannot keep answers in the temporary directory";

std::string Directory() {
  const char* directory = std::getenv("TMPDIR");
  return directory != nullptr && directory[0] != '\0' ? directory : "/var/tmp";
}

// Not every file system knows files without a name.
int OpenNamed(const std::string& directory) {
  std::string path = directory + "/quire-XXXXXX";
  const int fd = mkostemp(path.data(), O_CLOEXEC);
  if (fd >= 0) {
    unlink(path.c_str());
  }
  return fd;
}

uint64_t RoundUp(uint64_t size_bytes) {
  return (size_bytes + kPageSizeBytes - 1) / kPageSizeBytes * kPageSizeBytes;
}

absl::Status Fault() {
  const std::string directory = Directory();
  return SystemError(kWhat, {directory.data(), directory.size()});
}

}  // namespace

absl::StatusOr<std::unique_ptr<AnswerSpool>> AnswerSpool::Open() {
  const std::string directory = Directory();
  int fd = open(directory.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (fd < 0) {
    fd = OpenNamed(directory);
  }
  if (fd < 0) {
    return Fault();
  }
  return std::unique_ptr<AnswerSpool>(new AnswerSpool(fd));
}

AnswerSpool::~AnswerSpool() {
  close(fd_);
}

absl::StatusOr<AnswerSpool::Place> AnswerSpool::Put(absl::string_view bytes) {
  const Place place{.offset = end_, .size_bytes = bytes.size()};
  uint64_t offset = end_;
  while (!bytes.empty()) {
    const ssize_t size =
        pwrite(fd_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (size < 0 && errno != EINTR) {
      return Fault();
    }
    if (size > 0) {
      offset += static_cast<uint64_t>(size);
      bytes.remove_prefix(static_cast<size_t>(size));
    }
  }
  const uint64_t space = RoundUp(place.size_bytes);
  end_ += space;
  held_size_bytes_ += space;
  return place;
}

absl::StatusOr<std::string> AnswerSpool::Take(const Place& place) {
  std::string bytes(place.size_bytes, '\0');
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t size = pread(fd_, bytes.data() + done, bytes.size() - done,
                               static_cast<off_t>(place.offset + done));
    if (size == 0) {
      // Without an error of the system's.
      return absl::FailedPreconditionError(absl::StrCat(
          "answers kept in the temporary directory ", QuotedText(Directory()),
          " are gone: the file there is shorter than what was ",
          "written to it; run the command again"));
    }
    if (size < 0 && errno != EINTR) {
      return Fault();
    }
    done += size > 0 ? static_cast<size_t>(size) : 0;
  }
  const uint64_t space = RoundUp(place.size_bytes);
  held_size_bytes_ -= space;
  if (held_size_bytes_ == 0 && ftruncate(fd_, 0) == 0) {
    end_ = 0;
  } else if (space > 0) {
    // Where holes cannot be made, the space comes back with the last answer.
    fallocate(fd_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
              static_cast<off_t>(place.offset), static_cast<off_t>(space));
  }
  return bytes;
}

}  // namespace quire
