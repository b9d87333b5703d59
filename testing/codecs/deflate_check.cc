// SPDX-License-Identifier: Apache-2.0
#include "testing/codecs/deflate_check.h"

#include <zlib.h>

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"

#include "codecs/base/check.h"
#include "codecs/zlib/deflate_decoder.h"

namespace quire {
namespace {

struct Outcome {
  // The stream is valid, ends within the output buffer, and nothing follows it.
  bool whole = false;
  // All of the output buffer is text, whatever follows.
  bool full = false;
  std::vector<uint8_t> text;
};

Outcome ByZlib(ByteView stored, ByteView dictionary, size_t output_size) {
  Outcome outcome;
  z_stream stream = {};
  inflateInit2(&stream, -15);
  if (!dictionary.empty()) {
    inflateSetDictionary(&stream, dictionary.data(),
                         static_cast<uInt>(dictionary.size()));
  }
  // zlib rejects null pointers; one more byte reveals a wrong end.
  outcome.text.resize(output_size + 1);
  std::vector<uint8_t> input(stored.begin(), stored.end());
  uint8_t nothing = 0;
  stream.next_in = input.empty() ? &nothing : input.data();
  stream.avail_in = static_cast<uInt>(input.size());
  stream.next_out = outcome.text.data();
  stream.avail_out = static_cast<uInt>(outcome.text.size());
  const int result = inflate(&stream, Z_FINISH);
  const size_t size = outcome.text.size() - stream.avail_out;
  outcome.whole =
      result == Z_STREAM_END && stream.avail_in == 0 && size <= output_size;
  outcome.full = size >= output_size;
  outcome.text.resize(std::min(size, output_size));
  inflateEnd(&stream);
  return outcome;
}

Outcome ByDecoder(ByteView stored, ByteView dictionary, size_t output_size,
                  size_t step, size_t slack) {
  Outcome outcome;
  outcome.text.resize(output_size + slack);
  DeflateDecoder decoder;
  decoder.Start(stored, outcome.text, dictionary);
  size_t size = 0;
  bool good = true;
  for (size_t wanted = 0; good && size >= wanted && wanted < output_size;) {
    wanted = std::min(output_size, std::max(size, wanted) + step);
    const auto decoded = decoder.DecodeTo(wanted);
    good = decoded.ok();
    size = decoded.value_or(0);
  }
  outcome.full = good && size >= output_size;
  outcome.whole = good && size <= output_size && decoder.Finish(size).ok();
  outcome.text.resize(good ? std::min(size, output_size) : 0);
  return outcome;
}

}  // namespace

std::string RawDeflate(const std::string& text, const std::string& dictionary,
                       int level, int strategy) {
  const auto require = [](bool good) { QUIRE_CHECK(good); };
  z_stream stream = {};
  require(deflateInit2(&stream, level, Z_DEFLATED, -15, 8, strategy) == Z_OK);
  if (!dictionary.empty()) {
    require(deflateSetDictionary(
                &stream, reinterpret_cast<const Bytef*>(dictionary.data()),
                static_cast<uInt>(dictionary.size())) == Z_OK);
  }
  std::string stored(deflateBound(&stream, text.size()) + 100, '\0');
  std::string in = text;
  stream.next_in = reinterpret_cast<Bytef*>(in.data());
  stream.avail_in = static_cast<uInt>(in.size());
  stream.next_out = reinterpret_cast<Bytef*>(stored.data());
  stream.avail_out = static_cast<uInt>(stored.size());
  require(deflate(&stream, Z_FINISH) == Z_STREAM_END);
  stored.resize(stream.total_out);
  deflateEnd(&stream);
  return stored;
}

std::string DifferenceToZlib(ByteView stored, ByteView dictionary,
                             size_t output_size, size_t step) {
  const Outcome expected = ByZlib(stored, dictionary, output_size);
  for (const size_t slack : {size_t{0}, DeflateDecoder::kFastLoopMargin}) {
    for (const size_t one_step : {std::max<size_t>(output_size, 1), step}) {
      const Outcome found =
          ByDecoder(stored, dictionary, output_size, one_step, slack);
      const std::string how =
          absl::StrCat(" (slack ", slack, ", step ", one_step, ")");
      if (found.whole != expected.whole) {
        return absl::StrCat("zlib ", expected.whole ? "takes" : "refuses",
                            " the stream", how);
      }
      // Only one of the two may check the part of a match past the end of the
      // output buffer.
      if (found.full != expected.full && slack == 0) {
        return absl::StrCat("zlib ", expected.full ? "fills" : "does not fill",
                            " the output", how);
      }
      if ((found.whole || (found.full && expected.full)) &&
          found.text != expected.text) {
        return absl::StrCat("the text differs", how);
      }
    }
  }
  return "";
}

}  // namespace quire
