// SPDX-License-Identifier: Apache-2.0
//
// The dictionary of "Access Time Tradeoffs in Archive Compression", section 2:
// samples of one length, at regular intervals over the whole text.
#ifndef QUIRE_CODECS_RLZ_UNIFORM_DICTIONARY_H_
#define QUIRE_CODECS_RLZ_UNIFORM_DICTIONARY_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"

#include "codecs/rlz/dictionary_builder.h"

namespace quire {

// All of these affect the dictionary.
struct UniformDictionaryOptions {
  // Size in bytes, at most kDictionarySizeBytesMax. The dictionary has exactly
  // this size, or is the whole text if that is no larger.
  uint64_t dictionary_size_bytes = 16 << 20;
  // In bytes, at least 1; the paper's experiments use 1024 (section 4).
  uint64_t sample_size_bytes = 1024;
};

// Sizes need not divide each other. All `n` samples have the sample size except
// the last, which may be shorter. The text that the dictionary leaves out is
// spread evenly before the samples, so that they never overlap: sample i starts
// at i * sample_size + floor(i * left_out / n). Where the sizes divide, these
// are the paper's offsets, i * text_size / n.
//
// Makes one pass; memory: the dictionary. `text_size_bytes` is the size of the
// whole text, which must be known.
// Errors: InvalidArgument  an option out of range.
absl::StatusOr<std::unique_ptr<DictionaryBuilder>> MakeUniformDictionaryBuilder(
    const UniformDictionaryOptions& options, uint64_t text_size_bytes);

}  // namespace quire

#endif  // QUIRE_CODECS_RLZ_UNIFORM_DICTIONARY_H_
