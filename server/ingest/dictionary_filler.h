// SPDX-License-Identifier: GPL-3.0-or-later
//
// What to do with the part of a dictionary that nothing was chosen for.
#ifndef QUIRE_SERVER_INGEST_DICTIONARY_FILLER_H_
#define QUIRE_SERVER_INGEST_DICTIONARY_FILLER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "codecs/base/bytes.h"
#include "codecs/block_codec.h"
#include "codecs/rlz/dictionary_builder.h"

namespace quire {

// A choice by coverage (coverage_dictionary.h) takes what repeats in stretches
// of 32 bytes. Of text that repeats in words alone it takes next to nothing,
// though any sample of such text helps. This takes samples at regular intervals
// for the free part, and tries on some blocks of the text whether the archive
// becomes smaller with them, their own size included.
//
// One pass over the text. Memory: the free part and 32 blocks; in Fill() also
// two dictionaries and the codec's index of one.
// Deterministic. Thread-compatible.
class DictionaryFiller {
 public:
  // REQUIRES: 0 < free_size_bytes < text_size_bytes; block_size_bytes > 0.
  // Errors: ResourceExhausted  not enough memory.
  static absl::StatusOr<std::unique_ptr<DictionaryFiller>> Create(
      uint64_t free_size_bytes, uint64_t text_size_bytes,
      uint32_t block_size_bytes);

  // Adds what follows of the text. Errors: as DictionaryBuilder.
  absl::Status Add(ByteView piece);
  absl::Status Finish();

  // `chosen`, with the samples behind it if they are worth their space.
  // REQUIRES: Finish() succeeded; not called before.
  // Errors: those of MakeBlockCodec() and Encode().
  absl::StatusOr<std::string> Fill(std::string chosen, const CodecSpec& codec);

 private:
  DictionaryFiller(std::unique_ptr<DictionaryBuilder> samples,
                   uint64_t text_size_bytes, uint32_t block_size_bytes);

  // What the blocks take with that dictionary.
  absl::StatusOr<uint64_t> EncodedSize(const std::string& dictionary,
                                       const CodecSpec& spec) const;

  const std::unique_ptr<DictionaryBuilder> samples_;
  const uint64_t text_size_bytes_;
  const uint64_t block_size_bytes_;
  // Of block i in the text: i * stride.
  uint64_t stride_bytes_ = 0;
  size_t block_count_ = 0;
  // Of the text added up to now.
  uint64_t position_ = 0;
  // Whole blocks one after the other; the last may be unfinished.
  std::vector<uint8_t> blocks_;
};

}  // namespace quire

#endif  // QUIRE_SERVER_INGEST_DICTIONARY_FILLER_H_
