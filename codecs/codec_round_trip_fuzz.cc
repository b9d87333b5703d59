// SPDX-License-Identifier: Apache-2.0
//
// Any text through any codec at any level and back, whole and in part. The
// first six bytes choose codec, level and range; the rest is the text.
#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "codecs/base/bytes.h"
#include "codecs/base/check.h"
#include "codecs/base/endian.h"
#include "codecs/block_codec.h"
#include "testing/codecs/codec_test_inputs.h"

namespace quire {
namespace {

struct Subject {
  explicit Subject(const CodecSpec& spec) {
    static const auto* const context =
        new std::shared_ptr<const CodecContext>(MakeTestContext(4096));
    auto made = MakeBlockCodec(spec, *context, CodecUse::kEncodeAndDecode);
    QUIRE_CHECK(made.ok());
    codec = std::move(*made);
    scratch = codec->NewScratch();
  }

  std::unique_ptr<BlockCodec> codec;
  std::unique_ptr<BlockCodec::Scratch> scratch;
};

Subject& SubjectFor(const CodecInfo& info, int level) {
  static auto* const subjects = new std::map<std::pair<CodecId, int>, Subject>;
  return subjects
      ->try_emplace({info.id, level}, CodecSpec{.id = info.id, .level = level})
      .first->second;
}

constexpr size_t kHeaderSize = 6;

void RoundTrip(ByteView input) {
  if (input.size() <= kHeaderSize ||
      input.size() - kHeaderSize > kBlockSizeBytesMax) {
    return;
  }
  const CodecInfo& info = AllCodecs()[input[0] % AllCodecs().size()];
  const int level =
      info.level_min + input[1] % (info.level_max - info.level_min + 1);
  const Subject& subject = SubjectFor(info, level);
  const ByteView text = input.subspan(kHeaderSize);
  std::vector<uint8_t> stored(subject.codec->StoredSizeMax(text.size()));
  const auto stored_size =
      subject.codec->Encode(text, stored, *subject.scratch);
  QUIRE_CHECK(stored_size.ok() && *stored_size <= stored.size());
  stored.resize(*stored_size);
  stored.shrink_to_fit();

  std::vector<uint8_t> raw(text.size());
  QUIRE_CHECK(subject.codec->Decode(stored, raw, *subject.scratch).ok());
  QUIRE_CHECK(std::ranges::equal(raw, text));

  const size_t offset = LoadLittleEndian<uint16_t>(&input[2]) % text.size();
  const size_t size =
      LoadLittleEndian<uint16_t>(&input[4]) % (text.size() - offset + 1);
  std::vector<uint8_t> range(size);
  QUIRE_CHECK(
      subject.codec
          ->DecodeRange(stored, text.size(), offset, range, *subject.scratch)
          .ok());
  QUIRE_CHECK(std::ranges::equal(range, text.subspan(offset, size)));
}

}  // namespace
}  // namespace quire

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  quire::RoundTrip({data, size});
  return 0;
}
