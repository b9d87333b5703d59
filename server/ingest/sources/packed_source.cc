// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/ingest/sources/packed_source.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include "codecs/base/byte_size.h"
#include "codecs/base/checksum.h"
#include "codecs/base/child_process.h"
#include "codecs/base/mutex.h"
#include "codecs/base/status_macros.h"
#include "server/ingest/sources/input_limits.h"

namespace quire {
namespace {

// Size of the pipe; a large one needs fewer switches between the processes.
constexpr int kPipeSizeBytes = 1 << 20;

// Bytes of a complete pass.
struct PassDigest {
  uint64_t size_bytes = 0;
  uint64_t checksum = 0;

  friend bool operator==(const PassDigest&, const PassDigest&) = default;
};

// State that all passes over a file share. Thread-safe.
class PackedFile {
 public:
  PackedFile(std::string name, std::vector<std::string> command)
      : name_(std::move(name)), command_(std::move(command)) {}

  const std::string& name() const { return name_; }

  const std::vector<std::string>& command() const { return command_; }

  // Errors: DataLoss  an earlier pass had other bytes.
  absl::Status Compare(const PassDigest& pass) ABSL_LOCKS_EXCLUDED(mutex_) {
    const MutexLock lock(&mutex_);
    if (!first_.has_value()) {
      first_ = pass;
    }
    if (*first_ == pass) {
      return absl::OkStatus();
    }
    return absl::DataLossError(absl::StrCat(
        name_, ": ", command_[0], " gave ",
        FormatCounted(pass.size_bytes, "byte", "bytes"), " of rows, and ",
        FormatCount(first_->size_bytes),
        first_->size_bytes == pass.size_bytes ? " others" : "",
        " in the first pass; do not change the input during a build"));
  }

  absl::Status Fault(const absl::Status& status) const {
    return absl::Status(status.code(), absl::StrCat(name_, ": ", command_[0],
                                                    " ", status.message()));
  }

 private:
  const std::string name_;
  const std::vector<std::string> command_;
  Mutex mutex_;
  std::optional<PassDigest> first_ ABSL_GUARDED_BY(mutex_);
};

// The standard output of a child that must end well.
class ChildStream final : public ByteStream {
 public:
  ChildStream(std::shared_ptr<PackedFile> file,
              std::unique_ptr<ChildProcess> child)
      : file_(std::move(file)), child_(std::move(child)) {
    // May be refused; then it has another size.
    fcntl(child_->out_fd(), F_SETPIPE_SZ, kPipeSizeBytes);
  }

  absl::StatusOr<size_t> Read(MutableByteView out) override {
    while (!has_ended_) {
      // Looked for first: what it has written is there then.
      const bool has_ended = child_->HasEnded();
      child_->ReadErrors();
      const ssize_t got =
          is_out_open_ ? read(child_->out_fd(), out.data(), out.size()) : -1;
      if (got > 0) {
        const auto size = static_cast<size_t>(got);
        size_bytes_ += size;
        checksum_.Add(out.first(size));
        return size;
      }
      is_out_open_ = is_out_open_ && got != 0;
      if (has_ended) {
        has_ended_ = true;
        end_ = Check();
        break;
      }
      child_->Wait(is_out_open_, /*time_max_ms=*/-1);
    }
    return end_.ok() ? absl::StatusOr<size_t>(0) : end_;
  }

 private:
  absl::Status Check() {
    const absl::Status ended = child_->CheckEnd();
    return ended.ok() ? file_->Compare({.size_bytes = size_bytes_,
                                        .checksum = checksum_.Get()})
                      : file_->Fault(ended);
  }

  const std::shared_ptr<PackedFile> file_;
  const std::unique_ptr<ChildProcess> child_;
  uint64_t size_bytes_ = 0;
  Checksummer64 checksum_;
  bool is_out_open_ = true;
  bool has_ended_ = false;
  absl::Status end_;
};

class PackedReader final : public SourceReader {
 public:
  PackedReader(std::shared_ptr<const InputFile> input,
               std::unique_ptr<ByteStream> stream)
      : input_(std::move(input)), stream_(std::move(stream)) {}

