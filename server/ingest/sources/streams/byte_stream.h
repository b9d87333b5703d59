// SPDX-License-Identifier: GPL-3.0-or-later
//
// Sequential bytes of a file or a decompressor: the input of tar and WARC
// parsers.
#ifndef QUIRE_SERVER_INGEST_SOURCES_STREAMS_BYTE_STREAM_H_
#define QUIRE_SERVER_INGEST_SOURCES_STREAMS_BYTE_STREAM_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "codecs/base/bytes.h"
#include "server/archive/files/file_io.h"

namespace quire {

// A check of text after which that text can be trusted. Its stream changes it,
// on the thread that reads.
struct TextCheck {
  enum class State {
    kAwaited,
    kPassed,
    // It failed, or its stream ended or was dropped before.
    kFailed,
  };

  State state = State::kAwaited;
};

// Blocks on I/O. Thread-compatible.
class ByteStream {
 public:
  virtual ~ByteStream() = default;

  // Reads up to out.size() bytes; returns 0 only at the end.
  // REQUIRES: !out.empty().
  // Errors: DataLoss     malformed or truncated compressed data.
  //         Unavailable  the file cannot be read.
  virtual absl::StatusOr<size_t> Read(MutableByteView out) = 0;

  // Skips `size_bytes`; returns the number skipped, which is smaller only at
  // the end. The default reads them. Errors: as Read().
  virtual absl::StatusOr<uint64_t> Skip(uint64_t size_bytes);

  // Offset of the stream's end; unset if only reading can tell.
  virtual std::optional<uint64_t> EndOffset() const { return std::nullopt; }

  // True if a checksum was verified for every byte read.
  virtual bool IsVerified() const { return false; }

  // End of the independently compressed part that begins at byte `text_offset`
  // of the stream; unset if none does, or if its end has not been read.
  virtual std::optional<uint64_t> PartEnd(uint64_t text_offset) const {
    static_cast<void>(text_offset);
    return std::nullopt;
  }

  // Returns the check that the end of the first `text_size_bytes` of the stream
  // awaits, such as that of the checksum at the end of a gzip member; null if
  // it was checked, or has no check.
  // REQUIRES: that many bytes were read since the last SkipPart().
  virtual std::shared_ptr<const TextCheck> AwaitedCheck(
      uint64_t text_size_bytes) const {
    static_cast<void>(text_size_bytes);
    return nullptr;
  }

  // A skipped part of a compressed file.
  struct SkippedPart {
    // Offset of its first byte in the stream, as that was until then.
    uint64_t text_offset = 0;
    // In the file.
    uint64_t offset = 0;
    uint64_t size_bytes = 0;
    // The stream has ended: no readable part follows.
    bool is_last = false;
  };

  // True if a part can begin with `text`: its first kPartStartSizeBytes, or all
  // of it if it has fewer.
  using IsPartStart = bool (*)(absl::string_view text);
  static constexpr size_t kPartStartSizeBytes = 1024;

  // Skips the rest of the independently compressed part, such as a gzip member,
  // that contains byte `text_offset` of the stream, also after an error. Read()
  // continues at the start of the next part that `is_start` accepts; that
  // becomes byte 0. Returns nullopt if the stream cannot do this.
  // REQUIRES: `text_offset` is at most the number of bytes read.
  // Errors: as Read(), except damage.
  virtual absl::StatusOr<std::optional<SkippedPart>> SkipPart(
      uint64_t text_offset, IsPartStart is_start) {
    static_cast<void>(text_offset);
    static_cast<void>(is_start);
    return std::nullopt;
  }

  // Makes Read() continue at byte `offset` of the stream; false if it cannot.
  virtual bool Seek(uint64_t offset) {
    static_cast<void>(offset);
    return false;
  }
};

// Starts a pass over a stream: at its first byte, each time.
using OpenStream = std::function<absl::StatusOr<std::unique_ptr<ByteStream>>()>;

// A regular file, open for reading. All passes over an input share it, so they
// see the same file even if another takes its name. Immutable, thread-safe.
class InputFile {
 public:
  // `name` is for messages. REQUIRES: `fd` is open on a regular file.
  InputFile(UniqueFd fd, std::string name);

  // Follows symbolic links.
  // Errors: NotFound, PermissionDenied, Unavailable  from the system.
  //         InvalidArgument  not a regular file.
  static absl::StatusOr<std::shared_ptr<const InputFile>> Open(
      const std::string& path);

  const std::string& name() const { return name_; }

  // Current size. Errors: Unavailable.
  absl::StatusOr<uint64_t> SizeBytes() const;

  // Modification time, in milliseconds since 1970-01-01 UTC, truncated to
  // seconds as in tars and zips; unset if it is not known. Errors: Unavailable.
  absl::StatusOr<std::optional<int64_t>> ModifiedTimeMs() const;

