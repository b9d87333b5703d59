// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/ingest/sources/lines/line_text.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/status/statusor.h"

#include "codecs/base/status_macros.h"
#include "server/ingest/sources/compressed_text.h"
#include "server/ingest/sources/container_detection.h"
#include "server/ingest/sources/input_limits.h"
#include "server/ingest/sources/lines/utf16_stream.h"

namespace quire {
namespace {

// Detection needs the dictionary of a zstd file.
constexpr size_t kCompressedStartSizeBytes = size_t{17} << 20;

// `start`, and then `rest`.
class ResumedStream final : public ByteStream {
 public:
  ResumedStream(std::vector<uint8_t> start, std::unique_ptr<ByteStream> rest)
      : start_(std::move(start)), rest_(std::move(rest)) {}

  absl::StatusOr<size_t> Read(MutableByteView out) override {
    const size_t size = std::min(out.size(), start_.size() - position_);
    if (size == 0) {
      return rest_->Read(out);
    }
    std::memcpy(out.data(), start_.data() + position_, size);
    position_ += size;
    return size;
  }

 private:
  const std::vector<uint8_t> start_;
  size_t position_ = 0;
  const std::unique_ptr<ByteStream> rest_;
};

}  // namespace

class LineText::FileBytes final : public ByteStream {
 public:
  explicit FileBytes(SourceReader& reader) : reader_(reader) {}

  absl::StatusOr<size_t> Read(MutableByteView out) override {
    absl::StatusOr<size_t> size = reader_.Read(out);
    has_failed_ = !size.ok();
    return size;
  }

  bool has_failed() const { return has_failed_; }

 private:
  SourceReader& reader_;
  bool has_failed_ = false;
};

LineText::LineText(SourceReader& reader,
                   std::optional<uint64_t> input_size_bytes_max,
                   uint64_t window_size_bytes_max)
    : reader_(reader),
      input_size_bytes_max_(input_size_bytes_max),
      window_size_bytes_max_(window_size_bytes_max),
      buffer_(kBufferSizeBytes) {}

LineText::~LineText() = default;

absl::Status LineText::Start(const SourceDocument& file,
                             const std::string& name) {
  auto bytes = std::make_unique<FileBytes>(reader_);
  file_bytes_ = bytes.get();
  stream_ = std::move(bytes);
  stream_ended_ = false;
  stream_status_ = absl::OkStatus();
  read_bytes_ = 0;
  is_compressed_ = false;
  begin_ = 0;
  end_ = 0;
  Fill();
  return MayBeCompressed(buffered()) ? DecompressIfCompressed(file, name)
                                     : absl::OkStatus();
}

void LineText::Close() {
  stream_.reset();
}

bool LineText::has_reader_failed() const {
  return file_bytes_->has_failed();
}

absl::Status LineText::DecompressIfCompressed(const SourceDocument& file,
                                              const std::string& name) {
  buffer_.resize(std::max(buffer_.size(), kCompressedStartSizeBytes));
  Fill();
  QUIRE_RETURN_IF_ERROR(stream_status_);
  const auto start = std::make_shared<const std::vector<uint8_t>>(
      buffer_.begin(), buffer_.begin() + static_cast<ptrdiff_t>(end_));
  // The text after them, once the compression is known.
  const auto rest = std::make_shared<std::unique_ptr<ByteStream>>();
  const auto open = [start,
                     rest]() -> absl::StatusOr<std::unique_ptr<ByteStream>> {
    if (*rest == nullptr) {
      return std::make_unique<MemoryStream>(*start);
    }
    return std::make_unique<ResumedStream>(*start, std::move(*rest));
  };
  QUIRE_ASSIGN_OR_RETURN(
      const CompressedText text,
      CompressedText::Detect(
          open, name,
          InputSizeBytesMax(input_size_bytes_max_, file.size_bytes.value_or(0)),
          window_size_bytes_max_));
  if (!text.is_compressed()) {
    return absl::OkStatus();
  }
  *rest = std::move(stream_);
  QUIRE_ASSIGN_OR_RETURN(stream_, text.Open());
  stream_ended_ = false;
  read_bytes_ = 0;
  is_compressed_ = true;
  end_ = 0;
  Fill();
  return absl::OkStatus();
}

absl::Status LineText::ConvertUtf16(bool is_big_endian,
                                    const std::string& name) {
  QUIRE_RETURN_IF_ERROR(stream_status_);
  stream_ = std::make_unique<Utf16Stream>(
      std::make_unique<ResumedStream>(
          std::vector<uint8_t>(buffer_.begin(),
                               buffer_.begin() + static_cast<ptrdiff_t>(end_)),
          std::move(stream_)),
      is_big_endian, name);
  stream_ended_ = false;
  end_ = 0;
  Fill();
  return absl::OkStatus();
}

void LineText::Fill() {
  if (begin_ > 0) {
    std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
  }
  while (end_ < buffer_.size() && !stream_ended_) {
    const absl::StatusOr<size_t> got =
        stream_->Read(MutableByteView(buffer_).subspan(end_));
    stream_status_ = got.status();
    stream_ended_ = !got.ok() || *got == 0;
    end_ += got.value_or(0);
    read_bytes_ += got.value_or(0);
  }
}

void LineText::FillMore(size_t size_bytes_max) {
  if (begin_ == 0 && end_ == buffer_.size()) {
    buffer_.resize(std::min(2 * buffer_.size(), size_bytes_max));
  }
  Fill();
}

std::shared_ptr<const TextCheck> LineText::AwaitedCheck(
    size_t size_bytes) const {
  return stream_->AwaitedCheck(read_bytes_ - (end_ - begin_) + size_bytes);
}

}  // namespace quire
