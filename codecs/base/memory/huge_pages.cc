// SPDX-License-Identifier: Apache-2.0
#include "codecs/base/memory/huge_pages.h"

#include <sys/mman.h>

#include <cstdint>

namespace quire {
namespace {

// Size on x86-64, and on other machines with pages of 4 KiB.
constexpr uintptr_t kHugePageSizeBytes = uintptr_t{2} << 20;
// glibc of Debian 12 does not define it.
constexpr int kMadviseCollapse = 25;

}  // namespace

void PreferHugePages(ByteView bytes) {
  const auto begin = reinterpret_cast<uintptr_t>(bytes.data());
  const uintptr_t first =
      (begin + kHugePageSizeBytes - 1) & ~(kHugePageSizeBytes - 1);
  const uintptr_t end = (begin + bytes.size()) & ~(kHugePageSizeBytes - 1);
  if (first >= end) {
    return;
  }
  auto* const data = const_cast<uint8_t*>(bytes.data()) + (first - begin);
  madvise(data, end - first, MADV_HUGEPAGE);
  madvise(data, end - first, kMadviseCollapse);
}

}  // namespace quire
