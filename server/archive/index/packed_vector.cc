// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/archive/index/packed_vector.h"

#include <algorithm>
#include <bit>
#include <utility>

#include <sdsl/int_vector.hpp>
#include <sdsl/inv_perm_support.hpp>
#include <sdsl/rank_support_v5.hpp>

namespace quire {

struct PackedVector::Values {
  Values(uint64_t count, uint64_t value_max)
      : bits(count, 0,
             static_cast<uint8_t>(
                 std::max(1, static_cast<int>(std::bit_width(value_max))))) {}

  sdsl::int_vector<> bits;
};

PackedVector::PackedVector() = default;

PackedVector::PackedVector(uint64_t count, uint64_t value_max)
    : values_(std::make_unique<Values>(count, value_max)) {}

PackedVector::PackedVector(PackedVector&&) noexcept = default;
PackedVector& PackedVector::operator=(PackedVector&&) noexcept = default;
PackedVector::~PackedVector() = default;

uint64_t PackedVector::size() const {
  return values_ == nullptr ? 0 : values_->bits.size();
}

uint64_t PackedVector::operator[](uint64_t index) const {
  return std::as_const(values_->bits)[index];
}

void PackedVector::Set(uint64_t index, uint64_t value) {
  values_->bits[index] = value;
}

uint64_t PackedVector::MemoryBytes() const {
  return values_ == nullptr ? 0 : sdsl::size_in_bytes(values_->bits);
}

struct InvertiblePermutation::Inverse {
  explicit Inverse(const sdsl::int_vector<>* forward) : support(forward) {}

  sdsl::inv_perm_support<8, sdsl::bit_vector, sdsl::rank_support_v5<>> support;
};

InvertiblePermutation::InvertiblePermutation() = default;

InvertiblePermutation::InvertiblePermutation(PackedVector forward)
    : forward_(std::move(forward)),
      inverse_(std::make_unique<const Inverse>(&forward_.values_->bits)) {}

InvertiblePermutation::InvertiblePermutation(InvertiblePermutation&&) noexcept =
    default;
InvertiblePermutation& InvertiblePermutation::operator=(
    InvertiblePermutation&&) noexcept = default;
InvertiblePermutation::~InvertiblePermutation() = default;

uint64_t InvertiblePermutation::operator[](uint64_t index) const {
  return inverse_ == nullptr ? index : forward_[index];
}

uint64_t InvertiblePermutation::IndexOf(uint64_t value) const {
  return inverse_ == nullptr ? value : inverse_->support[value];
}

uint64_t InvertiblePermutation::MemoryBytes() const {
  return inverse_ == nullptr
             ? 0
             : forward_.MemoryBytes() + sdsl::size_in_bytes(inverse_->support);
}

uint64_t InvertiblePermutation::EstimateBytes(uint64_t count) {
  // Values, an eighth of them as back pointers, and a bit with rank for each.
  const auto width = static_cast<uint64_t>(std::bit_width(count));
  return 256 + count * (width + width / 8 + 1) / 8 + count / 4;
}

}  // namespace quire
