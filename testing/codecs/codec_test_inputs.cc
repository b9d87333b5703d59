// SPDX-License-Identifier: Apache-2.0
#include "testing/codecs/codec_test_inputs.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

#include "codecs/base/bytes.h"
#include "codecs/base/check.h"
#include "codecs/fsst/training/symbol_trainer.h"

namespace quire {

size_t RandomBelow(TestRandom& random, size_t bound) {
  return static_cast<size_t>(random() % bound);
}

std::string RandomBytes(TestRandom& random, size_t size) {
  std::string bytes(size, '\0');
  for (char& byte : bytes) {
    byte = static_cast<char>(random());
  }
  return bytes;
}

std::string RandomText(TestRandom& random, size_t size, size_t word_count) {
  std::vector<std::string> words(word_count);
  for (std::string& word : words) {
    const size_t length = 2 + RandomBelow(random, 9);
    for (size_t i = 0; i < length; ++i) {
      word.push_back(static_cast<char>('a' + RandomBelow(random, 26)));
    }
  }
  std::string text;
  text.reserve(size + 64);
  while (text.size() < size) {
    // The minimum of three draws favours the words in front.
    size_t word = word_count;
    for (int i = 0; i < 3; ++i) {
      word = std::min(word, RandomBelow(random, word_count));
    }
    const size_t mark = RandomBelow(random, 40);
    absl::StrAppend(&text, words[word],
                    mark == 0   ? ".\n"
                    : mark == 1 ? "</p>\n<p class=\"text\">"
                    : mark == 2 ? ", "
                                : " ");
  }
  text.resize(size);
  return text;
}

std::string EditedPieces(TestRandom& random, const std::string& source,
                         size_t size) {
  std::string text;
  text.reserve(size + 1024);
  while (text.size() < size) {
    const size_t start = RandomBelow(random, source.size());
    text += source.substr(start, 1 + RandomBelow(random, 600));
    if (RandomBelow(random, 4) == 0) {
      text += RandomBytes(random, 1 + RandomBelow(random, 4));
    }
  }
  text.resize(size);
  return text;
}

std::vector<TestInput> TestInputs(TestRandom& random, size_t size,
                                  const std::string& dictionary) {
  const std::string period = RandomBytes(random, 1 + RandomBelow(random, 40));
  std::string repetitive;
  while (repetitive.size() < size) {
    repetitive += period;
  }
  repetitive.resize(size);
  return {{"random", RandomBytes(random, size)},
          {"zeros", std::string(size, '\0')},
          {"text", RandomText(random, size, 200)},
          {"repetitive", repetitive},
          {"edited dictionary", EditedPieces(random, dictionary, size)}};
}

std::string EncodeText(const BlockCodec& codec, const std::string& text) {
  std::string stored(codec.StoredSizeMax(text.size()), '\0');
  const absl::StatusOr<size_t> size =
      codec.Encode(AsBytes(text), AsMutableBytes(stored), *codec.NewScratch());
  QUIRE_CHECK(size.ok(), size.status().ToString());
  stored.resize(*size);
  return stored;
}

std::shared_ptr<const CodecContext> MakeTestContext(size_t size) {
  TestRandom random(20240707);
  auto context = std::make_shared<CodecContext>();
  context->dictionary = RandomText(random, size);
  for (size_t i = 0; i < std::min<size_t>(size, 256); ++i) {
    context->dictionary[i * (size / 256 + 1) % size] = static_cast<char>(i);
  }
  const ByteView text = AsBytes(context->dictionary);
  context->symbol_table = TrainSymbolTable(std::span(&text, 1)).Serialise();
  return context;
}

}  // namespace quire
