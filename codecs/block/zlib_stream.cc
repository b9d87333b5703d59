// SPDX-License-Identifier: Apache-2.0
#include "codecs/block/zlib_stream.h"

// zlib's interface takes const input only with this.
#define ZLIB_CONST
#include <zlib.h>

#include <cstdint>

#include "absl/strings/str_cat.h"

#include "codecs/base/status_macros.h"

namespace quire {
namespace {

// Negative: no zlib header and trailer.
constexpr int kRawWindowBits = -15;
constexpr int kMemoryLevel = 8;

absl::Status NoMemory() {
  return absl::ResourceExhaustedError("not enough memory for zlib's state");
}

}  // namespace

size_t DeflateSizeMax(size_t raw_size) {
  return deflateBound(nullptr, static_cast<uLong>(raw_size));
}

DeflateStream::DeflateStream(int level) : level_(level) {}

DeflateStream::~DeflateStream() {
  if (stream_ != nullptr) {
    deflateEnd(stream_.get());
  }
}

absl::StatusOr<size_t> DeflateStream::Compress(ByteView raw,
                                               MutableByteView stored) {
  if (stream_ == nullptr) {
    auto stream = std::make_unique<z_stream>();
    if (deflateInit2(stream.get(), level_, Z_DEFLATED, kRawWindowBits,
                     kMemoryLevel, Z_DEFAULT_STRATEGY) != Z_OK) {
      return NoMemory();
    }
    stream_ = std::move(stream);
  } else {
    deflateReset(stream_.get());
  }
  stream_->next_in = raw.data();
  stream_->avail_in = static_cast<uInt>(raw.size());
  stream_->next_out = stored.data();
  stream_->avail_out = static_cast<uInt>(stored.size());
  if (deflate(stream_.get(), Z_FINISH) != Z_STREAM_END) {
    return absl::InternalError(absl::StrCat(
        "zlib needed more than ", stored.size(), " bytes for ", raw.size()));
  }
  return stored.size() - stream_->avail_out;
}

InflateStream::InflateStream() = default;

InflateStream::~InflateStream() {
  if (stream_ != nullptr) {
    inflateEnd(stream_.get());
  }
}

absl::Status InflateStream::Start(ByteView stored) {
  if (stream_ == nullptr) {
    auto stream = std::make_unique<z_stream>();
    if (inflateInit2(stream.get(), kRawWindowBits) != Z_OK) {
      return NoMemory();
    }
    stream_ = std::move(stream);
  } else {
    inflateReset(stream_.get());
  }
  stream_->next_in = stored.data();
  stream_->avail_in = static_cast<uInt>(stored.size());
  at_end_ = false;
  return absl::OkStatus();
}

absl::StatusOr<size_t> InflateStream::Read(MutableByteView out) {
  if (at_end_ || out.empty()) {
    return 0;
  }
  stream_->next_out = out.data();
  stream_->avail_out = static_cast<uInt>(out.size());
  // Z_FINISH promises that `out` holds all that is left, and spares zlib its
  // copy of the window where it does. Where it does not, zlib calls that a
  // buffer error, and reading on is allowed.
  const int result = inflate(stream_.get(), Z_FINISH);
  at_end_ = result == Z_STREAM_END;
  if (at_end_ || (result == Z_BUF_ERROR && stream_->avail_out == 0)) {
    return out.size() - stream_->avail_out;
  }
  if (result == Z_MEM_ERROR) {
    return NoMemory();
  }
  if (result == Z_BUF_ERROR) {
    return absl::DataLossError("the DEFLATE stream is cut short");
  }
  return absl::DataLossError(absl::StrCat(
      "malformed DEFLATE stream: ",
      stream_->msg == nullptr ? "needs a dictionary" : stream_->msg));
}

absl::Status InflateStream::Finish() {
  // The last symbol of a stream gives no text: it may be unread still.
  uint8_t more = 0;
  QUIRE_ASSIGN_OR_RETURN(const size_t size, Read({&more, 1}));
  if (size != 0) {
    return absl::DataLossError("the DEFLATE stream holds more than expected");
  }
  if (stream_->avail_in != 0) {
    return absl::DataLossError(absl::StrCat(
        stream_->avail_in, " bytes follow the end of the DEFLATE stream"));
  }
  return absl::OkStatus();
}

}  // namespace quire
