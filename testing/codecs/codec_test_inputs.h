// SPDX-License-Identifier: Apache-2.0
//
// Texts for the tests and benchmarks of codecs; the same for the same seed, on
// every machine.
#ifndef QUIRE_TESTING_CODECS_CODEC_TEST_INPUTS_H_
#define QUIRE_TESTING_CODECS_CODEC_TEST_INPUTS_H_

#include <cstddef>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "codecs/block_codec.h"

namespace quire {

using TestRandom = std::mt19937_64;

// Uniform in [0, bound). (std::uniform_int_distribution differs from library to
// library.) REQUIRES: bound > 0.
size_t RandomBelow(TestRandom& random, size_t bound);

std::string RandomBytes(TestRandom& random, size_t size);

// Words of a vocabulary of `word_count`, the common ones far more often than
// the rare ones, with punctuation and some markup.
std::string RandomText(TestRandom& random, size_t size,
                       size_t word_count = 5000);

// Pieces of `source` of 1 to 600 bytes, one in four followed by a few random
// bytes: what an RLZ codec meets. REQUIRES: !source.empty().
std::string EditedPieces(TestRandom& random, const std::string& source,
                         size_t size);

// A block's text and what kind it is.
struct TestInput {
  std::string name;
  std::string text;
};

// One text of each kind of `size` bytes: random, zeros, text, repetitive (a
// short period), and pieces of `dictionary` with edits.
std::vector<TestInput> TestInputs(TestRandom& random, size_t size,
                                  const std::string& dictionary);

// Returns the block `text` as `codec` stores it. Ends the process if encoding
// fails.
std::string EncodeText(const BlockCodec& codec, const std::string& text);

// A dictionary of `size` bytes of text, with all byte values strewn in, of
// which none is missing from 64 KiB on; and a symbol table for it.
std::shared_ptr<const CodecContext> MakeTestContext(size_t size);

}  // namespace quire

#endif  // QUIRE_TESTING_CODECS_CODEC_TEST_INPUTS_H_
