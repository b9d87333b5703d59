// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/archive/repair/salvage_output.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"

#include "codecs/base/status_macros.h"
#include "codecs/base/tar_format.h"
#include "codecs/filter/field_value.h"
#include "server/archive/files/file_io.h"
#include "server/archive/files/partial_directory.h"

namespace quire {
namespace {

namespace fs = std::filesystem;

class SalvageTar final : public SalvageOutput {
 public:
  SalvageTar(PartialDirectory partial, FileWriter writer)
      : partial_(std::move(partial)), writer_(std::move(writer)) {}

  SalvageTar(const SalvageTar&) = delete;
  SalvageTar& operator=(const SalvageTar&) = delete;

  ~SalvageTar() override {
    if (writer_.size_bytes() > 0) {
      partial_.KeepUnpublished();
    }
  }

  absl::StatusOr<std::string> Begin(
      const Document& document, bool has_id,
      absl::Span<const FieldValue> /*fields*/) override {
    std::string name = has_id ? TarName(document.id) : SalvagedName(document);
    size_bytes_ = document.range.size_bytes;
    start_offset_ = writer_.size_bytes();
    QUIRE_RETURN_IF_ERROR(Append(
        TarHeader(name, document.range.size_bytes, document.capture_time_ms)));
    return name;
  }

  absl::Status Write(ByteView bytes) override { return writer_.Append(bytes); }

  absl::Status End() override { return Append(TarPadding(size_bytes_)); }

  absl::Status Drop() override { return writer_.Truncate(start_offset_); }

  absl::Status Finish(uint64_t /*lost_count*/) override {
    QUIRE_RETURN_IF_ERROR(Append(TarEnd()));
    QUIRE_RETURN_IF_ERROR(writer_.Finish());
    return partial_.PublishSalvaged();
  }

 private:
  absl::Status Append(const std::string& text) {
    return writer_.Append(AsBytes(text));
  }

  PartialDirectory partial_;
  FileWriter writer_;
  uint64_t size_bytes_ = 0;
  // Offset of the document's header.
  uint64_t start_offset_ = 0;
};

class SalvageDirectory final : public SalvageOutput {
 public:
  SalvageDirectory(PartialDirectory partial, std::string path)
      : partial_(std::move(partial)), path_(std::move(path)) {}

  SalvageDirectory(const SalvageDirectory&) = delete;
  SalvageDirectory& operator=(const SalvageDirectory&) = delete;

  ~SalvageDirectory() override {
    std::error_code error;
    if (!fs::is_empty(path_, error) && !error) {
      partial_.KeepUnpublished();
    }
  }

  absl::StatusOr<std::string> Begin(
      const Document& document, bool has_id,
      absl::Span<const FieldValue> /*fields*/) override {
    time_ms_ = document.capture_time_ms;
    std::string name = has_id ? TarName(document.id) : SalvagedName(document);
    int error = Create(name);
    if (error != 0 && !IsAboutName(error)) {
      return ErrnoStatus(error, absl::StrCat(path_, "/", name), "create");
    }
    // Another document may have this name as its id.
    for (std::string other = SalvagedName(document); error != 0;
         other = absl::StrCat("%", other)) {
      name = other;
      error = Create(name);
      if (error != 0 && error != EEXIST) {
        return ErrnoStatus(error, absl::StrCat(path_, "/", name), "create");
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
        return ErrnoStatus(errno, path_, "write to");
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

  absl::Status Drop() override {
    file_ = UniqueFd();
    if (unlink(file_path_.c_str()) != 0) {
      return ErrnoStatus(errno, file_path_, "remove");
    }
    return absl::OkStatus();
  }

  absl::Status Finish(uint64_t /*lost_count*/) override {
    const UniqueFd directory(
        open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!directory.is_open() || syncfs(directory.get()) != 0) {
      return ErrnoStatus(errno, path_, "sync");
    }
    return partial_.PublishSalvaged();
  }

 private:
  // True if another name may do.
  static bool IsAboutName(int error) {
    return error == EEXIST || error == ENOTDIR || error == EISDIR ||
           error == ENAMETOOLONG || error == EINVAL || error == EILSEQ;
  }

  // Creates the file and its directories; returns 0 or errno.
  int Create(const std::string& name) {
    const fs::path path = fs::path(absl::StrCat(path_, "/", name));
    std::error_code error;
    fs::create_directories(path.parent_path(), error);
    if (error) {
      return error.value();
    }
    file_ = UniqueFd(open(path.c_str(),
                          O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                          0644));
    file_path_ = path.string();
    return file_.is_open() ? 0 : errno;
  }

  PartialDirectory partial_;
  // Path of the directory until Finish().
  const std::string path_;
  UniqueFd file_;
  std::string file_path_;
  std::optional<int64_t> time_ms_;
};

}  // namespace

std::string SalvagedName(const Document& document) {
  return absl::StrCat("%document-", document.ordinal.value);
}

absl::StatusOr<std::unique_ptr<SalvageOutput>> MakeSalvageTar(
    const std::string& path) {
  QUIRE_ASSIGN_OR_RETURN(PartialDirectory partial,
                         PartialDirectory::CreateForSalvage(path));
  QUIRE_ASSIGN_OR_RETURN(
      FileWriter writer,
      FileWriter::Create(partial.fd(), kSalvagedName,
                         absl::StrCat(partial.name(), "/", kSalvagedName)));
  return std::make_unique<SalvageTar>(std::move(partial), std::move(writer));
}

absl::StatusOr<std::unique_ptr<SalvageOutput>> MakeSalvageDirectory(
    const std::string& path) {
  QUIRE_ASSIGN_OR_RETURN(PartialDirectory partial,
                         PartialDirectory::CreateForSalvage(path));
  std::string directory = absl::StrCat(partial.name(), "/", kSalvagedName);
  if (mkdirat(partial.fd(), kSalvagedName, 0755) != 0) {
    return ErrnoStatus(errno, directory, "create");
  }
  return std::make_unique<SalvageDirectory>(std::move(partial),
                                            std::move(directory));
}

}  // namespace quire
