// SPDX-License-Identifier: Apache-2.0
#ifndef QUIRE_CODECS_RLZ_FACTOR_COPY_H_
#define QUIRE_CODECS_RLZ_FACTOR_COPY_H_

#include <cstddef>

#include "absl/status/status.h"

#include "codecs/base/bytes.h"
#include "codecs/rlz/factor.h"

namespace quire {

// Writes bytes [skip, skip + out.size()) of the factors' text to `out`.
// Factors before and behind that range are not looked at beyond their length.
// The dictionary positions are untrusted.
// REQUIRES: the factors' text has at least skip + out.size() bytes, and
//           factors.offsets covers it; no length exceeds 2^31.
// Errors: DataLoss  a factor is not within the dictionary, or a literal no
// byte. Thread-safe.
absl::Status CopyFactors(ByteView dictionary, const FactorList& factors,
                         size_t skip, MutableByteView out);

}  // namespace quire

#endif  // QUIRE_CODECS_RLZ_FACTOR_COPY_H_
