// SPDX-License-Identifier: Apache-2.0
#include "testing/codecs/paper_form_testing.h"

#include <utility>

#include "gtest/gtest.h"

#include "codecs/base/bytes.h"
#include "testing/base/status_matchers.h"

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

}  // namespace quire
