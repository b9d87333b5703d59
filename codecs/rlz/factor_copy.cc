// SPDX-License-Identifier: Apache-2.0
#include "codecs/rlz/factor_copy.h"

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace quire {
namespace {

// How many factors ahead the dictionary is fetched into the cache: about the
// time that one access to memory takes.
constexpr size_t kPrefetchDistance = 12;
constexpr size_t kStep = 16;

absl::Status BadFactor(const FactorList& factors, size_t index,
                       size_t dictionary_size) {
  const uint32_t offset = factors.offsets[index];
  const uint32_t length = factors.lengths[index];
  if (length == 0) {
    return absl::DataLossError(absl::StrCat(
        "factor ", index, " is the literal ", offset, ", which is no byte"));
  }
  return absl::DataLossError(
      absl::StrCat("factor ", index, " is the ", length, " bytes at ", offset,
                   " of a dictionary of ", dictionary_size, " bytes"));
}

// Copies `size` bytes; may write and read up to kStep - 1 bytes more if
// `roomy`. Most factors are short, and fixed steps are faster than memcpy().
inline void CopyBytes(const uint8_t* from, uint8_t* to, size_t size,
                      bool roomy) {
  if (!roomy) {
    std::memcpy(to, from, size);
    return;
  }
  const uint8_t* const end = from + size;
  do {
    std::memcpy(to, from, kStep);
    to += kStep;
    from += kStep;
  } while (from < end);
}

}  // namespace

absl::Status CopyFactors(ByteView dictionary, const FactorList& factors,
                         size_t skip, MutableByteView out) {
  size_t index = 0;
  while (index < factors.size() && skip >= TextSizeOf(factors.lengths[index])) {
    skip -= TextSizeOf(factors.lengths[index]);
    ++index;
  }
  uint8_t* to = out.data();
  size_t left = out.size();
  while (left > 0) {
    assert(index < factors.offsets.size());
    if (index + kPrefetchDistance < factors.offsets.size()) {
      // Unchecked, thus perhaps a literal or out of bounds; either way, a
      // prefetch of any address is harmless.
      const auto address = reinterpret_cast<uintptr_t>(dictionary.data()) +
                           factors.offsets[index + kPrefetchDistance];
      __builtin_prefetch(reinterpret_cast<const void*>(address));
    }
    const size_t offset = factors.offsets[index];
    const size_t length = factors.lengths[index];
    if (length == 0) {
      if (offset > UINT8_MAX) {
        return BadFactor(factors, index, dictionary.size());
      }
      *to++ = static_cast<uint8_t>(offset);
      --left;
    } else {
      if (length > dictionary.size() || offset > dictionary.size() - length) {
        return BadFactor(factors, index, dictionary.size());
      }
      const size_t size = std::min(length - skip, left);
      const bool roomy =
          left - size >= kStep && dictionary.size() - offset - length >= kStep;
      CopyBytes(dictionary.data() + offset + skip, to, size, roomy);
      to += size;
      left -= size;
      skip = 0;
    }
    ++index;
  }
  return absl::OkStatus();
}

}  // namespace quire
