// SPDX-License-Identifier: Apache-2.0
//
// Runs the program with answers in all wire encodings.

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "client/cli/testing/cli_fixture.h"
#include "client/quire/testing/client_fixture.h"
#include "client/quire/testing/fake_server.h"

namespace quire {
namespace {

using ::testing::HasSubstr;

std::map<std::string, FakeArchive> EncodedArchives() {
  std::map<std::string, FakeArchive> archives = TestArchives();
  archives.at("web").has_symbol_table = true;
  archives.at("web").codec = "rlz";
  return archives;
}

class QuireEncodingTest : public CliTest {
 protected:
  QuireEncodingTest() : CliTest(EncodedArchives()) {}
};

TEST_F(QuireEncodingTest, ReadsInEveryEncodingAndSaysSo) {
  const std::string cache = directory_ + "/cache";
  for (const char* encoding : {"identity", "fsst", "stored", "auto"}) {
    for (int i = 0; i < 2; ++i) {
      EXPECT_EQ(
          Run({"get", "web", "large", "-e", encoding, "--cache-dir", cache})
              .out,
          Web(43).text);
    }
    EXPECT_EQ(Run({"scan", "web", "-e", encoding, "--cache-dir", cache}).out,
              WholeText(archives_.at("web")));
    const ProgramRun run =
        Run({"batch", "web", "-v", "-e", encoding, "--cache-dir", cache},
            "doc/17\ndoc/18\n");
    EXPECT_EQ(run.out, Web(17).text + Web(18).text);
    EXPECT_THAT(run.err, HasSubstr("quire: 2 answers, 350 B from "));
    EXPECT_THAT(
        run.err,
        HasSubstr(std::string(": 2 ") +
                  (encoding == std::string("auto") ? "identity" : encoding)));
  }
  EXPECT_EQ(server_->CallCount("GetSymbolTable"), 1);
  EXPECT_EQ(server_->CallCount("GetDictionary"), 1);
  // Without a directory each run fetches the tables.
  for (const char* none : {"--cache-dir=-", "--cache-dir=/dev/null/no"}) {
    const ProgramRun run =
        Run({"get", "web", "twice", "-v", "-e", "fsst", none});
    EXPECT_EQ(run.out, "second version");
    EXPECT_THAT(run.err, HasSubstr("; tables of "));
  }
  EXPECT_EQ(server_->CallCount("GetSymbolTable"), 3);
  EXPECT_EQ(Run({"get", "web", "twice", "-e", "gzip"}).exit_code, 2);
}

TEST_F(QuireEncodingTest, KeepsTablesInTheUsersCacheDirectory) {
  for (const char* name : {"XDG_CACHE_HOME=", "HOME="}) {
    EXPECT_EQ(
        Run({"get", "web", "twice", "-e", "fsst"}, "", {name + directory_}).out,
        "second version");
  }
  EXPECT_EQ(server_->CallCount("GetSymbolTable"), 2);
  EXPECT_FALSE(std::filesystem::is_empty(directory_ + "/quire"));
  EXPECT_FALSE(std::filesystem::is_empty(directory_ + "/.cache/quire"));
}

}  // namespace
}  // namespace quire
