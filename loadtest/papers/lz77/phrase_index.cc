// SPDX-License-Identifier: GPL-3.0-or-later
#include "loadtest/papers/lz77/phrase_index.h"

#include <algorithm>
#include <bit>

#include "codecs/base/check.h"

namespace quire {
namespace {

sdsl::sd_vector<> MakeSparse(std::span<const PhrasePlace> places,
                             uint32_t PhrasePlace::*position, size_t size) {
  sdsl::sd_vector_builder builder(size, places.size());
  for (const PhrasePlace& place : places) {
    builder.set(place.*position);
  }
  return sdsl::sd_vector<>(builder);
}

void CheckPlaces(std::span<const PhrasePlace> places) {
  QUIRE_CHECK(!places.empty() && places[0] == PhrasePlace{});
}

}  // namespace

PlainPhraseIndex::PlainPhraseIndex(std::span<const PhrasePlace> places,
                                   size_t text_size, size_t stored_size)
    : starts_(std::max<size_t>(text_size, 1), 0),
      stored_offsets_(places.size(), 0,
                      static_cast<uint8_t>(std::bit_width(stored_size))) {
  CheckPlaces(places);
  for (size_t i = 0; i < places.size(); ++i) {
    // The last phrase may be empty: it begins where the text ends.
    if (places[i].text_offset < starts_.size()) {
      starts_[places[i].text_offset] = true;
    }
    stored_offsets_[i] = places[i].stored_offset;
  }
  sdsl::util::init_support(rank_, &starts_);
  sdsl::util::init_support(select_, &starts_);
}

PhrasePlace PlainPhraseIndex::Find(uint32_t text_offset) const {
  const uint32_t phrase = PhraseOf(text_offset);
  // A phrase is mostly a few bytes: its start is in the same word; otherwise
  // select finds it.
  const uint32_t bit = text_offset % 64;
  const uint64_t word = starts_.data()[text_offset / 64] << (63 - bit);
  const uint32_t start =
      word != 0 ? text_offset - static_cast<uint32_t>(std::countl_zero(word))
                : StartOf(phrase);
  return {start, static_cast<uint32_t>(stored_offsets_[phrase])};
}

size_t PlainPhraseIndex::MemoryBytes() const {
  return sdsl::size_in_bytes(starts_) + sdsl::size_in_bytes(rank_) +
         sdsl::size_in_bytes(select_) + sdsl::size_in_bytes(stored_offsets_);
}

SparsePhraseIndex::SparsePhraseIndex(std::span<const PhrasePlace> places,
                                     size_t text_size, size_t stored_size)
    : starts_(MakeSparse(places, &PhrasePlace::text_offset, text_size + 1)),
      stored_(MakeSparse(places, &PhrasePlace::stored_offset, stored_size)) {
  CheckPlaces(places);
  rank_.set_vector(&starts_);
  select_.set_vector(&starts_);
  select_stored_.set_vector(&stored_);
}

PhrasePlace SparsePhraseIndex::Find(uint32_t text_offset) const {
  const size_t phrase = rank_(text_offset + 1);
  return {static_cast<uint32_t>(select_(phrase)),
          static_cast<uint32_t>(select_stored_(phrase))};
}

size_t SparsePhraseIndex::MemoryBytes() const {
  return sdsl::size_in_bytes(starts_) + sdsl::size_in_bytes(stored_);
}

SampledPhraseIndex::SampledPhraseIndex(std::span<const PhrasePlace> places,
                                       size_t /*text_size*/,
                                       size_t /*stored_size*/,
                                       uint32_t interval) {
  CheckPlaces(places);
  QUIRE_CHECK(interval > 0);
  samples_.reserve((places.size() + interval - 1) / interval);
  for (size_t i = 0; i < places.size(); i += interval) {
    samples_.push_back(places[i]);
  }
}

PhrasePlace SampledPhraseIndex::Find(uint32_t text_offset) const {
  const auto after = std::ranges::upper_bound(samples_, text_offset, {},
                                              &PhrasePlace::text_offset);
  return *(after - 1);
}

size_t SampledPhraseIndex::MemoryBytes() const {
  return samples_.size() * sizeof(PhrasePlace);
}

GridPhraseIndex::GridPhraseIndex(std::span<const PhrasePlace> places,
                                 size_t text_size, size_t /*stored_size*/,
                                 uint32_t cell_bits)
    : cell_bits_(cell_bits) {
  CheckPlaces(places);
  QUIRE_CHECK(cell_bits < 32);
  const size_t cell_count = (text_size >> cell_bits) + 1;
  back_.reserve(cell_count);
  stored_offsets_.reserve(cell_count);
  size_t at = 0;
  for (size_t cell = 0; cell < cell_count; ++cell) {
    const size_t text_offset = cell << cell_bits;
    while (at + 1 < places.size() &&
           places[at + 1].text_offset <= text_offset) {
      ++at;
    }
    back_.push_back(
        static_cast<uint32_t>(text_offset - places[at].text_offset));
    stored_offsets_.push_back(places[at].stored_offset);
  }
}

size_t GridPhraseIndex::MemoryBytes() const {
  return (back_.size() + stored_offsets_.size()) * sizeof(uint32_t);
}

}  // namespace quire
