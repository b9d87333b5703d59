// SPDX-License-Identifier: Apache-2.0
#include "codecs/rlz/paper/paper_form_testing.h"

#include <zlib.h>

#include <utility>

#include "gtest/gtest.h"

#include "codecs/base/bytes.h"
#include "codecs/base/status_matchers.h"

namespace quire {

CodecUnderTest::CodecUnderTest(CodecId id, const std::string& dictionary) {
  auto context = std::make_shared<CodecContext>();
  context->dictionary = dictionary;
  auto codec = MakeBlockCodec({.id = id, .level = FindCodec(id)->level_max},
                              context, CodecUse::kEncodeAndDecode);
  EXPECT_THAT(codec, IsOk());
  codec_ = std::move(codec).value();
  scratch_ = codec_->NewScratch();
}

std::string CodecUnderTest::Encode(const std::string& text) {
  std::string stored(codec_->StoredSizeMax(text.size()), '\0');
  const auto size =
      codec_->Encode(AsBytes(text), AsMutableBytes(stored), *scratch_);
  EXPECT_THAT(size, IsOk());
  return stored.substr(0, size.value_or(0));
}

absl::StatusOr<std::string> CodecUnderTest::Decode(const std::string& stored,
                                                   size_t size) {
  std::string raw(size, '?');
  const absl::Status status =
      codec_->Decode(AsBytes(stored), AsMutableBytes(raw), *scratch_);
  if (!status.ok()) {
    return status;
  }
  return raw;
}

std::string RawDeflate(const std::string& bytes,
                       const std::string& dictionary) {
  z_stream stream = {};
  EXPECT_EQ(deflateInit2(&stream, 9, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY),
            Z_OK);
  if (!dictionary.empty()) {
    deflateSetDictionary(&stream,
                         reinterpret_cast<const Bytef*>(dictionary.data()),
                         static_cast<uInt>(dictionary.size()));
  }
  std::string out(bytes.size() * 2 + 100, '\0');
  std::string in = bytes;
  stream.next_in = reinterpret_cast<Bytef*>(in.data());
  stream.avail_in = static_cast<uInt>(in.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

}  // namespace quire
