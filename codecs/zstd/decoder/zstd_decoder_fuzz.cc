// SPDX-License-Identifier: Apache-2.0
//
// The decoder against libzstd: libzstd accepts each frame that it accepts, with
// the same bytes. A frame is the input itself, or made from it by libzstd and
// then changed at a few offsets, which gets deeper into the format.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "codecs/base/bytes.h"
#include "codecs/base/check.h"
#include "codecs/base/endian.h"
#include "codecs/zstd/decoder/sequence_copy.h"
#include "codecs/zstd/decoder/zstd_decoder.h"
#include "testing/codecs/codec_test_inputs.h"
#include "testing/codecs/zstd_test_frames.h"

namespace quire {
namespace {

void Compare(ByteView frame, ByteView dictionary, size_t raw_size, size_t size,
             bool is_sound) {
  static auto* const decoder = new ZstdDecoder;
  // Memory of exact size, for AddressSanitizer.
  const std::vector<uint8_t> stored(frame.begin(), frame.end());
  std::vector<uint8_t> expected(raw_size);
  std::vector<uint8_t> whole(raw_size);
  std::vector<uint8_t> prefix(size + (size % 2 == 0 ? 0 : kCopyExcess));
  const bool is_right = LibraryDecodes(stored, dictionary, expected);
  const bool is_whole =
      decoder->Decode(stored, dictionary, raw_size, raw_size, whole);
  const bool is_prefix =
      decoder->Decode(stored, dictionary, raw_size, size, prefix);
  QUIRE_CHECK(!is_sound || (is_right && is_whole && is_prefix));
  QUIRE_CHECK(!is_whole || (is_right && is_prefix && whole == expected));
  QUIRE_CHECK(!is_prefix || !is_right ||
              std::equal(prefix.begin(),
                         prefix.begin() + static_cast<ptrdiff_t>(size),
                         expected.begin()));
}

// Removes numbers from the front of `input`; zeros when it is empty.
uint16_t TakeNumber(ByteView& input) {
  if (input.size() < sizeof(uint16_t)) {
    input = {};
    return 0;
  }
  const auto number = LoadLittleEndian<uint16_t>(input.data());
  input = input.subspan(sizeof(uint16_t));
  return number;
}

// Text with many matches: pieces of the input, of the dictionary and of the
// text so far.
std::string MakeText(ByteView input, const std::string& dictionary) {
  constexpr size_t kSizeMax = 300000;
  std::string text(1, 'q');
  while (!input.empty() && text.size() < kSizeMax) {
    const size_t kind = input.front() % 4;
    const size_t size = input.front() / 4;
    input = input.subspan(1);
    const size_t place = TakeNumber(input);
    if (kind == 0) {
      const size_t count = std::min(size, input.size());
      text.append(reinterpret_cast<const char*>(input.data()), count);
      input = input.subspan(count);
    } else if (kind == 1) {
      text += dictionary.substr(place % dictionary.size(), 3 * size);
    } else if (kind == 2) {
      const size_t begin = text.size() - 1 - place % text.size();
      for (size_t i = 0; i < 3 * size; ++i) {
        text += text[begin + i];
      }
    } else {
      TestRandom random(place);
      text += RandomText(random, 200 * size, 1 + place % 500);
    }
  }
  return text;
}

void DecodeMade(ByteView input, const std::string& dictionary) {
  const size_t choice = TakeNumber(input);
  const size_t change_count = TakeNumber(input) % 6;
  std::vector<uint16_t> changes(2 * change_count);
  std::generate(changes.begin(), changes.end(),
                [&] { return TakeNumber(input); });
  const size_t wanted = TakeNumber(input);
  const std::string text = MakeText(input, dictionary);
  const ByteView known = choice % 2 == 0 ? ByteView() : AsBytes(dictionary);
  const ZstdFrameOptions options = {
      .level = static_cast<int>(choice / 2 % 28) - 5,
      .has_size = choice / 64 % 2 == 0,
      .inner_size = choice / 128 % 4 == 0 ? 1500 : 0};
  std::string frame = MakeZstdFrame(AsBytes(text), known, options);
  const size_t size = 1 + wanted * 5 % text.size();
  Compare(AsBytes(frame), known, text.size(), size, true);
  for (size_t i = 0; i < changes.size(); i += 2) {
    // Change the front with the headers more often than the rest.
    const size_t range = changes[i] % 2 == 0
                             ? std::min<size_t>(frame.size(), 200)
                             : frame.size();
    frame[changes[i] / 2 % range] = static_cast<char>(changes[i + 1]);
  }
  Compare(AsBytes(frame), known, text.size(), size, false);
}

void DecodeAny(ByteView input) {
  static const auto* const context =
      new std::shared_ptr<const CodecContext>(MakeTestContext(5000));
  const std::string& dictionary = (*context)->dictionary;
  const size_t kind = TakeNumber(input);
  if (kind % 2 == 0) {
    DecodeMade(input, dictionary);
    return;
  }
  const size_t raw_size = 1 + size_t{3} * TakeNumber(input);
  Compare(input, kind / 2 % 2 == 0 ? ByteView() : AsBytes(dictionary), raw_size,
          1 + kind % raw_size, false);
}

}  // namespace
}  // namespace quire

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  quire::DecodeAny({data, size});
  return 0;
}
