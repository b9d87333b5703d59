// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/archive/salvage_output.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

#include "codecs/base/status_macros.h"
#include "codecs/base/tar_format.h"
#include "server/archive/files/file_io.h"

namespace quire {
namespace {

namespace fs = std::filesystem;

std::string NameWithoutId(const Document& document) {
  return absl::StrCat("%document-", document.ordinal.value);
}

// The place of an output: absent until it is complete.
struct OutputPlace {
  std::string path;
  std::string partial_path;
  UniqueFd parent;

  static absl::StatusOr<OutputPlace> Open(std::string path) {
    while (path.size() > 1 && path.back() == '/') {
      path.pop_back();
    }
    OutputPlace place;
    place.path = std::move(path);
    place.partial_path = place.path + ".partial";
    for (const std::string* const name : {&place.path, &place.partial_path}) {
      std::error_code error;
      if (fs::symlink_status(*name, error).type() != fs::file_type::not_found) {
        return absl::AlreadyExistsError(
            absl::StrCat(*name,
                         ": is there already; move it away or choose another "
                         "output"));
      }
    }
    const std::string parent = fs::path(place.path).parent_path().string();
    place.parent = UniqueFd(open(parent.empty() ? "." : parent.c_str(),
                                 O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!place.parent.is_open()) {
      return ErrnoStatus(errno, parent, "open the directory");
    }
    return place;
  }

  absl::Status Rename() const {
    if (renameat2(AT_FDCWD, partial_path.c_str(), AT_FDCWD, path.c_str(),
                  RENAME_NOREPLACE) != 0) {
      return ErrnoStatus(errno, path, "rename the output to");
    }
    return SyncDirectory(parent.get(), path);
  }
};

class SalvageTar final : public SalvageOutput {
 public:
  SalvageTar(OutputPlace place, FileWriter writer)
      : place_(std::move(place)), writer_(std::move(writer)) {}

  SalvageTar(const SalvageTar&) = delete;
  SalvageTar& operator=(const SalvageTar&) = delete;

  ~SalvageTar() override {
    if (writer_.size_bytes() == 0) {
      unlink(place_.partial_path.c_str());
    }
  }

  absl::StatusOr<std::string> Begin(const Document& document,
                                    bool has_id) override {
    std::string name = has_id ? TarName(document.id) : NameWithoutId(document);
    size_bytes_ = document.range.size_bytes;
    QUIRE_RETURN_IF_ERROR(Append(
        TarHeader(name, document.range.size_bytes, document.capture_time_ms)));
    return name;
  }

  absl::Status Write(ByteView bytes) override { return writer_.Append(bytes); }

  absl::Status End() override { return Append(TarPadding(size_bytes_)); }

  absl::Status Finish() override {
    QUIRE_RETURN_IF_ERROR(Append(TarEnd()));
    QUIRE_RETURN_IF_ERROR(writer_.Finish());
    return place_.Rename();
  }

 private:
  absl::Status Append(const std::string& text) {
    return writer_.Append(AsBytes(text));
  }

  const OutputPlace place_;
  FileWriter writer_;
  uint64_t size_bytes_ = 0;
};

class SalvageDirectory final : public SalvageOutput {
 public:
  explicit SalvageDirectory(OutputPlace place) : place_(std::move(place)) {}

  SalvageDirectory(const SalvageDirectory&) = delete;
  SalvageDirectory& operator=(const SalvageDirectory&) = delete;

  ~SalvageDirectory() override {
    // Fails if it was renamed or holds files.
    rmdir(place_.partial_path.c_str());
  }

  absl::StatusOr<std::string> Begin(const Document& document,
                                    bool has_id) override {
    time_ms_ = document.capture_time_ms;
    std::string name = has_id ? TarName(document.id) : NameWithoutId(document);
    int error = Create(name);
    if (error != 0 && !IsAboutName(error)) {
      return ErrnoStatus(error, absl::StrCat(place_.partial_path, "/", name),
                         "create");
    }
    // Another document may have this name as its id.
    for (std::string other = NameWithoutId(document); error != 0;
         other = absl::StrCat("%", other)) {
      name = other;
      error = Create(name);
      if (error != 0 && error != EEXIST) {
        return ErrnoStatus(error, absl::StrCat(place_.partial_path, "/", name),
                           "create");
      }
    }
    return name;
  }

  absl::Status Write(ByteView bytes) override {
    while (!bytes.empty()) {
      const ssize_t size = write(file_.get(), bytes.data(), bytes.size());
      if (size < 0 && errno == EINTR) {
        continue;
      }
      if (size < 0) {
        return ErrnoStatus(errno, place_.partial_path, "write to");
      }
      bytes = bytes.subspan(static_cast<size_t>(size));
    }
    return absl::OkStatus();
  }

  absl::Status End() override {
    if (time_ms_.has_value()) {
      int64_t seconds = *time_ms_ / 1000;
      int64_t milliseconds = *time_ms_ % 1000;
      if (milliseconds < 0) {
        --seconds;
        milliseconds += 1000;
      }
      const timespec time = {.tv_sec = seconds,
                             .tv_nsec = milliseconds * 1'000'000};
      const timespec times[2] = {time, time};
      // The time is lost where the file system cannot hold it.
      static_cast<void>(futimens(file_.get(), times));
    }
    file_ = UniqueFd();
    return absl::OkStatus();
  }

  absl::Status Finish() override {
    const UniqueFd directory(
        open(place_.partial_path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!directory.is_open() || syncfs(directory.get()) != 0) {
      return ErrnoStatus(errno, place_.partial_path, "sync");
    }
    return place_.Rename();
  }

 private:
  // True if another name may do.
  static bool IsAboutName(int error) {
    return error == EEXIST || error == ENOTDIR || error == EISDIR ||
           error == ENAMETOOLONG || error == EINVAL || error == EILSEQ;
  }

  // Creates the file and its directories; returns 0 or errno.
  int Create(const std::string& name) {
    const fs::path path =
        fs::path(absl::StrCat(place_.partial_path, "/", name));
    std::error_code error;
    fs::create_directories(path.parent_path(), error);
    if (error) {
      return error.value();
    }
    file_ = UniqueFd(open(path.c_str(),
                          O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                          0644));
    return file_.is_open() ? 0 : errno;
  }

  const OutputPlace place_;
  UniqueFd file_;
  std::optional<int64_t> time_ms_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<SalvageOutput>> MakeSalvageTar(
    const std::string& path) {
  QUIRE_ASSIGN_OR_RETURN(OutputPlace place, OutputPlace::Open(path));
  QUIRE_ASSIGN_OR_RETURN(
      FileWriter writer,
      FileWriter::Create(AT_FDCWD, place.partial_path, place.partial_path));
  return std::make_unique<SalvageTar>(std::move(place), std::move(writer));
}

absl::StatusOr<std::unique_ptr<SalvageOutput>> MakeSalvageDirectory(
    const std::string& path) {
  QUIRE_ASSIGN_OR_RETURN(OutputPlace place, OutputPlace::Open(path));
  if (mkdir(place.partial_path.c_str(), 0755) != 0) {
    return ErrnoStatus(errno, place.partial_path, "create");
  }
  return std::make_unique<SalvageDirectory>(std::move(place));
}

}  // namespace quire
