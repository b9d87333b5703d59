// SPDX-License-Identifier: Apache-2.0
//
// Decodes any bytes with DeflateDecoder and zlib: both must accept or refuse
// the stream and give the same text. The first four bytes choose the sizes of
// the output buffer, the dictionary, and the steps.
#include <cstdint>
#include <string>
#include <vector>

#include "codecs/base/bytes.h"
#include "codecs/base/check.h"
#include "codecs/base/endian.h"
#include "testing/codecs/deflate_check.h"

namespace quire {
namespace {

constexpr size_t kHeaderSize = 4;

void Check(ByteView input) {
  if (input.size() < kHeaderSize) {
    return;
  }
  const size_t output_size = LoadLittleEndian<uint16_t>(input.data());
  std::vector<uint8_t> dictionary(size_t{input[2]} * 160);
  for (size_t i = 0; i < dictionary.size(); ++i) {
    dictionary[i] = static_cast<uint8_t>(i * i >> 5);
  }
  // Memory of the exact size, for AddressSanitizer.
  const std::vector<uint8_t> stored(input.begin() + kHeaderSize, input.end());
  const std::string difference =
      DifferenceToZlib(stored, dictionary, output_size, size_t{1} + input[3]);
  QUIRE_CHECK(difference.empty(), difference);
}

}  // namespace
}  // namespace quire

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  quire::Check({data, size});
  return 0;
}
