// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/ingest/directory_source.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

#include "codecs/base/printable_text.h"
#include "codecs/base/status_macros.h"
#include "server/archive/files/file_io.h"
#include "server/ingest/byte_stream.h"

namespace quire {
namespace {

struct DirCloser {
  void operator()(DIR* directory) const { closedir(directory); }
};

// A directory on the way to the current file.
struct Listing {
  // Relative to the input; empty or ends in '/'.
  std::string prefix;
  // Names of files, and of directories with a '/' behind them: sorted like
  // that, each directory stands where its contents belong in the order of whole
  // paths.
  std::vector<std::string> names;
  size_t next = 0;
};

class DirectoryReader final : public SourceReader {
 public:
  explicit DirectoryReader(std::string root) : root_(std::move(root)) {}

  // Reads the top directory, so that Open() tells if it cannot be read.
  absl::Status Start() { return Descend(""); }

  absl::StatusOr<std::optional<SourceDocument>> Next() override {
    while (!listings_.empty()) {
      Listing& top = listings_.back();
      if (top.next == top.names.size()) {
        listings_.pop_back();
        continue;
      }
      std::string path = top.prefix + top.names[top.next++];
      if (path.back() == '/') {
        QUIRE_RETURN_IF_ERROR(Descend(std::move(path)));
        continue;
      }
      return OpenFile(std::move(path));
    }
    return std::nullopt;
  }

  std::string Place() const override {
    return absl::StrCat("the file ", QuotedText(current_));
  }

  absl::StatusOr<size_t> Read(MutableByteView out) override {
    return file_->Read(out);
  }

  absl::StatusOr<uint64_t> Skip(uint64_t size_bytes) override {
    return file_->Skip(size_bytes);
  }

  SkippedEntries skipped() const override { return skipped_; }

 private:
  absl::Status Descend(std::string prefix) {
    const std::string path = absl::StrCat(root_, "/", prefix);
    // The input itself may be a link; what is below it may not, even if it
    // turned into one after it was listed.
    const int no_follow = prefix.empty() ? 0 : O_NOFOLLOW;
    const int fd =
        open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | no_follow);
    if (fd < 0) {
      return ErrnoStatus(errno, path, "open");
    }
    // Takes the descriptor over, unless it fails.
    const std::unique_ptr<DIR, DirCloser> directory(fdopendir(fd));
    if (directory == nullptr) {
      const int error = errno;
      close(fd);
      return ErrnoStatus(error, path, "list");
    }
    Listing listing;
    listing.prefix = std::move(prefix);
    while (true) {
      errno = 0;
      // Only this thread reads from this DIR.
      const dirent* const entry =
          readdir(directory.get());  // NOLINT(concurrency-mt-unsafe)
      if (entry == nullptr) {
        break;
      }
      QUIRE_RETURN_IF_ERROR(List(fd, entry->d_name, path, listing));
    }
    if (errno != 0) {
      return ErrnoStatus(errno, path, "list");
    }
    std::sort(listing.names.begin(), listing.names.end());
    listings_.push_back(std::move(listing));
    return absl::OkStatus();
  }

  absl::Status List(int directory_fd, const std::string& name,
                    const std::string& directory, Listing& listing) {
    if (name == "." || name == "..") {
      return absl::OkStatus();
    }
    struct stat status = {};
    if (fstatat(directory_fd, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) !=
        0) {
      return ErrnoStatus(errno, directory + name, "look at");
    }
    if (S_ISREG(status.st_mode)) {
      listing.names.push_back(name);
    } else if (S_ISDIR(status.st_mode)) {
      listing.names.push_back(name + "/");
    } else if (S_ISLNK(status.st_mode)) {
      ++skipped_.symbolic_links;
    } else {
      ++skipped_.special_files;
    }
    return absl::OkStatus();
  }

  absl::StatusOr<std::optional<SourceDocument>> OpenFile(std::string id) {
    const std::string path = absl::StrCat(root_, "/", id);
    UniqueFd fd(
        open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    if (!fd.is_open()) {
      return ErrnoStatus(errno, path, "open");
    }
    struct stat status = {};
    if (fstat(fd.get(), &status) != 0) {
      return ErrnoStatus(errno, path, "look at");
    }
    if (!S_ISREG(status.st_mode)) {
      return absl::UnavailableError(absl::StrCat(
          path, ": was a regular file when its directory was listed and is ",
          "something else now; do not change the input during a build"));
    }
    file_ = std::make_unique<FileStream>(
        std::make_shared<const InputFile>(std::move(fd), path));
    SourceDocument document;
    current_ = id;
    document.id = std::move(id);
    document.size_bytes = static_cast<uint64_t>(status.st_size);
    document.capture_time_ms = int64_t{status.st_mtim.tv_sec} * 1000;
    return document;
  }

  const std::string root_;
  std::vector<Listing> listings_;
  // The id of the current document.
  std::string current_;
  std::unique_ptr<FileStream> file_;
  SkippedEntries skipped_;
};

class DirectorySource final : public Source {
 public:
  explicit DirectorySource(std::string path) : path_(std::move(path)) {}

  const std::string& name() const override { return path_; }

  const char* kind() const override { return "directory"; }

  absl::StatusOr<std::unique_ptr<SourceReader>> Open() const override {
    auto reader = std::make_unique<DirectoryReader>(path_);
    QUIRE_RETURN_IF_ERROR(reader->Start());
    return reader;
  }

 private:
  const std::string path_;
};

}  // namespace

std::unique_ptr<Source> MakeDirectorySource(std::string path) {
  return std::make_unique<DirectorySource>(std::move(path));
}

}  // namespace quire
