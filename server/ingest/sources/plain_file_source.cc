// SPDX-License-Identifier: GPL-3.0-or-later
#include <utility>

#include "codecs/base/status_macros.h"
#include "server/ingest/sources/file_sources.h"

namespace quire {
namespace {

class PlainFileReader final : public SourceReader {
 public:
  explicit PlainFileReader(std::shared_ptr<const InputFile> file)
      : file_(file), stream_(std::move(file)) {}

  absl::StatusOr<std::optional<SourceDocument>> Next() override {
    if (std::exchange(done_, true)) {
      return std::nullopt;
    }
    const std::string& path = file_->name();
    SourceDocument document;
    document.id = path.substr(path.rfind('/') + 1);
    QUIRE_ASSIGN_OR_RETURN(size_bytes_, file_->SizeBytes());
    document.size_bytes = size_bytes_;
    QUIRE_ASSIGN_OR_RETURN(document.capture_time_ms, file_->ModifiedTimeMs());
    document.has_mode = true;
    document.has_owner = true;
    return document;
  }

  std::string Place() const override { return "the file"; }

  absl::StatusOr<size_t> Read(MutableByteView out) override {
    QUIRE_ASSIGN_OR_RETURN(const size_t got, stream_.Read(out));
    if (got == 0) {
      QUIRE_RETURN_IF_ERROR(CheckNotCut(*file_, size_bytes_, stream_.offset()));
    }
    return got;
  }

  absl::StatusOr<uint64_t> Skip(uint64_t size_bytes) override {
    QUIRE_ASSIGN_OR_RETURN(const uint64_t skipped, stream_.Skip(size_bytes));
    if (skipped < size_bytes) {
      QUIRE_RETURN_IF_ERROR(CheckNotCut(*file_, size_bytes_, stream_.offset()));
    }
    return skipped;
  }

 private:
  const std::shared_ptr<const InputFile> file_;
  FileStream stream_;
  // When the pass began.
  uint64_t size_bytes_ = 0;
  bool done_ = false;
};

class PlainFileSource final : public Source {
 public:
  explicit PlainFileSource(std::shared_ptr<const InputFile> file)
      : file_(std::move(file)) {}

  const std::string& name() const override { return file_->name(); }

  const char* kind() const override { return "file"; }

  absl::StatusOr<std::unique_ptr<SourceReader>> Open() const override {
    return std::make_unique<PlainFileReader>(file_);
  }

 private:
  const std::shared_ptr<const InputFile> file_;
};

}  // namespace

std::unique_ptr<Source> MakePlainFileSource(
    std::shared_ptr<const InputFile> file) {
  return std::make_unique<PlainFileSource>(std::move(file));
}

}  // namespace quire
