// SPDX-License-Identifier: GPL-3.0-or-later
//
// The sample that an archive's symbol table is trained on.
#ifndef QUIRE_SERVER_INGEST_SYMBOL_SAMPLER_H_
#define QUIRE_SERVER_INGEST_SYMBOL_SAMPLER_H_

#include <cstdint>
#include <string>

#include "codecs/base/bytes.h"

namespace quire {

// Takes kSampleCount samples of kSampleSizeBytes at regular intervals over the
// whole collection, or all of it if it is no larger: symbols of the
// collection's front alone do badly on the rest of it, as collections are
// ordered by site, by date or by type. What is sampled depends on the text
// alone, not on how it is cut into pieces. Memory: kSampleCount *
// kSampleSizeBytes. Thread-compatible.
class SymbolSampler {
 public:
  static constexpr uint64_t kSampleSizeBytes = 512;
  static constexpr uint64_t kSampleCount = 2048;

  // The size of the text that will be added. Where it turns out to be more or
  // less, what is behind this size is not sampled, and what is missing makes
  // the sample smaller.
  explicit SymbolSampler(uint64_t text_size_bytes);

  // Adds what follows. `piece` is not kept.
  void Add(ByteView piece);

  // Trains a table on the sample; returns it as fsst/symbol_table.h serialises
  // it. Takes some tens of milliseconds.
  std::string Train() const;

 private:
  // Where a sample begins in the text. REQUIRES: index < sample_count_.
  uint64_t SampleStart(uint64_t index) const;

  const uint64_t sample_size_bytes_;
  const uint64_t left_out_bytes_;
  const uint64_t sample_count_;
  // Of what was added.
  uint64_t position_ = 0;
  std::string sample_;
};

}  // namespace quire

#endif  // QUIRE_SERVER_INGEST_SYMBOL_SAMPLER_H_
