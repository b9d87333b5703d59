// SPDX-License-Identifier: GPL-3.0-or-later
//
// Maps bytes of the text to phrases ("Random Read Speedup in Compression
// Enabled Storage Systems", section 2.1: phraseOf and startOf). Four exact or
// sampled forms:
//
//   PlainPhraseIndex    a bit for each byte of the text, with rank and select
//   SparsePhraseIndex   Elias-Fano coded positions
//   SampledPhraseIndex  every k-th phrase; the block has those between
//   GridPhraseIndex     the phrase of every 2^k-th byte of the text
//
// Each has the constructor (places, text_size, stored_size), where `places` are
// those of all phrases in order, the first {0, 0}; and
//
//   PhrasePlace Find(uint32_t text_offset) const
//
// which returns the phrase that contains the byte, or, in sampled forms, one
// before it. REQUIRES: text_offset < text_size.
//
// Immutable, hence thread-safe. All own their data.
#ifndef QUIRE_LOADTEST_PAPERS_LZ77_PHRASE_INDEX_H_
#define QUIRE_LOADTEST_PAPERS_LZ77_PHRASE_INDEX_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <sdsl/bit_vectors.hpp>

#include "loadtest/papers/lz77/phrase.h"

namespace quire {

class PlainPhraseIndex {
 public:
  PlainPhraseIndex(std::span<const PhrasePlace> places, size_t text_size,
                   size_t stored_size);
  // The supports hold pointers to the bits.
  PlainPhraseIndex(const PlainPhraseIndex&) = delete;
  PlainPhraseIndex& operator=(const PlainPhraseIndex&) = delete;

  // From 0.
  uint32_t PhraseOf(uint32_t text_offset) const {
    return static_cast<uint32_t>(rank_(text_offset + 1) - 1);
  }

  // REQUIRES: phrase < number of phrases.
  uint32_t StartOf(uint32_t phrase) const {
    return static_cast<uint32_t>(select_(phrase + 1));
  }

  PhrasePlace Find(uint32_t text_offset) const;
  size_t MemoryBytes() const;

 private:
  sdsl::bit_vector starts_;
  sdsl::rank_support_v5<> rank_;
  sdsl::select_support_mcl<> select_;
  sdsl::int_vector<> stored_offsets_;
};

class SparsePhraseIndex {
 public:
  SparsePhraseIndex(std::span<const PhrasePlace> places, size_t text_size,
                    size_t stored_size);
  SparsePhraseIndex(const SparsePhraseIndex&) = delete;
  SparsePhraseIndex& operator=(const SparsePhraseIndex&) = delete;

  PhrasePlace Find(uint32_t text_offset) const;
  size_t MemoryBytes() const;

 private:
  sdsl::sd_vector<> starts_;
  sdsl::rank_support_sd<> rank_;
  sdsl::select_support_sd<> select_;
  sdsl::sd_vector<> stored_;
  sdsl::select_support_sd<> select_stored_;
};

class SampledPhraseIndex {
 public:
  // Keeps every `interval`-th phrase. REQUIRES: interval > 0.
  SampledPhraseIndex(std::span<const PhrasePlace> places, size_t text_size,
                     size_t stored_size, uint32_t interval = 8);

  PhrasePlace Find(uint32_t text_offset) const;
  size_t MemoryBytes() const;

 private:
  std::vector<PhrasePlace> samples_;
};

class GridPhraseIndex {
 public:
  // Keeps the phrase of the first byte of each 2^`cell_bits` of the text.
  // REQUIRES: cell_bits < 32.
  GridPhraseIndex(std::span<const PhrasePlace> places, size_t text_size,
                  size_t stored_size, uint32_t cell_bits = 6);

  PhrasePlace Find(uint32_t text_offset) const {
    const uint32_t cell = text_offset >> cell_bits_;
    return {(cell << cell_bits_) - back_[cell], stored_offsets_[cell]};
  }

  size_t MemoryBytes() const;

 private:
  uint32_t cell_bits_;
  // Distance from the cell back to the phrase. Large only if a phrase is long.
  std::vector<uint32_t> back_;
  std::vector<uint32_t> stored_offsets_;
};

}  // namespace quire

#endif  // QUIRE_LOADTEST_PAPERS_LZ77_PHRASE_INDEX_H_
