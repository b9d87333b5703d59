// SPDX-License-Identifier: GPL-3.0-or-later
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

#include "codecs/base/printable_text.h"
#include "codecs/base/status_macros.h"
#include "server/archive/files/file_io.h"
#include "server/ingest/sources/container_detection.h"
#include "server/ingest/sources/file_sources.h"
#include "server/ingest/sources/input_limits.h"
#include "server/ingest/sources/lines/line_source.h"
#include "server/ingest/sources/streams/byte_stream.h"

namespace quire {
namespace {

struct DirCloser {
  void operator()(DIR* directory) const { closedir(directory); }
};

// A directory on the path to the current file.
struct Listing {
  // Relative to the input; empty or ends in '/'.
  std::string prefix;
  // Names of files, and of directories with a trailing '/': sorted, each
  // directory stands where its contents belong in the order of whole paths.
  std::vector<std::string> names;
  size_t next = 0;
};

// The documents of a container in a directory. An error that the container
// cannot continue from ends it.
class ExpandedContainer {
 public:
  // `id_prefix` precedes all ids.
  static absl::StatusOr<ExpandedContainer> Open(
      const Source& container, std::string id_prefix,
      std::optional<uint64_t> input_size_bytes_max) {
    QUIRE_ASSIGN_OR_RETURN(const std::optional<uint64_t> stored_size_bytes,
                           container.StoredSizeBytes());
    QUIRE_ASSIGN_OR_RETURN(std::unique_ptr<SourceReader> reader,
                           container.Open());
    return ExpandedContainer(
        container.name(), std::move(reader), std::move(id_prefix),
        InputSizeBytesMax(input_size_bytes_max, stored_size_bytes.value_or(0)));
  }

  absl::StatusOr<std::optional<SourceDocument>> Next() {
    if (has_ended_) {
      return std::nullopt;
    }
    absl::StatusOr<std::optional<SourceDocument>> document = reader_->Next();
    if (!document.ok()) {
      has_ended_ = !reader_->CanContinue();
      return document;
    }
    if (!document->has_value()) {
      has_ended_ = true;
      return document;
    }
    SourceDocument& found = **document;
    QUIRE_RETURN_IF_ERROR(CheckSize(found.size_bytes.value_or(0)));
    found.id.insert(0, id_prefix_);
    return document;
  }

  std::string Place() const { return reader_->Place(); }

  absl::StatusOr<size_t> Read(MutableByteView out) {
    return Counted(reader_->Read(out));
  }

  absl::StatusOr<uint64_t> Skip(uint64_t size_bytes) {
    return Counted(reader_->Skip(size_bytes));
  }

  std::shared_ptr<const TextCheck> AwaitedCheck() const {
    return reader_->AwaitedCheck();
  }

  SkippedEntries skipped() const { return reader_->skipped(); }

  void Listen(const NoteListener& listener) { reader_->Listen(listener); }

 private:
  ExpandedContainer(std::string name, std::unique_ptr<SourceReader> reader,
                    std::string id_prefix, uint64_t size_bytes_max)
      : name_(std::move(name)),
        reader_(std::move(reader)),
        id_prefix_(std::move(id_prefix)),
        size_bytes_max_(size_bytes_max) {}

  absl::Status CheckSize(uint64_t size_bytes) const {
    return size_bytes <= size_bytes_max_ - read_bytes_
               ? absl::OkStatus()
               : InputTooLarge(absl::StrCat(name_, ": ", Place(),
                                            ": its documents hold more"),
                               size_bytes_max_);
  }

  template <typename Size>
  absl::StatusOr<Size> Counted(absl::StatusOr<Size> size) {
    if (!size.ok()) {
      has_ended_ = !reader_->CanContinue();
      return size;
    }
    QUIRE_RETURN_IF_ERROR(CheckSize(*size));
    read_bytes_ += *size;
    return size;
  }

  std::string name_;
  std::unique_ptr<SourceReader> reader_;
  std::string id_prefix_;
  uint64_t size_bytes_max_;
  uint64_t read_bytes_ = 0;
  bool has_ended_ = false;
};

class DirectoryReader final : public SourceReader {
 public:
  DirectoryReader(std::string root, const SourceOptions& options)
      : root_(std::move(root)), options_(options) {}

