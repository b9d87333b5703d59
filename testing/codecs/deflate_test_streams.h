// SPDX-License-Identifier: Apache-2.0
//
// Streams made by zlib itself and by the program gzip, and texts for them.
// Tests, fuzzing and benchmarks compare our encoder with them.
#ifndef QUIRE_TESTING_CODECS_DEFLATE_TEST_STREAMS_H_
#define QUIRE_TESTING_CODECS_DEFLATE_TEST_STREAMS_H_

#include <cstddef>
#include <string>
#include <vector>

#include "codecs/deflate/deflate_encoder.h"
#include "codecs/deflate/deflate_parameters.h"
#include "codecs/deflate/deflate_recipe.h"
#include "testing/codecs/codec_test_inputs.h"

namespace quire {

// Returns the stream of one call of zlib's deflate(), with the container's
// header. Aborts if zlib refuses. REQUIRES: parameters.encoder is kZlib.
std::string ZlibStream(const DeflateParameters& parameters,
                       const std::string& text,
                       DeflateContainer container = DeflateContainer::kRaw);

// Returns the output of `gzip -n -LEVEL`, with the 10 bytes of its header.
// Aborts if the program is missing.
std::string GzipProgramStream(int level, const std::string& text);

// Returns the stream of our encoder. Aborts if it fails.
std::string EncodedStream(DeflateEncoder& encoder,
                          const DeflateParameters& parameters,
                          const std::string& text);

// Returns parameters of zlib, uniformly distributed.
DeflateParameters RandomZlibParameters(TestRandom& random);

// Returns texts of `size` bytes of all kinds: those of TestInputs(), and a
// mixture.
std::vector<TestInput> DeflateTexts(TestRandom& random, size_t size);

// Returns pieces of random bytes, runs, words and earlier text.
std::string MixedText(TestRandom& random, size_t size);

}  // namespace quire

#endif  // QUIRE_TESTING_CODECS_DEFLATE_TEST_STREAMS_H_
