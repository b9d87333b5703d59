// SPDX-License-Identifier: Apache-2.0
//
// Reads blocks that are stored as one zstd frame each (RFC 8878), with or
// without a dictionary of raw content: for every codec that stores frames.
#ifndef QUIRE_CODECS_ZSTD_ZSTD_FRAME_H_
#define QUIRE_CODECS_ZSTD_ZSTD_FRAME_H_

#include <cstddef>
#include <memory>

#include "absl/status/status.h"

#include "codecs/base/bytes.h"

namespace quire {

class ZstdDecoder;

// A reader and the memory that it reuses from frame to frame.
//
// The dictionary is text that precedes every block: matches may reach back
// into it. Even if it begins as a trained dictionary of zstd's does (RFC 8878,
// section 5), it is taken as content and nothing else. It is referred to, not
// copied, and giving the same one again costs nothing; an empty one is none.
//
// `stored` is untrusted everywhere, and must be one frame with nothing before
// or behind it: not several frames, none that is to be skipped, and no format
// older than zstd 1.0.
//
// Thread-compatible.
class ZstdFrameReader {
 public:
  ZstdFrameReader();
  ~ZstdFrameReader();

  // Decodes a frame of exactly raw.size() bytes of text. On failure the
  // contents of `raw` are unspecified.
  // Errors: DataLoss  `stored` is no such frame.
  absl::Status Decode(ByteView stored, ByteView dictionary,
                      MutableByteView raw);

  // Decodes bytes [offset, offset + out.size()) of a frame of `raw_size` bytes
  // of text. It stops where they end, and may miss damage behind them.
  // REQUIRES: offset + out.size() <= raw_size.
  // Errors: as Decode().
  absl::Status DecodeRange(ByteView stored, ByteView dictionary,
                           size_t raw_size, size_t offset, MutableByteView out);

 private:
  class Library;

  // Made when first needed.
  Library& GetLibrary();

  // Room for `size_bytes` of text, with unspecified contents.
  MutableByteView TextBuffer(size_t size_bytes);

  const std::unique_ptr<ZstdDecoder> decoder_;
  std::unique_ptr<Library> library_;
  std::unique_ptr<uint8_t[]> text_;
  size_t text_size_bytes_ = 0;
};

}  // namespace quire

#endif  // QUIRE_CODECS_ZSTD_ZSTD_FRAME_H_
