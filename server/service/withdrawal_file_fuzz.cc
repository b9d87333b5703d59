// SPDX-License-Identifier: GPL-3.0-or-later
//
// Arbitrary files of withdrawn documents: accepted lines have values of at most
// the size of an id.
#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"

#include "codecs/base/check.h"
#include "server/archive/format/archive_format.h"
#include "server/service/withdrawal_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto lines = quire::ParseWithdrawals(
      absl::string_view(reinterpret_cast<const char*>(data), size));
  if (lines.ok()) {
    for (const quire::WithdrawalLine& line : *lines) {
      QUIRE_CHECK(!line.archive_glob.empty(), "a rule names archives");
      QUIRE_CHECK(line.rule.value.size() <= quire::kDocumentIdSizeBytesMax,
                  "a value is as long as an id");
      QUIRE_CHECK((line.rule.kind == quire::WithdrawalRule::Kind::kWhere) ==
                      (line.rule.filter != nullptr),
                  "a rule with a filter has one");
    }
  }
  return 0;
}
