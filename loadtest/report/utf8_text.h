// SPDX-License-Identifier: Apache-2.0
#ifndef QUIRE_LOADTEST_REPORT_UTF8_TEXT_H_
#define QUIRE_LOADTEST_REPORT_UTF8_TEXT_H_

#include <string>

#include "absl/strings/string_view.h"

namespace quire {

// The same text where it is UTF-8 (RFC 3629); each byte that is part of no
// character becomes U+FFFD. Thread-safe.
std::string ToUtf8(absl::string_view bytes);

}  // namespace quire

#endif  // QUIRE_LOADTEST_REPORT_UTF8_TEXT_H_
