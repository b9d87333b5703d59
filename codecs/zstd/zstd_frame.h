// SPDX-License-Identifier: Apache-2.0
//
// Reads blocks stored as one zstd frame each (RFC 8878), with or without a
// dictionary of raw content.
#ifndef QUIRE_CODECS_ZSTD_ZSTD_FRAME_H_
#define QUIRE_CODECS_ZSTD_ZSTD_FRAME_H_

#include <cstddef>
#include <memory>

#include "absl/status/status.h"

#include "codecs/base/bytes.h"

namespace quire {

class ZstdDecoder;

// A reader and its memory, reused from frame to frame.
//
// The dictionary is text that precedes every block: matches may reach back into
// it. It is raw content even if it begins like a trained zstd dictionary (RFC
// 8878, section 5). It is borrowed, not copied; passing the same one again is
// free. An empty one means none.
//
// `stored` is untrusted. It must be exactly one frame: not several, not
// skippable, and not of a format older than zstd 1.0.
//
// Thread-compatible.
class ZstdFrameReader {
 public:
  ZstdFrameReader();
  ~ZstdFrameReader();

  // Decodes a frame of exactly raw.size() bytes of text. On failure the
  // contents of `raw` are unspecified.
  // Errors: DataLoss  `stored` is not such a frame.
  absl::Status Decode(ByteView stored, ByteView dictionary,
                      MutableByteView raw);

  // Decodes bytes [offset, offset + out.size()) of a frame of `raw_size` bytes
  // of text. Stops at their end and may miss damage after it.
  // REQUIRES: offset + out.size() <= raw_size.
  // Errors: as Decode().
  absl::Status DecodeRange(ByteView stored, ByteView dictionary,
                           size_t raw_size, size_t offset, MutableByteView out);

 private:
  class Library;

  // Created at the first use.
  Library& GetLibrary();

  // Returns a buffer for `size_bytes` of text, with unspecified contents.
  MutableByteView TextBuffer(size_t size_bytes);

  const std::unique_ptr<ZstdDecoder> decoder_;
  std::unique_ptr<Library> library_;
  std::unique_ptr<uint8_t[]> text_;
  size_t text_size_bytes_ = 0;
};

}  // namespace quire

#endif  // QUIRE_CODECS_ZSTD_ZSTD_FRAME_H_