  // Like pread(): up to out.size() bytes, 0 at the end. Errors: Unavailable.
  absl::StatusOr<size_t> ReadAt(uint64_t offset, MutableByteView out) const;

 private:
  UniqueFd fd_;
  std::string name_;
};

// The bytes of a file from `offset` on, up to `end_offset` or its end.
class FileStream final : public ByteStream {
 public:
  explicit FileStream(std::shared_ptr<const InputFile> file,
                      uint64_t offset = 0, uint64_t end_offset = UINT64_MAX);

  absl::StatusOr<size_t> Read(MutableByteView out) override;
  // Moves the position, without I/O.
  absl::StatusOr<uint64_t> Skip(uint64_t size_bytes) override;

  uint64_t offset() const { return offset_; }

  std::optional<uint64_t> EndOffset() const override {
    const absl::StatusOr<uint64_t> size_bytes = file_->SizeBytes();
    return size_bytes.ok() ? std::optional(std::min(*size_bytes, end_offset_))
                           : std::nullopt;
  }

  bool Seek(uint64_t offset) override {
    offset_ = offset;
    return true;
  }

  const InputFile& file() const { return *file_; }

 private:
  const std::shared_ptr<const InputFile> file_;
  uint64_t offset_;
  const uint64_t end_offset_;
};

// Returns an error if a file that had `size_bytes` when its reading began ends
// at `offset`, before that. Errors: Unavailable.
absl::Status CheckNotCut(const InputFile& file, uint64_t size_bytes,
                         uint64_t offset);

// Bytes in memory, which must outlive the stream. For tests.
class MemoryStream final : public ByteStream {
 public:
  // Reads return at most `read_size_max` bytes at a time.
  explicit MemoryStream(ByteView bytes, size_t read_size_max = SIZE_MAX)
      : bytes_(bytes), rest_(bytes), read_size_max_(read_size_max) {}

  absl::StatusOr<size_t> Read(MutableByteView out) override;

  bool Seek(uint64_t offset) override {
    rest_ = bytes_.subspan(std::min<uint64_t>(offset, bytes_.size()));
    return true;
  }

 private:
  ByteView bytes_;
  ByteView rest_;
  size_t read_size_max_;
};

// The output of a decompressor, up to a limit.
class BoundedStream final : public ByteStream {
 public:
  // `name` is for messages.
  BoundedStream(std::unique_ptr<ByteStream> stream, std::string name,
                uint64_t size_bytes_max)
      : stream_(std::move(stream)),
        name_(std::move(name)),
        size_bytes_max_(size_bytes_max) {}

  // Errors: ResourceExhausted  more than `size_bytes_max`; and those of the
  //                            stream.
  absl::StatusOr<size_t> Read(MutableByteView out) override;

  bool IsVerified() const override { return stream_->IsVerified(); }

  std::optional<uint64_t> PartEnd(uint64_t text_offset) const override {
    return stream_->PartEnd(text_offset);
  }

  std::shared_ptr<const TextCheck> AwaitedCheck(
      uint64_t text_size_bytes) const override {
    return stream_->AwaitedCheck(text_size_bytes);
  }

  absl::StatusOr<std::optional<SkippedPart>> SkipPart(
      uint64_t text_offset, IsPartStart is_start) override {
    return stream_->SkipPart(text_offset, is_start);
  }

  bool Seek(uint64_t offset) override {
    if (!stream_->Seek(offset)) {
      return false;
    }
    read_bytes_ = offset;
    return true;
  }

 private:
  const std::unique_ptr<ByteStream> stream_;
  const std::string name_;
  const uint64_t size_bytes_max_;
  uint64_t read_bytes_ = 0;
};

// Default of Skip() for streams and source readers.
template <typename Reader>
absl::StatusOr<uint64_t> SkipByReading(Reader& reader, uint64_t size_bytes) {
  std::vector<uint8_t> sink(
      static_cast<size_t>(std::min<uint64_t>(size_bytes, 64 << 10)));
  uint64_t skipped = 0;
  while (skipped < size_bytes) {
    const auto want = static_cast<size_t>(
        std::min<uint64_t>(sink.size(), size_bytes - skipped));
    absl::StatusOr<size_t> got = reader.Read(MutableByteView(sink).first(want));
    if (!got.ok()) {
      return got.status();
    }
    if (*got == 0) {
      break;
    }
    skipped += *got;
  }
  return skipped;
}

// Reads until `out` is full or the stream ends; returns the number of bytes.
// Errors: as ByteStream::Read().
absl::StatusOr<size_t> ReadFully(ByteStream& stream, MutableByteView out);

}  // namespace quire

#endif  // QUIRE_SERVER_INGEST_SOURCES_STREAMS_BYTE_STREAM_H_
