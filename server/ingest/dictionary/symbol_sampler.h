// SPDX-License-Identifier: GPL-3.0-or-later
//
// The sample for training an archive's symbol table.
#ifndef QUIRE_SERVER_INGEST_SYMBOL_SAMPLER_H_
#define QUIRE_SERVER_INGEST_SYMBOL_SAMPLER_H_

#include <cstdint>
#include <string>

#include "codecs/base/bytes.h"

namespace quire {

// Takes kSampleCount samples of kSampleSizeBytes at regular intervals over the
// whole collection, or all of it if it is no larger. Symbols of the
// collection's front alone do badly on the rest, as collections are ordered by
// site, date or type. The samples depend only on the text, not on its division
// into pieces. Memory: kSampleCount * kSampleSizeBytes. Thread-compatible.
class SymbolSampler {
 public:
  static constexpr uint64_t kSampleSizeBytes = 512;
  static constexpr uint64_t kSampleCount = 2048;

  // The size of the text that will be added. Text beyond it is not sampled;
  // missing text makes the sample smaller.
  explicit SymbolSampler(uint64_t text_size_bytes);

  // Adds the next part of the text. `piece` is not kept.
  void Add(ByteView piece);

  // Trains a table on the sample; returns it in the format of
  // fsst/symbol_table.h. Takes some tens of milliseconds.
  std::string Train() const;

 private:
  // Returns the offset of a sample in the text. REQUIRES: index <
  // sample_count_.
  uint64_t SampleStart(uint64_t index) const;

  const uint64_t sample_size_bytes_;
  const uint64_t left_out_bytes_;
  const uint64_t sample_count_;
  // Size of the text added so far.
  uint64_t position_ = 0;
  std::string sample_;
};

}  // namespace quire

#endif  // QUIRE_SERVER_INGEST_SYMBOL_SAMPLER_H_
