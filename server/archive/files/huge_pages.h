// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef QUIRE_SERVER_ARCHIVE_FILES_HUGE_PAGES_H_
#define QUIRE_SERVER_ARCHIVE_FILES_HUGE_PAGES_H_

#include "codecs/base/bytes.h"

namespace quire {

// Asks the kernel to back memory that is read all over, such as a dictionary,
// with huge pages: what lies whole within `bytes`, at once where Linux can
// (6.1), else when it comes to it. A wish only: where transparent huge pages
// are off, or none are free, all stays as it is. The contents do not change,
// and the memory does not grow.
void PreferHugePages(MutableByteView bytes);

}  // namespace quire

#endif  // QUIRE_SERVER_ARCHIVE_FILES_HUGE_PAGES_H_
