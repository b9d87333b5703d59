// SPDX-License-Identifier: Apache-2.0
//
// Frames made and decoded by libzstd, as reference for tests.
#ifndef QUIRE_TESTING_CODECS_ZSTD_TEST_FRAMES_H_
#define QUIRE_TESTING_CODECS_ZSTD_TEST_FRAMES_H_

#include <string>

#include "codecs/base/bytes.h"

namespace quire {

struct ZstdFrameOptions {
  // A level of zstd; may be negative.
  int level = 3;
  bool has_size = true;
  bool has_checksum = false;
  // Approximate size of the largest inner block; 0 for zstd's choice.
  int inner_size = 0;
};

// `dictionary` is always raw content. Aborts if libzstd fails.
std::string MakeZstdFrame(ByteView text, ByteView dictionary,
                          const ZstdFrameOptions& options);

// True if `stored` is, to libzstd, a frame of exactly raw.size() bytes.
bool LibraryDecodes(ByteView stored, ByteView dictionary, MutableByteView raw);

}  // namespace quire

#endif  // QUIRE_TESTING_CODECS_ZSTD_TEST_FRAMES_H_
