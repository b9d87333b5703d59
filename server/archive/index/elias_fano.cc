// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/archive/index/elias_fano.h"

#include <bit>
#include <utility>

#include <sdsl/sd_vector.hpp>

namespace quire {
namespace {

// Zeros are never selected: replace the support for that, which costs memory,
// by one that costs none.
using SparseBits =
    sdsl::sd_vector<sdsl::bit_vector, sdsl::select_support_mcl<1>,
                    sdsl::select_support_scan<0>>;

}  // namespace

struct EliasFano::Sequence {
  explicit Sequence(sdsl::sd_vector_builder& builder)
      : count(builder.items()), bits(builder), select(&bits) {}

  uint64_t count;
  SparseBits bits;
  SparseBits::select_1_type select;
};

struct EliasFano::Builder::State {
  State(uint64_t count, uint64_t last) : builder(last + 1, count) {}

  sdsl::sd_vector_builder builder;
};

EliasFano::Builder::Builder(uint64_t count, uint64_t last)
    : state_(std::make_unique<State>(count, last)) {}

EliasFano::Builder::Builder(Builder&&) noexcept = default;
EliasFano::Builder::~Builder() = default;

void EliasFano::Builder::Add(uint64_t value) {
  state_->builder.set(value);
}

EliasFano EliasFano::Builder::Build() && {
  return EliasFano(std::make_unique<const Sequence>(state_->builder));
}

EliasFano::EliasFano() = default;
EliasFano::EliasFano(EliasFano&&) noexcept = default;
EliasFano& EliasFano::operator=(EliasFano&&) noexcept = default;
EliasFano::~EliasFano() = default;

EliasFano::EliasFano(std::unique_ptr<const Sequence> sequence)
    : sequence_(std::move(sequence)) {}

uint64_t EliasFano::size() const {
  return sequence_ == nullptr ? 0 : sequence_->count;
}

uint64_t EliasFano::operator[](uint64_t index) const {
  return sequence_->select(index + 1);
}

uint64_t EliasFano::MemoryBytes() const {
  return sequence_ == nullptr
             ? 0
             : sizeof(Sequence) + sdsl::size_in_bytes(sequence_->bits);
}

uint64_t EliasFano::EstimateBytes(uint64_t count, uint64_t last) {
  // sd_vector has bit_width(last + 1) - bit_width(count) low bits per value and
  // at most 3 * count bits for the rest. Its select takes up to a fifth more,
  // and about 4 KiB per superblock of 4096 values that are far apart.
  const auto low_bits =
      static_cast<uint64_t>(std::bit_width(last + 1) - std::bit_width(count));
  return sizeof(Sequence) + 256 + (count * (low_bits + 1) + 3 * count) / 8 +
         count * 3 / 40 + count / 16;
}

}  // namespace quire
