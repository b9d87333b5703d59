// SPDX-License-Identifier: Apache-2.0
//
// RLZ-UV and RLZ-PV of "Access Time Tradeoffs in Archive Compression", section
// 4: offsets of a fixed width, 32 bits or as few as the dictionary needs, and
// lengths as variable-length integers.
//
//   factor count n   varint, at least 1
//   offsets          n integers of w bits each, from the lowest bit of the
//                    first byte on; 0 to 7 bits of 0 fill the last byte
//   lengths          n varints, to the end
//
// Nothing is unpacked in advance: a factor is addressed by its number.
#ifndef QUIRE_CODECS_RLZ_PAPER_FIXED_FORM_H_
#define QUIRE_CODECS_RLZ_PAPER_FIXED_FORM_H_

#include <string>

#include "codecs/rlz/paper/factor_form.h"

namespace quire {

class FixedForm final : public FactorForm {
 public:
  // REQUIRES: 8 <= offset_bits <= 32; 2^offset_bits is not less than the
  //           dictionary's size. (A literal takes 8 bits.)
  explicit FixedForm(unsigned offset_bits) : offset_bits_(offset_bits) {}

  absl::StatusOr<ByteView> Write(ByteView raw,
                                 const FactorList& factors) override;
  absl::Status Read(ByteView stored, ByteView dictionary, size_t raw_size,
                    size_t offset, MutableByteView out) override;

 private:
  const unsigned offset_bits_;
  std::string stored_;
};

// Returns the width of RLZ-PV's offsets: the smallest that holds all offsets in
// the dictionary and a literal.
unsigned PackedOffsetBits(size_t dictionary_size);

}  // namespace quire

#endif  // QUIRE_CODECS_RLZ_PAPER_FIXED_FORM_H_
