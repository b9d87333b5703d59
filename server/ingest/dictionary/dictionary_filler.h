// SPDX-License-Identifier: GPL-3.0-or-later
//
// Fills the part of a dictionary that no text was chosen for.
#ifndef QUIRE_SERVER_INGEST_DICTIONARY_FILLER_H_
#define QUIRE_SERVER_INGEST_DICTIONARY_FILLER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "codecs/base/bytes.h"
#include "codecs/block_codec.h"
#include "codecs/rlz/dictionary_builder.h"

namespace quire {

// A choice by coverage (coverage_dictionary.h) takes text that repeats in runs
// of 32 bytes. It takes almost none of a text that repeats only in words,
// though any sample of such text helps. This takes samples at regular intervals
// for the free part, or for a quarter of it, and tries both on some blocks of
// the text. The trial excludes samples of these blocks, as most text is not in
// the dictionary.
//
// One pass over the text. Memory: the free part and 64 blocks; in Fill() also
// two dictionaries and the codec's index of one.
// Deterministic. Thread-compatible.
class DictionaryFiller {
 public:
  // REQUIRES: 0 < free_size_bytes < text_size_bytes; block_size_bytes > 0.
  static absl::StatusOr<std::unique_ptr<DictionaryFiller>> Create(
      uint64_t free_size_bytes, uint64_t text_size_bytes,
      uint32_t block_size_bytes);

  // Adds the next part of the text. Errors: as DictionaryBuilder.
  absl::Status Add(ByteView piece);
  absl::Status Finish();

  // Returns `chosen`, followed by the samples that save most of the archive
  // beyond `worth_min` bytes for each of their own; by none if no samples do.
  // REQUIRES: Finish() succeeded; not called before.
  // Errors: those of MakeBlockCodec() and Encode().
  absl::StatusOr<std::string> Fill(std::string chosen, const CodecSpec& codec,
                                   double worth_min,
                                   const Workers& workers = {});

 private:
  DictionaryFiller(std::unique_ptr<DictionaryBuilder> samples,
                   uint64_t free_size_bytes, uint64_t text_size_bytes,
                   uint32_t block_size_bytes);

  // Appends every `step`-th sample to `dictionary`; excludes samples of the
  // trial's blocks if `is_trial`.
  void AppendSamples(absl::string_view samples, size_t step, bool is_trial,
                     std::string& dictionary) const;
  // True if a block of the trial has bytes of the sample.
  bool IsInTrial(size_t sample) const;

  // Returns the size of the blocks encoded with `dictionary`.
  absl::StatusOr<uint64_t> EncodedSize(const std::string& dictionary,
                                       const CodecSpec& spec,
                                       const Workers& workers) const;

  const std::unique_ptr<DictionaryBuilder> samples_;
  const uint64_t free_size_bytes_;
  const uint64_t text_size_bytes_;
  const uint64_t block_size_bytes_;
  // Offset of block i in the text: i * stride.
  uint64_t stride_bytes_ = 0;
  size_t block_count_ = 0;
  // Size of the text added so far.
  uint64_t position_ = 0;
  // Whole blocks, concatenated; the last may be incomplete.
  std::vector<uint8_t> blocks_;
};

}  // namespace quire

#endif  // QUIRE_SERVER_INGEST_DICTIONARY_FILLER_H_
