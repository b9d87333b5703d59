// SPDX-License-Identifier: Apache-2.0
//
// Encodes any bytes with our encoder and zlib's, which must make the same
// stream, and searches the stream with the finder, which must find it. The
// first four bytes choose the parameters and how often the text is repeated.
#include <string>

#include "codecs/base/bytes.h"
#include "codecs/base/check.h"
#include "codecs/deflate/deflate_encoder.h"
#include "codecs/deflate/deflate_finder.h"
#include "testing/codecs/deflate_test_streams.h"

namespace quire {
namespace {

constexpr size_t kHeaderSize = 4;
constexpr size_t kTextSizeMax = size_t{1} << 18;

void Check(ByteView input) {
  if (input.size() <= kHeaderSize) {
    return;
  }
  const DeflateParameters parameters = {
      .level = static_cast<uint8_t>(1 + input[0] % 9),
      .memory_level = static_cast<uint8_t>(1 + input[1] % 9),
      .window_bits = static_cast<uint8_t>(9 + input[2] % 7),
      .strategy = static_cast<DeflateStrategy>(input[2] / 7 % 5)};
  const std::string piece(AsText(input.subspan(kHeaderSize)));
  std::string text;
  for (size_t i = 0; i <= input[3] && text.size() < kTextSizeMax; ++i) {
    text += piece;
  }
  const std::string stream =
      ZlibStream(parameters, text, DeflateContainer::kZlib);
  const size_t raw_size = stream.size() - 6;
  DeflateEncoder encoder;
  QUIRE_CHECK(EncodedStream(encoder, parameters, text) ==
              stream.substr(2, raw_size));
  DeflateFinder finder;
  finder.Find(AsBytes(stream), [&](const DeflateMember& member) {
    QUIRE_CHECK(member.offset != 2 || AsText(member.text) == text);
  });
}

}  // namespace
}  // namespace quire

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  quire::Check({data, size});
  return 0;
}
