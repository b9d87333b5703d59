// SPDX-License-Identifier: Apache-2.0
#include "client/cli/formats/gzip_members.h"

#include <algorithm>

#include "codecs/base/check.h"
#include "codecs/base/status_macros.h"

namespace quire {
namespace {

constexpr size_t kBufferSizeBytes = size_t{64} << 10;
// zlib counts in 32 bits.
constexpr size_t kInputSizeBytesMax = size_t{1} << 30;
// A window of 15 bits, plus 16 for gzip's header and trailer.
constexpr int kGzipWindow = 15 + 16;
constexpr int kMemoryLevel = 8;

}  // namespace

GzipMembers::GzipMembers() : buffer_(kBufferSizeBytes) {
  QUIRE_CHECK(
      deflateInit2(&stream_, Z_DEFAULT_COMPRESSION, Z_DEFLATED, kGzipWindow,
                   kMemoryLevel, Z_DEFAULT_STRATEGY) == Z_OK,
      "zlib is out of memory");
}

GzipMembers::~GzipMembers() {
  deflateEnd(&stream_);
}

absl::Status GzipMembers::Write(ByteView bytes, Sink sink) {
  while (!bytes.empty()) {
    const ByteView part =
        bytes.first(std::min(bytes.size(), kInputSizeBytesMax));
    bytes = bytes.subspan(part.size());
    in_member_ = true;
    // zlib does not write to its input.
    stream_.next_in = const_cast<uint8_t*>(part.data());
    stream_.avail_in = static_cast<uInt>(part.size());
    QUIRE_RETURN_IF_ERROR(Deflate(Z_NO_FLUSH, sink));
  }
  return absl::OkStatus();
}

absl::Status GzipMembers::EndMember(Sink sink) {
  if (!in_member_) {
    return absl::OkStatus();
  }
  QUIRE_RETURN_IF_ERROR(Deflate(Z_FINISH, sink));
  in_member_ = false;
  QUIRE_CHECK(deflateReset(&stream_) == Z_OK, "zlib lost its state");
  return absl::OkStatus();
}

absl::Status GzipMembers::Deflate(int flush, Sink sink) {
  do {
    stream_.next_out = buffer_.data();
    stream_.avail_out = static_cast<uInt>(buffer_.size());
    QUIRE_CHECK(deflate(&stream_, flush) != Z_STREAM_ERROR,
                "zlib lost its state");
    const size_t size = buffer_.size() - stream_.avail_out;
    if (size > 0) {
      QUIRE_RETURN_IF_ERROR(sink(ByteView(buffer_).first(size)));
    }
  } while (stream_.avail_out == 0);
  return absl::OkStatus();
}

}  // namespace quire
