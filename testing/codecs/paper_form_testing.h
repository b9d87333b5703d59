// SPDX-License-Identifier: Apache-2.0
//
// Helpers of the forms' tests.
#ifndef QUIRE_TESTING_CODECS_PAPER_FORM_TESTING_H_
#define QUIRE_TESTING_CODECS_PAPER_FORM_TESTING_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"

#include "codecs/block_codec.h"

namespace quire {

// Codec at its highest level, for this dictionary, with its own scratch.
class CodecUnderTest {
 public:
  CodecUnderTest(CodecId id, const std::string& dictionary);

  // Fails the test and returns an empty string if encoding fails.
  std::string Encode(const std::string& text);
  absl::StatusOr<std::string> Decode(const std::string& stored, size_t size);

  const BlockCodec& codec() const { return *codec_; }

  BlockCodec::Scratch& scratch() { return *scratch_; }

 private:
  std::unique_ptr<BlockCodec> codec_;
  std::unique_ptr<BlockCodec::Scratch> scratch_;
};

}  // namespace quire

#endif  // QUIRE_TESTING_CODECS_PAPER_FORM_TESTING_H_
