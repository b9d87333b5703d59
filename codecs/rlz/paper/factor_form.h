// SPDX-License-Identifier: Apache-2.0
#ifndef QUIRE_CODECS_RLZ_PAPER_FACTOR_FORM_H_
#define QUIRE_CODECS_RLZ_PAPER_FACTOR_FORM_H_

#include <cstddef>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "codecs/base/bytes.h"
#include "codecs/rlz/factor.h"

namespace quire {

// Stored form of a block's factors; the paper's codecs differ in it. A form
// never begins with a byte 00 (see paper_codec.h).
// Thread-compatible; keeps its memory between calls.
class FactorForm {
 public:
  virtual ~FactorForm() = default;

  // Encodes `factors`, whose text is `raw`. The view is valid until the next
  // call.
  // REQUIRES: factors.size() > 0.
  // Errors: Internal  from zlib.
  virtual absl::StatusOr<ByteView> Write(ByteView raw,
                                         const FactorList& factors) = 0;

  // Decodes bytes [offset, offset + out.size()) of a block of `raw_size` bytes
  // of text. `stored` is untrusted. A call for the whole block checks that all
  // of `stored` is used.
  // REQUIRES: offset + out.size() <= raw_size <= kBlockSizeBytesMax.
  // Errors: DataLoss  malformed.
  virtual absl::Status Read(ByteView stored, ByteView dictionary,
                            size_t raw_size, size_t offset,
                            MutableByteView out) = 0;
};

}  // namespace quire

#endif  // QUIRE_CODECS_RLZ_PAPER_FACTOR_FORM_H_
