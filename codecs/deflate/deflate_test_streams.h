// SPDX-License-Identifier: Apache-2.0
//
// Streams made by zlib itself and by the program gzip, and texts for them: what
// our encoder is held against in tests, fuzzing and benchmarks.
#ifndef QUIRE_CODECS_DEFLATE_DEFLATE_TEST_STREAMS_H_
#define QUIRE_CODECS_DEFLATE_DEFLATE_TEST_STREAMS_H_

#include <cstddef>
#include <string>
#include <vector>

#include "codecs/codec_test_inputs.h"
#include "codecs/deflate/deflate_encoder.h"
#include "codecs/deflate/deflate_parameters.h"
#include "codecs/deflate/deflate_recipe.h"

namespace quire {

// Of zlib's deflate(), called once, with the container's header. Aborts if zlib
// refuses. REQUIRES: parameters.encoder is kZlib.
std::string ZlibStream(const DeflateParameters& parameters,
                       const std::string& text,
                       DeflateContainer container = DeflateContainer::kRaw);

// Of `gzip -n -LEVEL`, with the 10 bytes of its header. Aborts if there is no
// such program.
std::string GzipProgramStream(int level, const std::string& text);

// Of our encoder. Aborts if it fails.
std::string EncodedStream(DeflateEncoder& encoder,
                          const DeflateParameters& parameters,
                          const std::string& text);

// Parameters of zlib, all as likely.
DeflateParameters RandomZlibParameters(TestRandom& random);

// Texts of `size` bytes of all kinds: those of TestInputs(), and a mixture.
std::vector<TestInput> DeflateTexts(TestRandom& random, size_t size);

// Pieces of random bytes, runs, words and what came before.
std::string MixedText(TestRandom& random, size_t size);

}  // namespace quire

#endif  // QUIRE_CODECS_DEFLATE_DEFLATE_TEST_STREAMS_H_