  absl::StatusOr<std::optional<SourceDocument>> Next() override {
    if (std::exchange(is_done_, true)) {
      return std::nullopt;
    }
    const std::string& path = input_->name();
    SourceDocument document;
    document.id = path.substr(path.rfind('/') + 1);
    QUIRE_ASSIGN_OR_RETURN(document.capture_time_ms, input_->ModifiedTimeMs());
    return document;
  }

  std::string Place() const override { return "the rows"; }

  absl::StatusOr<size_t> Read(MutableByteView out) override {
    return stream_->Read(out);
  }

 private:
  const std::shared_ptr<const InputFile> input_;
  const std::unique_ptr<ByteStream> stream_;
  bool is_done_ = false;
};

class PackedSource final : public Source {
 public:
  PackedSource(std::shared_ptr<const InputFile> input,
               std::shared_ptr<PackedFile> file, uint64_t size_bytes_max)
      : input_(std::move(input)),
        file_(std::move(file)),
        size_bytes_max_(size_bytes_max) {}

  const std::string& name() const override { return input_->name(); }

  const char* kind() const override { return "parquet"; }

  absl::StatusOr<std::optional<uint64_t>> StoredSizeBytes() const override {
    QUIRE_ASSIGN_OR_RETURN(const uint64_t size_bytes, input_->SizeBytes());
    return size_bytes;
  }

  absl::StatusOr<std::unique_ptr<SourceReader>> Open() const override {
    absl::StatusOr<std::unique_ptr<ChildProcess>> child =
        ChildProcess::Start(file_->command());
    if (!child.ok()) {
      return absl::FailedPreconditionError(absl::StrCat(
          file_->Fault(child.status()).message(),
          "; Parquet is read by it: install the Python package "
          "quire-archive[pack], so that it is in PATH, or set QUIRE_PACK"));
    }
    return std::make_unique<PackedReader>(
        input_, std::make_unique<BoundedStream>(
                    std::make_unique<ChildStream>(file_, *std::move(child)),
                    input_->name(), size_bytes_max_));
  }

 private:
  const std::shared_ptr<const InputFile> input_;
  const std::shared_ptr<PackedFile> file_;
  const uint64_t size_bytes_max_;
};

std::vector<std::string> ColumnsOf(const LineSplit& split) {
  std::vector<std::string> columns;
  for (const std::string& column :
       {split.id_field, split.text_field, split.time_field}) {
    if (!column.empty()) {
      columns.push_back(column);
    }
  }
  for (const LineSplit::Field& field : split.fields) {
    columns.push_back(field.path);
  }
  return columns;
}

}  // namespace

absl::StatusOr<bool> IsParquet(const InputFile& file) {
  std::array<uint8_t, kParquetMagic.size()> start = {};
  QUIRE_ASSIGN_OR_RETURN(const size_t size, file.ReadAt(0, start));
  return AsText(start).substr(0, size) == kParquetMagic;
}

std::unique_ptr<Source> MakePackedSource(std::shared_ptr<const InputFile> file,
                                         const SourceOptions& options) {
  const char* const program =
      std::getenv("QUIRE_PACK");  // NOLINT(concurrency-mt-unsafe)
  std::vector<std::string> command = {
      program == nullptr || *program == '\0' ? "quire-pack" : program, "rows"};
  // Without a field of the text the whole rows are the text.
  if (!options.split->text_field.empty()) {
    for (const std::string& column : ColumnsOf(*options.split)) {
      command.push_back(absl::StrCat("--column=", column));
    }
  }
  command.insert(command.end(), {"--", file->name()});
  std::string name = file->name();
  return std::make_unique<PackedSource>(
      std::move(file),
      std::make_shared<PackedFile>(std::move(name), std::move(command)),
      options.input_size_bytes_max.value_or(kInputSizeBytesMax));
}

}  // namespace quire
