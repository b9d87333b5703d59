// SPDX-License-Identifier: Apache-2.0
#include "codecs/base/check.h"

#include <cstdio>
#include <cstdlib>

namespace quire::internal {

void CheckFailed(const char* file, int line, const char* condition,
                 const char* detail) {
  std::fprintf(stderr, "%s:%d: check failed: %s%s%s\n", file, line, condition,
               detail[0] == '\0' ? "" : ": ", detail);
  std::abort();
}

}  // namespace quire::internal
