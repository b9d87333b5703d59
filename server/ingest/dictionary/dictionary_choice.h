// SPDX-License-Identifier: GPL-3.0-or-later
//
// Chooses the dictionary of an archive from its text.
#ifndef QUIRE_SERVER_INGEST_DICTIONARY_CHOICE_H_
#define QUIRE_SERVER_INGEST_DICTIONARY_CHOICE_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "codecs/base/bytes.h"
#include "codecs/base/numbered_work.h"
#include "codecs/block_codec.h"

namespace quire {

// Method of choosing the dictionary's text.
enum class DictionaryMethod {
  // The most repeated and most expensive text (coverage_dictionary.h): smaller
  // archives. If little repeats, samples as below fill the rest of the space if
  // a trial shows their worth (dictionary_filler.h), for one more pass over the
  // inputs.
  kCoverage,
  // Samples at regular intervals (uniform_dictionary.h): one pass over the
  // inputs less, and less memory.
  kUniform,
};

struct DictionaryChoice {
  DictionaryMethod method = DictionaryMethod::kCoverage;
  // Upper bound.
  uint64_t dictionary_size_bytes = 0;
  // Minimum worth of 32 bytes in it (CoverageDictionaryOptions).
  uint32_t worth_bits_min = 2;
  // Codec of the archive.
  CodecSpec codec;
  uint32_t block_size_bytes = 0;
  // Affect only speed and memory.
  Workers workers = {};
};

// Returns the codec at its fastest level, for trials (CodecUse::kTrial): texts
// and dictionaries compare in the same way at others.
CodecSpec TrialCodec(CodecSpec codec);

// One pass: reads all text and passes it on piece by piece; the same every
// time.
using TextPass = std::function<absl::Status(
    const std::function<absl::Status(ByteView)>& add)>;

// Takes as many passes over the text, of `text_size_bytes`, as it needs.
// Errors: those of `pass` and DictionaryBuilder;
//         FailedPrecondition  the text became smaller.
absl::StatusOr<std::string> ChooseDictionary(const DictionaryChoice& choice,
                                             uint64_t text_size_bytes,
                                             const TextPass& pass);

// Returns the chosen dictionary, followed by samples if there is space and they
// are worth it (dictionary_filler.h). Takes one pass or none.
// Errors: those of `pass` and DictionaryFiller.
absl::StatusOr<std::string> FillDictionary(std::string dictionary,
                                           const DictionaryChoice& choice,
                                           uint64_t text_size_bytes,
                                           const TextPass& pass);

}  // namespace quire

#endif  // QUIRE_SERVER_INGEST_DICTIONARY_CHOICE_H_
