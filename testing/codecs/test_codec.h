// SPDX-License-Identifier: Apache-2.0
#ifndef QUIRE_TESTING_CODECS_TEST_CODEC_H_
#define QUIRE_TESTING_CODECS_TEST_CODEC_H_

#include <cstddef>

#include "absl/strings/string_view.h"

#include "codecs/block_codec.h"

namespace quire {

// A codec as tests name it: NAME[:LEVEL], then "/parts" for partitions of the
// smallest size and "/inflate" for recipes.
struct TestCodec {
  CodecSpec spec;
  // For MakePayloadCodec().
  size_t inflated_text_size_max = 0;
};

// Aborts if there is no such codec.
TestCodec ParseTestCodec(absl::string_view name);

}  // namespace quire

#endif  // QUIRE_TESTING_CODECS_TEST_CODEC_H_
