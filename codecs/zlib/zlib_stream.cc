// SPDX-License-Identifier: Apache-2.0
#include "codecs/zlib/zlib_stream.h"

// Makes zlib's interface accept const input.
#define ZLIB_CONST
#include <zlib.h>

#include "absl/strings/str_cat.h"

#include "codecs/base/check.h"

namespace quire {
namespace {

// Negative: no zlib header and trailer.
constexpr int kRawWindowBits = -15;
constexpr int kMemoryLevel = 8;

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
                                               MutableByteView stored,
                                               ByteView dictionary,
                                               DeflateEnding ending) {
  if (stream_ == nullptr) {
    auto stream = std::make_unique<z_stream>();
    // Fails only if out of memory.
    QUIRE_CHECK(deflateInit2(stream.get(), level_, Z_DEFLATED, kRawWindowBits,
                             kMemoryLevel, Z_DEFAULT_STRATEGY) == Z_OK);
    stream_ = std::move(stream);
  } else {
    deflateReset(stream_.get());
  }
  if (!dictionary.empty() &&
      deflateSetDictionary(stream_.get(), dictionary.data(),
                           static_cast<uInt>(dictionary.size())) != Z_OK) {
    return absl::InternalError("zlib refused its dictionary");
  }
  stream_->next_in = raw.data();
  stream_->avail_in = static_cast<uInt>(raw.size());
  stream_->next_out = stored.data();
  stream_->avail_out = static_cast<uInt>(stored.size());
  const bool is_final = ending == DeflateEnding::kFinalBlock;
  const int result = deflate(stream_.get(), is_final ? Z_FINISH : Z_FULL_FLUSH);
  // A flush is complete if there is space left (zlib.h, "deflate").
  if (is_final ? result != Z_STREAM_END
               : result != Z_OK || stream_->avail_out == 0) {
    return absl::InternalError(absl::StrCat(
        "zlib needed more than ", stored.size(), " bytes for ", raw.size()));
  }
  return stored.size() - stream_->avail_out;
}

}  // namespace quire
