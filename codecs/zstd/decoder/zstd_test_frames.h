// SPDX-License-Identifier: Apache-2.0
//
// Frames made and decoded by libzstd, for tests: what a decoder is held
// against.
#ifndef QUIRE_CODECS_ZSTD_DECODER_ZSTD_TEST_FRAMES_H_
#define QUIRE_CODECS_ZSTD_DECODER_ZSTD_TEST_FRAMES_H_

#include <string>

#include "codecs/base/bytes.h"

namespace quire {

struct ZstdFrameOptions {
  // zstd's, which go below zero.
  int level = 3;
  bool has_size = true;
  bool has_checksum = false;
  // Of the largest inner block, roughly; 0 for zstd's own choice.
  int inner_size = 0;
};

// `dictionary` is raw content, whatever it looks like. Aborts if libzstd
// refuses.
std::string MakeZstdFrame(ByteView text, ByteView dictionary,
                          const ZstdFrameOptions& options);

// Whether `stored` is, to libzstd, a frame of exactly raw.size() bytes.
bool LibraryDecodes(ByteView stored, ByteView dictionary, MutableByteView raw);

}  // namespace quire

#endif  // QUIRE_CODECS_ZSTD_DECODER_ZSTD_TEST_FRAMES_H_
