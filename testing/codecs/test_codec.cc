// SPDX-License-Identifier: Apache-2.0
#include "testing/codecs/test_codec.h"

#include "absl/strings/strip.h"

#include "codecs/payload/recipe.h"

namespace quire {

TestCodec ParseTestCodec(absl::string_view name) {
  TestCodec codec;
  if (absl::ConsumeSuffix(&name, "/inflate")) {
    codec.inflated_text_size_max = kInflatedBlockSizeMax;
  }
  const bool has_partitions = absl::ConsumeSuffix(&name, "/parts");
  codec.spec = ParseCodecSpec(name).value();
  codec.spec.partition_size_bytes = has_partitions ? kPartitionSizeBytesMin : 0;
  return codec;
}

}  // namespace quire
