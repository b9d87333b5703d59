// SPDX-License-Identifier: GPL-3.0-or-later
//
// Arbitrary bytes as a journal. An accepted one must be unchanged after writing
// and reading it.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "codecs/base/bytes.h"
#include "codecs/base/check.h"
#include "server/archive/files/build_journal.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace quire;  // NOLINT(google-build-using-namespace)
  const std::string text(AsText(ByteView(data, size)));
  const std::optional<JournalContents> found = ParseJournal(text);
  if (found.has_value()) {
    QUIRE_CHECK(ParseJournal(EncodeJournal(*found)) == found);
  }
  // This journal has a valid checksum, unless a line of the input is another.
  const JournalContents made = {.parameters = text + "\n"};
  const std::optional<JournalContents> back = ParseJournal(EncodeJournal(made));
  QUIRE_CHECK(text.find("checksum ") != std::string::npos || back == made);
  return 0;
}
