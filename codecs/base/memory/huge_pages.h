// SPDX-License-Identifier: Apache-2.0
#ifndef QUIRE_CODECS_BASE_MEMORY_HUGE_PAGES_H_
#define QUIRE_CODECS_BASE_MEMORY_HUGE_PAGES_H_

#include "codecs/base/bytes.h"

namespace quire {

// Asks the kernel to back randomly read memory, such as a dictionary or a hash
// table, with huge pages: the whole huge pages within `bytes`. It happens at
// once on Linux 6.1, otherwise in the background; memory that is not yet
// written gets them when it is. No effect if transparent huge pages are off or
// none are free. Contents and memory size do not change.
void PreferHugePages(ByteView bytes);

}  // namespace quire

#endif  // QUIRE_CODECS_BASE_MEMORY_HUGE_PAGES_H_
