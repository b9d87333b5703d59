// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/archive/files/huge_pages.h"

#include <sys/mman.h>

#include <cstdint>

namespace quire {
namespace {

// Of x86-64, and of other machines with pages of 4 KiB.
constexpr uintptr_t kHugePageSizeBytes = uintptr_t{2} << 20;
// Not in Debian 12's headers of glibc.
constexpr int kMadviseCollapse = 25;

}  // namespace

void PreferHugePages(MutableByteView bytes) {
  const auto begin = reinterpret_cast<uintptr_t>(bytes.data());
  const uintptr_t first =
      (begin + kHugePageSizeBytes - 1) & ~(kHugePageSizeBytes - 1);
  const uintptr_t end = (begin + bytes.size()) & ~(kHugePageSizeBytes - 1);
  if (first >= end) {
    return;
  }
  uint8_t* const data = bytes.data() + (first - begin);
  madvise(data, end - first, MADV_HUGEPAGE);
  madvise(data, end - first, kMadviseCollapse);
}

}  // namespace quire
