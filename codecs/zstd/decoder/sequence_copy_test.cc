// SPDX-License-Identifier: Apache-2.0
#include "codecs/zstd/decoder/sequence_copy.h"

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"

#include "testing/codecs/codec_test_inputs.h"

namespace quire {
namespace {

// Random sequences, and their text built byte by byte.
struct Made {
  std::vector<CopySequence> sequences;
  std::string text;
};

Made MakeSequences(TestRandom& random, const CopySpace& space,
                   const std::string& literals) {
  Made made;
  size_t literal = 0;
  for (;;) {
    const size_t literal_size = RandomBelow(random, 40);
    const size_t match_size = 3 + RandomBelow(random, 120);
    if (made.text.size() + literal_size + match_size > space.output.size() ||
        literal + literal_size > literals.size()) {
      return made;
    }
    made.text.append(literals, literal, literal_size);
    literal += literal_size;
    const size_t position = made.text.size();
    const size_t reach = position + space.dictionary.size();
    const size_t kind = RandomBelow(random, 3);
    // Any distance, very near, or around the dictionary's end.
    const size_t distance =
        1 + (kind == 0 ? RandomBelow(random, reach)
             : kind == 1
                 ? RandomBelow(random, std::min<size_t>(reach, 40))
                 : std::min(reach - 1, position + RandomBelow(random, 60)));
    const size_t behind = distance > position ? distance - position : 0;
    const bool is_careful = behind > 0 ? behind < match_size + kCopyExcess
                                       : distance < kCopyDistanceMin;
    made.sequences.push_back(
        {.match = behind > 0
                      ? &space.dictionary[space.dictionary.size() - behind]
                      : space.output.data() + position - distance,
         .literal_size = static_cast<uint32_t>(literal_size) |
                         (is_careful ? CopySequence::kCarefully : 0),
         .match_size = static_cast<uint32_t>(match_size)});
    for (size_t i = 0; i < match_size; ++i) {
      made.text +=
          i < behind
              ? static_cast<char>(
                    space.dictionary[space.dictionary.size() - behind + i])
              : made.text[made.text.size() - distance];
    }
  }
}

TEST(SequenceCopyTest, CopiesWhatTheSequencesSay) {
  TestRandom random(1);
  for (int i = 0; i < 300; ++i) {
    const std::string dictionary =
        RandomBytes(random, 1 + RandomBelow(random, 200));
    const std::string literals = RandomBytes(random, 3000);
    // Exact size, for AddressSanitizer.
    const size_t output_size = 200 + RandomBelow(random, 4000);
    const auto output = std::make_unique<uint8_t[]>(output_size);
    const CopySpace space = {.dictionary = AsBytes(dictionary),
                             .output = {output.get(), output_size}};
    const Made made = MakeSequences(random, space, literals);
    const std::string readable = literals + std::string(kCopyExcess, '?');
    const uint8_t* next = AsBytes(readable).data();
    const size_t half = made.sequences.size() / 2;
    const std::span<const CopySequence> all = made.sequences;
    const size_t size = AppendSequences(all.first(half), space, 0, next);
    ASSERT_EQ(AppendSequences(all.subspan(half), space, size, next),
              made.text.size());
    EXPECT_TRUE(AsText(space.output.first(made.text.size())) == made.text);
  }
}

}  // namespace
}  // namespace quire
