// SPDX-License-Identifier: Apache-2.0
#include "codecs/reorder/first_number_table.h"

#include <utility>

namespace quire {
namespace {

constexpr int kKeyShift = 32;
// A part grows by an eighth when six of seven slots are used, so that at least
// three of four are in use.
constexpr size_t kUsedMax = 6;
constexpr size_t kUsedOf = 7;
constexpr size_t kSlotCountMin = 8;

}  // namespace

size_t FirstNumberTable::SlotOf(const std::vector<uint64_t>& slots,
                                uint32_t key) {
  // In key order, so that any number of slots works.
  size_t slot = (uint64_t{key} * slots.size()) >> 32;
  while (slots[slot] != 0 && slots[slot] >> kKeyShift != key) {
    slot = slot + 1 == slots.size() ? 0 : slot + 1;
  }
  return slot;
}

std::optional<uint32_t> FirstNumberTable::Find(uint64_t hash) const {
  const std::vector<uint64_t>& slots = parts_[PartOf(hash)].slots;
  if (slots.empty()) {
    return std::nullopt;
  }
  const uint64_t found = slots[SlotOf(slots, KeyOf(hash))];
  if (found == 0) {
    return std::nullopt;
  }
  return static_cast<uint32_t>(found) - 1;
}

uint32_t FirstNumberTable::Add(uint64_t hash, uint32_t number) {
  Part& part = parts_[PartOf(hash)];
  if ((part.used_count + 1) * kUsedOf > part.slots.size() * kUsedMax) {
    Grow(part);
  }
  uint64_t& slot = part.slots[SlotOf(part.slots, KeyOf(hash))];
  if (slot == 0) {
    slot = uint64_t{KeyOf(hash)} << kKeyShift | (uint64_t{number} + 1);
    ++part.used_count;
  }
  return static_cast<uint32_t>(slot) - 1;
}

void FirstNumberTable::Grow(Part& part) {
  std::vector<uint64_t> larger(kSlotCountMin + part.slots.size() +
                               part.slots.size() / 8);
  for (const uint64_t entry : part.slots) {
    if (entry != 0) {
      larger[SlotOf(larger, static_cast<uint32_t>(entry >> kKeyShift))] = entry;
    }
  }
  slot_count_ += larger.size() - part.slots.size();
  part.slots = std::move(larger);
}

}  // namespace quire