  absl::StatusOr<std::optional<SourceDocument>> Next() override {
    if (!std::exchange(started_, true)) {
      QUIRE_RETURN_IF_ERROR(Descend(""));
    }
    while (true) {
      if (!failures_.empty()) {
        const absl::Status failure = failures_.front();
        failures_.pop_front();
        return failure;
      }
      if (container_.has_value()) {
        QUIRE_ASSIGN_OR_RETURN(std::optional<SourceDocument> document,
                               container_->Next());
        if (document.has_value()) {
          if (document->deposit != nullptr) {
            document->deposit_path = current_;
          }
          return document;
        }
        CloseContainer();
        continue;
      }
      if (listings_.empty()) {
        return std::nullopt;
      }
      QUIRE_ASSIGN_OR_RETURN(std::optional<SourceDocument> document,
                             NextEntry());
      if (document.has_value()) {
        return document;
      }
    }
  }

  std::string Place() const override {
    const std::string place = absl::StrCat("the file ", QuotedText(current_));
    return container_.has_value()
               ? absl::StrCat(place, ", ", container_->Place())
               : place;
  }

  absl::StatusOr<size_t> Read(MutableByteView out) override {
    if (container_.has_value()) {
      return container_->Read(out);
    }
    QUIRE_ASSIGN_OR_RETURN(const size_t got, file_->Read(out));
    if (got == 0) {
      QUIRE_RETURN_IF_ERROR(
          CheckNotCut(file_->file(), file_size_bytes_, file_->offset()));
    }
    return got;
  }

  absl::StatusOr<uint64_t> Skip(uint64_t size_bytes) override {
    if (container_.has_value()) {
      return container_->Skip(size_bytes);
    }
    QUIRE_ASSIGN_OR_RETURN(const uint64_t skipped, file_->Skip(size_bytes));
    if (skipped < size_bytes) {
      QUIRE_RETURN_IF_ERROR(
          CheckNotCut(file_->file(), file_size_bytes_, file_->offset()));
    }
    return skipped;
  }

  std::shared_ptr<const TextCheck> AwaitedCheck() const override {
    return container_.has_value() ? container_->AwaitedCheck() : nullptr;
  }

  bool CanContinue() const override { return true; }

  SkippedEntries skipped() const override {
    SkippedEntries skipped = SourceReader::skipped();
    skipped += container_skipped_;
    return skipped;
  }

 private:
  // Moves to the next name; returns a document, or nothing if the name is not
  // one.
  absl::StatusOr<std::optional<SourceDocument>> NextEntry() {
    Listing& top = listings_.back();
    if (top.next == top.names.size()) {
      listings_.pop_back();
      return std::nullopt;
    }
    std::string path = top.prefix + top.names[top.next++];
    if (options_.id_rules != nullptr && options_.id_rules->Excludes(path)) {
      Note(EntryNote::kExcluded, absl::StrCat(root_, "/", path));
      return std::nullopt;
    }
    if (path.back() == '/') {
      QUIRE_RETURN_IF_ERROR(Descend(std::move(path)));
      return std::nullopt;
    }
    return OpenFile(std::move(path));
  }

  absl::Status Descend(std::string prefix) {
    const std::string path = absl::StrCat(root_, "/", prefix);
    // The input itself may be a link. Entries below it may not, even if they
    // became links after listing.
    const int no_follow = prefix.empty() ? 0 : O_NOFOLLOW;
    const int fd =
        open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | no_follow);
    if (fd < 0) {
      return ErrnoStatus(errno, path, "open");
    }
    // Takes ownership of the descriptor on success.
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
      List(fd, entry->d_name, path, listing);
    }
    if (errno != 0) {
      failures_.push_back(ErrnoStatus(errno, path, "list all of"));
    }
    std::sort(listing.names.begin(), listing.names.end());
    listings_.push_back(std::move(listing));
    return absl::OkStatus();
  }

  // An unreadable entry does not affect its neighbours.
  void List(int directory_fd, const std::string& name,
            const std::string& directory, Listing& listing) {
    if (name == "." || name == "..") {
      return;
    }
    struct stat status = {};
    if (fstatat(directory_fd, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) !=
        0) {
      failures_.push_back(ErrnoStatus(errno, directory + name, "look at"));
      return;
    }
    if (S_ISREG(status.st_mode)) {
      listing.names.push_back(name);
    } else if (S_ISDIR(status.st_mode)) {
      listing.names.push_back(name + "/");
    } else if (S_ISLNK(status.st_mode)) {
      Note(EntryNote::kSymbolicLink, directory + name);
    } else {
      Note(EntryNote::kSpecialFile, directory + name);
    }
  }

