// SPDX-License-Identifier: GPL-3.0-or-later
#include "loadtest/papers/lz77/lz77_test_blocks.h"

#include <lz4hc.h>

#include <cstddef>

#include "codecs/base/check.h"
#include "codecs/zlib/deflate_decoder.h"
#include "loadtest/papers/lz77/phrase.h"
#include "testing/codecs/deflate_check.h"

namespace quire {

std::vector<uint8_t> Lz4Block(const std::string& text, int level) {
  const int text_size = static_cast<int>(text.size());
  const int bound = LZ4_compressBound(text_size);
  std::vector<uint8_t> stored(static_cast<size_t>(bound));
  const int size =
      LZ4_compress_HC(text.data(), reinterpret_cast<char*>(stored.data()),
                      text_size, bound, level);
  QUIRE_CHECK(size > 0);
  stored.resize(static_cast<size_t>(size));
  return stored;
}

std::vector<uint8_t> DeflateParse(const std::string& text, int level) {
  const std::string stream = RawDeflate(text, "", level);
  std::vector<uint8_t> output(text.size());
  std::vector<TextMatch> matches;
  DeflateDecoder decoder;
  decoder.Start(AsBytes(stream), output);
  decoder.RecordMatches(matches);
  QUIRE_CHECK(decoder.DecodeTo(output.size()).ok() && AsText(output) == text);
  return StorePhrases(output, matches);
}

std::vector<uint8_t> ChainBlock(uint32_t count, uint32_t size,
                                std::string& text) {
  text.clear();
  for (uint32_t i = 0; i < size; ++i) {
    text.push_back(static_cast<char>('a' + i * 7 % 26));
  }
  std::vector<TextMatch> matches;
  for (uint32_t i = 0; i < count; ++i) {
    matches.push_back({static_cast<uint32_t>(text.size()), size, size});
    text += text.substr(0, size);
  }
  return StorePhrases(AsBytes(text), matches);
}

}  // namespace quire
