// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/ingest/sources/gzip_stream.h"

#include <zlib.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

#include "codecs/base/status_macros.h"

namespace quire {
namespace {

constexpr size_t kInputSizeBytes = 64 << 10;
// 15 bits of window, and 16 for "a gzip header and nothing else".
constexpr int kGzipWindowBits = 15 + 16;

}  // namespace

struct GzipStream::Inflater {
  z_stream stream = {};
};

GzipStream::GzipStream(std::unique_ptr<ByteStream> compressed, std::string name,
                       std::unique_ptr<Inflater> inflater)
    : compressed_(std::move(compressed)),
      name_(std::move(name)),
      inflater_(std::move(inflater)),
      input_(kInputSizeBytes) {}

absl::StatusOr<std::unique_ptr<GzipStream>> GzipStream::Create(
    std::unique_ptr<ByteStream> compressed, std::string name) {
  auto inflater = std::make_unique<Inflater>();
  if (inflateInit2(&inflater->stream, kGzipWindowBits) != Z_OK) {
    return absl::ResourceExhaustedError(
        absl::StrCat(name, ": no memory to decompress it"));
  }
  return std::unique_ptr<GzipStream>(new GzipStream(
      std::move(compressed), std::move(name), std::move(inflater)));
}

GzipStream::~GzipStream() {
  inflateEnd(&inflater_->stream);
}

uint64_t GzipStream::offset() const {
  return read_bytes_ - inflater_->stream.avail_in;
}

absl::Status GzipStream::Damaged(const char* what) const {
  return absl::DataLossError(absl::StrCat(
      name_, ": ", what, " at byte ", offset(), " of the compressed file, in ",
      "gzip member ", member_count_, " that starts at byte ", member_offset_));
}

absl::Status GzipStream::Refill() {
  z_stream& z = inflater_->stream;
  if (z.avail_in == 0) {
    QUIRE_ASSIGN_OR_RETURN(const size_t got, compressed_->Read(input_));
    z.next_in = input_.data();
    z.avail_in = static_cast<uInt>(got);
    read_bytes_ += got;
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> GzipStream::StartMember() {
  z_stream& z = inflater_->stream;
  QUIRE_RETURN_IF_ERROR(Refill());
  // Padding to the size of some medium's blocks.
  const bool padded = member_count_ > 0 && z.avail_in > 0 && z.next_in[0] == 0;
  while (padded && z.avail_in > 0) {
    if (z.next_in[0] != 0) {
      return Damaged("bytes that are not gzip");
    }
    ++z.next_in;
    --z.avail_in;
    QUIRE_RETURN_IF_ERROR(Refill());
  }
  if (z.avail_in == 0) {
    at_end_ = true;
    return false;
  }
  member_offset_ = offset();
  ++member_count_;
  inflateReset(&z);
  in_member_ = true;
  return true;
}

absl::StatusOr<size_t> GzipStream::Read(MutableByteView out) {
  z_stream& z = inflater_->stream;
  z.next_out = out.data();
  const size_t want = std::min<size_t>(out.size(), 1 << 30);
  z.avail_out = static_cast<uInt>(want);
  while (!at_end_ && z.avail_out == want) {
    if (!in_member_) {
      QUIRE_ASSIGN_OR_RETURN(const bool more, StartMember());
      if (!more) {
        break;
      }
    }
    QUIRE_RETURN_IF_ERROR(Refill());
    if (z.avail_in == 0) {
      return Damaged("the file ends (is it truncated?)");
    }
    const int result = inflate(&z, Z_NO_FLUSH);
    if (result == Z_STREAM_END) {
      in_member_ = false;
    } else if (result != Z_OK) {
      if (z.avail_out < want) {
        // What came before the damage is good; zlib says the same next time.
        break;
      }
      return Damaged(z.msg != nullptr ? z.msg : "damaged gzip data");
    }
  }
  return want - z.avail_out;
}

}  // namespace quire