  absl::StatusOr<std::optional<SourceDocument>> OpenFile(std::string id) {
    const std::string path = absl::StrCat(root_, "/", id);
    UniqueFd fd(
        open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    // O_NOFOLLOW refuses a symbolic link with ELOOP.
    if (!fd.is_open() && errno != ELOOP) {
      return ErrnoStatus(errno, path, "open");
    }
    struct stat status = {};
    if (fd.is_open() && fstat(fd.get(), &status) != 0) {
      return ErrnoStatus(errno, path, "look at");
    }
    if (!S_ISREG(status.st_mode)) {
      return absl::UnavailableError(absl::StrCat(
          path, ": was a regular file when its directory was listed and is ",
          "something else now; do not change the input during a build"));
    }
    const auto file = std::make_shared<const InputFile>(std::move(fd), path);
    current_ = id;
    if (options_.expand || listener()) {
      QUIRE_RETURN_IF_ERROR(LookInside(file, id));
      if (container_.has_value()) {
        return std::nullopt;
      }
    }
    file_ = std::make_unique<FileStream>(file);
    SourceDocument document;
    document.id = std::move(id);
    file_size_bytes_ = static_cast<uint64_t>(status.st_size);
    document.size_bytes = file_size_bytes_;
    document.capture_time_ms = int64_t{status.st_mtim.tv_sec} * 1000;
    document.has_mode = true;
    document.has_owner = true;
    return document;
  }

  // Begins to read `file` as a container, if it is one and should be expanded;
  // sends notes to the listener.
  absl::Status LookInside(const std::shared_ptr<const InputFile>& file,
                          const std::string& path) {
    DetectedFile detected;
    QUIRE_ASSIGN_OR_RETURN(const bool may_be, MayBeContainer(*file));
    if (may_be) {
      absl::StatusOr<DetectedFile> found =
          DetectContainer(file, options_, FoundIn::kDirectory);
      if (found.status().code() == absl::StatusCode::kDataLoss) {
        Note(EntryNote::kMisnamed,
             absl::StrCat(found.status().message(),
                          "; it is kept as one document, as it is"));
        return absl::OkStatus();
      }
      QUIRE_RETURN_IF_ERROR(found.status());
      detected = *std::move(found);
    }
    if (const std::string misnaming = Misnaming(path, detected);
        !misnaming.empty()) {
      Note(EntryNote::kMisnamed, absl::StrCat(file->name(), ": ", misnaming));
    }
    if (detected.container == nullptr ||
        (!IsNamedZip(path) &&
         absl::string_view(detected.container->kind()) == "zip")) {
      return absl::OkStatus();
    }
    if (!options_.expand) {
      Note(EntryNote::kUnexpanded, file->name());
      return absl::OkStatus();
    }
    if (options_.split.has_value()) {
      QUIRE_RETURN_IF_ERROR(CheckHasLines(*detected.container));
    }
    QUIRE_ASSIGN_OR_RETURN(
        container_,
        ExpandedContainer::Open(*detected.container,
                                options_.member_ids == MemberIds::kMember
                                    ? ""
                                    : absl::StrCat(path, "/"),
                                options_.input_size_bytes_max));
    if (listener()) {
      container_->Listen(listener());
    }
    return absl::OkStatus();
  }

  void CloseContainer() {
    container_skipped_ += container_->skipped();
    container_.reset();
  }

  const std::string root_;
  const SourceOptions options_;
  bool started_ = false;
  std::vector<Listing> listings_;
  // Errors of entries found while listing.
  std::deque<absl::Status> failures_;
  // The path of the current file.
  std::string current_;
  // Set if it is one document.
  std::unique_ptr<FileStream> file_;
  // When it was opened.
  uint64_t file_size_bytes_ = 0;
  // Set if it is a container.
  std::optional<ExpandedContainer> container_;
  // Skipped entries of earlier containers.
  SkippedEntries container_skipped_;
};

class DirectorySource final : public Source {
 public:
  DirectorySource(std::string path, SourceOptions options)
      : path_(std::move(path)), options_(std::move(options)) {}

  const std::string& name() const override { return path_; }

  const char* kind() const override { return "directory"; }

  absl::StatusOr<std::unique_ptr<SourceReader>> Open() const override {
    return std::make_unique<DirectoryReader>(path_, options_);
  }

 private:
  const std::string path_;
  const SourceOptions options_;
};

}  // namespace

std::unique_ptr<Source> MakeDirectorySource(std::string path,
                                            SourceOptions options) {
  return std::make_unique<DirectorySource>(std::move(path), std::move(options));
}

}  // namespace quire
