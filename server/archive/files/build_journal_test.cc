// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/archive/files/build_journal.h"

#include <gtest/gtest.h>

#include <string>

namespace quire {
namespace {

const JournalContents kContents = {.parameters = "codec zstd:3\nblock 4KiB\n",
                                   .dictionary_hash = 0x0123456789abcdef,
                                   .build_version = 7};

TEST(BuildJournalTest, RoundTrips) {
  EXPECT_EQ(ParseJournal(EncodeJournal(kContents)), kContents);
  const JournalContents without = {.parameters = kContents.parameters};
  EXPECT_EQ(ParseJournal(EncodeJournal(without)), without);
  EXPECT_NE(ParseJournal(EncodeJournal(without))->build_version,
            kContents.build_version);
}

TEST(BuildJournalTest, ReadsAsText) {
  const std::string file = EncodeJournal(kContents);
  EXPECT_TRUE(
      file.starts_with("quire journal 2\nbuild version 7\ncodec "
                       "zstd:3\nblock 4KiB\nchecksum "));
  EXPECT_TRUE(file.ends_with("\ndictionary 0123456789abcdef\n"));
}

TEST(BuildJournalTest, TakesNoLineThatIsNotWhole) {
  const std::string file = EncodeJournal(kContents);
  const std::string head = EncodeJournal({.parameters = kContents.parameters});
  for (size_t size = 0; size < file.size(); ++size) {
    const auto found = ParseJournal(file.substr(0, size));
    ASSERT_EQ(found.has_value(), size >= head.size()) << size;
    if (found.has_value()) {
      EXPECT_EQ(found->parameters, kContents.parameters);
      EXPECT_FALSE(found->dictionary_hash.has_value()) << size;
    }
  }
}

TEST(BuildJournalTest, SeesEveryChangeOfTheParameters) {
  const std::string file = EncodeJournal({.parameters = kContents.parameters});
  for (size_t i = 0; i < file.size(); ++i) {
    for (const int bit : {0, 3, 6, 7}) {
      std::string changed = file;
      changed[i] = static_cast<char>(changed[i] ^ (1 << bit));
      const auto found = ParseJournal(changed);
      // The checksum in another case is equal.
      EXPECT_TRUE(!found.has_value() ||
                  found->parameters == kContents.parameters)
          << i;
    }
  }
}

}  // namespace
}  // namespace quire
