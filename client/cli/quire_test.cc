// SPDX-License-Identifier: Apache-2.0
//
// The program as people run it, against a server that fails as told.

#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "client/cli/testing/cli_fixture.h"
#include "client/quire/testing/client_fixture.h"
#include "client/quire/testing/fake_server.h"
#include "codecs/base/printable_text.h"

namespace quire {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class QuireTest : public CliTest {
 protected:
  QuireTest() : CliTest(TestArchives()) {}

  const std::string web_text_ = WholeText(archives_.at("web"));
};

TEST_F(QuireTest, ListsAndDescribesArchives) {
  ProgramRun run = Run({"archives"});
  EXPECT_EQ(run.exit_code, 0);
  EXPECT_THAT(run.out, StartsWith("NAME "));
  EXPECT_THAT(run.out, HasSubstr("\nweb "));
  EXPECT_EQ(run.err, "");
  run = Run({"archives", "--json"});
  EXPECT_THAT(run.out, StartsWith("{\"name\":\"empty\",\"uuid\":"));
  EXPECT_EQ(std::count(run.out.begin(), run.out.end(), '\n'), 3);
  run = Run({"info", "web"});
  EXPECT_EQ(run.exit_code, 0);
  EXPECT_THAT(run.out, HasSubstr("documents:   44\n"));
  EXPECT_THAT(run.out, HasSubstr("hash-of-web"));
  run = Run({"--json", "info", "web"});
  EXPECT_THAT(run.out, HasSubstr("\"dictionary_size_bytes\":4500}\n"));
}

// The columns would be as wide in each line.
TEST_F(QuireTest, ListsAnArchiveWithANameOverAllLimits) {
  constexpr size_t kNameSize = 100'000;
  server_->Reload({{std::string(kNameSize, 'n'), {}}, {"short", {}}});
  const ProgramRun run = Run({"archives"});
  EXPECT_EQ(run.exit_code, 0);
  EXPECT_LT(run.out.size(), kNameSize + 1000);
  EXPECT_THAT(run.out, HasSubstr("\nshort "));
}

TEST_F(QuireTest, ListsDocuments) {
  ProgramRun run = Run({"ls", "web", "doc/3"});
  EXPECT_EQ(run.exit_code, 0);
  EXPECT_THAT(run.out, StartsWith("doc/30\ndoc/31\n"));
  run = Run({"ls", "-l", "web", "twice"});
  EXPECT_EQ(run.out,
            "        SIZE  TIME                      TYPE        STATUS      "
            "NUMBER  ID\n"
            "          13  1970-01-01T00:00:01.000Z  -                -      "
            "    40  twice\n"
            "          14  1970-01-01T00:00:02.000Z  -                -      "
            "    41  twice\n");
  run = Run({"ls", "web", "twice", "--json"});
  EXPECT_THAT(run.out,
              StartsWith("{\"id\":\"twice\",\"ordinal\":40,\"offset\":7800,"
                         "\"size_bytes\":13,\"capture_time\":"
                         "\"1970-01-01T00:00:01.000Z\",\"media_type\":"
                         "\"text/html\"}\n"));
  run = Run({"ls", "web", "-0"});
  EXPECT_THAT(run.out, HasSubstr(Web(42).id + std::string(1, '\0')));
  run = Run({"ls", "empty"});
  EXPECT_EQ(run.exit_code, 0);
  run = Run({"ls", "web", "nothing/"});
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.err, HasSubstr("\"nothing/\""));
}

TEST_F(QuireTest, ListsALevelOfDocuments) {
  ProgramRun run = Run({"ls", "web", "--delimiter", "/"});
  EXPECT_EQ(run.exit_code, 0);
  EXPECT_THAT(run.out, EndsWith("\ndoc/\nlarge\ntwice\t@0\ntwice\t@1\n"));
  run = Run({"ls", "-0", "web", "doc/3", "--delimiter", "5"});
  EXPECT_EQ(std::count(run.out.begin(), run.out.end(), '\0'), 10);
  run = Run({"ls", "-l", "web", "do", "--delimiter", "c/"});
  EXPECT_EQ(run.out,
            "        SIZE  TIME                      TYPE        STATUS      "
            "NUMBER  ID\n"
            "           -  -                         -                -      "
            "     -  doc/\n");
  run = Run({"ls", "--json", "web", "d", "--delimiter", "/"});
  EXPECT_EQ(run.out, "{\"common_prefix\":\"doc/\"}\n");
  // CLI11 would take this for a list.
  EXPECT_EQ(Run({"ls", "web", "--delimiter", "[/]"}).exit_code, 0);
  run = Run({"ls", "web", "--delimiter", ""});
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_THAT(run.err, HasSubstr("at least 1 byte"));
}

TEST_F(QuireTest, ReadsOnlyTheContentsThatItNames) {
  const std::string info = Run({"info", "web"}).out;
  const size_t begin = info.find("uuid: ") + 13;
  const std::string uuid = info.substr(begin, info.find('\n', begin) - begin);
  const std::string path = directory_ + "/export.tar";
  const std::vector<std::vector<std::string>> commands = {
      {"ls", "web"},
      {"get", "web", "large"},
      {"range", "web", "0", "10"},
      {"scan", "web"},
      {"batch", "web", directory_ + "/items"},
      {"export", "web", "--tar", path}};
  std::ofstream(directory_ + "/items") << "doc/17\nlarge\ndoc/18\n";
  for (std::vector<std::string> command : commands) {
    command.insert(command.end(), {"--uuid", uuid});
    EXPECT_EQ(Run(command).exit_code, 0) << command[0];
    command.back() = "0-0";
    const ProgramRun run = Run(command);
    EXPECT_EQ(run.exit_code, 1) << command[0];
    EXPECT_EQ(std::count(run.err.begin(), run.err.end(), '\n'),
              command[0] == "export" ? 2 : 1)
        << run.err;
    EXPECT_THAT(run.err, HasSubstr("other contents")) << command[0];
    EXPECT_EQ(run.out, "") << command[0];
  }
}

TEST_F(QuireTest, AnExportIsOfOneState) {
  FakeFaults faults;
  faults.edit_scan = [this](const v1::ScanResponse& /*message*/) {
    server_->Reload(
        {{"web", {.documents = {{.id = "other", .text = "other text"}}}}});
  };
  server_->SetFaults(faults);
  const std::string path = directory_ + "/export.tar";
  const ProgramRun run = Run({"export", "web", "--tar", path});
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.err, HasSubstr("was replaced by other contents during the "
                                 "export; run it again"));
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST_F(QuireTest, EscapesIdsOnATerminalOnly) {
  ProgramInput input;
  input.arguments = {"ls", "web", "\x01"};
  input.terminal_out = true;
  const ProgramRun shown = Run(input);
  EXPECT_THAT(shown.out, HasSubstr("\\x01\\x1B[31m\\xFF\\x0A\n"));
  EXPECT_THAT(shown.out, Not(HasSubstr("\x1B")));
  EXPECT_THAT(Run({"ls", "web"}).out, HasSubstr(Web(42).id + "\n"));
}

TEST_F(QuireTest, GetsDocuments) {
  EXPECT_EQ(Run({"get", "web", "doc/17"}).out, Web(17).text);
  EXPECT_EQ(Run({"get", "web", "large"}).out, Web(43).text);
  EXPECT_EQ(Run({"get", "web", "doc/02", "twice", "doc/01"}).out,
            Web(2).text + "second version" + Web(1).text);
  EXPECT_EQ(Run({"get", "web", "twice", "--occurrence", "0"}).out,
            "first version");
  EXPECT_EQ(Run({"get", "--ordinal", "web", "5", "6"}).out,
            Web(5).text + Web(6).text);
  const ProgramRun json = Run({"get", "tiny", "only", "--json"});
  EXPECT_EQ(json.out,
            absl::StrCat("{\"id\":\"only\",\"ordinal\":0,\"offset\":0,"
                         "\"size_bytes\":17,\"data_base64\":\"",
                         absl::Base64Escape("the only document"), "\"}\n"));
}

TEST_F(QuireTest, PrintsTheOthersIfOneIsMissing) {
  const ProgramRun run = Run({"get", "web", "doc/01", "missing\x1B", "doc/02"});
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_EQ(run.out, Web(1).text + Web(2).text);
  EXPECT_EQ(run.err, "quire: document \"missing\\x1B\": no such document\n");
}

TEST_F(QuireTest, TakesIdsThatLookLikeSomethingElse) {
  for (const std::string id : {"[a,b]", "[a,b]\x1F", "[]", "ls", "get", "",
                               "--", "-o", "{}", "%%", "a=b", "--json"}) {
    std::vector<std::string> arguments = {"get", "web", "--", id};
    const ProgramRun run = Run(arguments);
    EXPECT_EQ(run.exit_code, 1) << id;
    EXPECT_EQ(run.err, absl::StrCat("quire: document ", QuotedText(id),
                                    ": no such document\n"));
  }
  EXPECT_THAT(Run({"get", "web", "--file", "[q]"}).err,
              StartsWith("quire: file \"[q]\": "));
  EXPECT_EQ(Run({"get", "web", "ls", "[a]", "{}"}).err,
            "quire: document \"ls\": no such document\n"
            "quire: document \"[a]\": no such document\n"
            "quire: document \"{}\": no such document\n");
}

TEST_F(QuireTest, PrintsRanges) {
  EXPECT_EQ(Run({"range", "web", "100", "5"}).out, web_text_.substr(100, 5));
  EXPECT_EQ(Run({"range", "web", "1KiB", "16KiB"}).out,
            web_text_.substr(1024, 16384));
  EXPECT_EQ(Run({"range", "web", "7", "0"}).out, "");
  EXPECT_EQ(Run({"range", "web", "99999999", "1"}).exit_code, 1);
  ProgramRun run = Run({"range", "web", "x", "1"});
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_THAT(run.err, StartsWith("quire: OFFSET: "));
  run = Run({"range", "web", "0", "3", "--json"});
  EXPECT_THAT(run.out, StartsWith("{\"offset\":0,\"size_bytes\":3,"));
}

TEST_F(QuireTest, ScansArchives) {
  EXPECT_EQ(Run({"scan", "web"}).out, web_text_);
  EXPECT_EQ(Run({"scan", "web", "--offset", "1KiB", "--length", "999"}).out,
            web_text_.substr(1024, 999));
  EXPECT_EQ(Run({"scan", "empty"}).out, "");
  FakeFaults faults;
  faults.broken_streams = 3;
  faults.messages_before_break = 4;
  server_->SetFaults(faults);
  EXPECT_EQ(Run({"scan", "web"}).out, web_text_);
}

TEST_F(QuireTest, ReadsBatchesInTheOrderAsked) {
  std::string items;
  std::string expected;
  for (size_t i = 0; i < 3000; ++i) {
    const size_t ordinal = i * 7 % 42;
    absl::StrAppend(&items, ordinal, "\n");
    expected += Web(ordinal).text;
  }
  ProgramRun run = Run({"batch", "web", "--ordinal"}, items);
  EXPECT_EQ(run.exit_code, 0);
  EXPECT_EQ(run.err, "");
  EXPECT_TRUE(run.out == expected);
  run = Run({"batch", "web", "--ordinal", "--unordered"}, items);
  EXPECT_EQ(run.out.size(), expected.size());
  EXPECT_FALSE(run.out == expected);
}

TEST_F(QuireTest, ReadsBatchesOfAllForms) {
  EXPECT_EQ(Run({"batch", "web"}, "doc/05\n\nlarge\ndoc/06").out,
            Web(5).text + Web(43).text + Web(6).text);
  EXPECT_EQ(Run({"batch", "web", "-0"}, Web(42).id + std::string(1, '\0')).out,
            "binary");
  EXPECT_EQ(Run({"batch", "web", "--ranges"}, "0 10\r\n1KiB 20\n").out,
            web_text_.substr(0, 10) + web_text_.substr(1024, 20));
  std::ofstream(directory_ + "/ids") << "doc/03\n";
  EXPECT_EQ(Run({"batch", "web", directory_ + "/ids"}).out, Web(3).text);
  EXPECT_EQ(Run({"batch", "web"}).out, "");
}

TEST_F(QuireTest, TellsWhichItemsOfABatchFailed) {
  ProgramRun run = Run({"batch", "web"}, "doc/05\nnothing\ndoc/06\n");
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_EQ(run.out, Web(5).text + Web(6).text);
  EXPECT_EQ(run.err, "quire: item 2, document \"nothing\": no such document\n");
  run = Run({"batch", "web"}, "doc/05\r\n");
  EXPECT_THAT(run.err, HasSubstr("carriage return: do the lines end with CR"));
  run = Run({"batch", "tiny", "--json"}, "only\nnothing\n");
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.out, StartsWith("{\"item\":1,\"id\":\"only\""));
  EXPECT_THAT(run.out,
              HasSubstr("\n{\"item\":2,\"error\":{\"code\":\"NOT_FOUND\","
                        "\"reason\":\"DOCUMENT_NOT_FOUND\""));
  run = Run({"batch", "web", "--ranges"}, "1 2\noops\n");
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_THAT(run.err,
              HasSubstr("standard input, item 2: an item must be "
                        "OFFSET LENGTH, as in 1GiB 64KiB, got \"oops\""));
  run = Run({"batch", "nowhere"}, "a\nb\n");
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_EQ(run.err, "quire: no archive 'nowhere'\n");
  run = Run({"batch", "web", directory_ + "/none"});
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.err, HasSubstr("No such file"));
}

TEST_F(QuireTest, WritesBatchesToADirectory) {
  const std::string pages = directory_ + "/pages";
  ProgramRun run = Run({"batch", "web", "--output-dir", pages},
                       "doc/05\n../../evil\nlarge\n");
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_EQ(run.out, "");
  EXPECT_EQ(FileText(pages + "/doc%2F05"), Web(5).text);
  EXPECT_EQ(FileText(pages + "/large"), Web(43).text);
  run = Run({"batch", "web", "--ranges", "--output-dir", pages}, "5 10\n");
  EXPECT_EQ(FileText(pages + "/5-10"), web_text_.substr(5, 10));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(pages),
                          std::filesystem::directory_iterator()),
            3);
  run = Run({"batch", "web", "--output-dir", pages, "--json"});
  EXPECT_EQ(run.exit_code, 2);
  run = Run({"batch", "web", "--output-dir", ""}, "doc/05\n");
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_EQ(run.out, "");
  EXPECT_THAT(run.err, HasSubstr("DIR must not be empty"));
  // Another user may have made a link, or a pipe, of the name.
  const std::string link = pages + "/doc%2F06";
  std::ofstream(directory_ + "/target") << "kept";
  std::filesystem::create_symlink(directory_ + "/target", link);
  ASSERT_EQ(mkfifo((pages + "/doc%2F07").c_str(), 0600), 0);
  run = Run({"batch", "web", "--output-dir", pages}, "doc/06\ndoc/07\n");
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(FileText(directory_ + "/target"), "kept");
  EXPECT_FALSE(std::filesystem::is_symlink(link));
  EXPECT_EQ(FileText(link), Web(6).text);
  EXPECT_EQ(FileText(pages + "/doc%2F07"), Web(7).text);
}

TEST_F(QuireTest, TellsHowFarABatchIs) {
  const std::string items = "doc/05\n\ndoc/06\nnothing";
  std::ofstream(directory_ + "/items") << items;
  const std::string path = directory_ + "/items";
  ProgramRun run = Run({"batch", "web", path, "--progress", "always"});
  EXPECT_EQ(run.out, Web(5).text + Web(6).text);
  EXPECT_THAT(run.err, HasSubstr("quire: [####################] 3 / 3 items "
                                 "(100 %), "));
  EXPECT_THAT(run.err, EndsWith(", 1 failed\n"));
  // The length of a pipe is unknown.
  ProgramInput piped;
  piped.arguments = {
      "-c",
      absl::StrCat("/bin/cat ", path, " | ", std::getenv("QUIRE_BINARY_DIR"),
                   "/bin/quire batch web --progress always")};
  piped.environment = {"QUIRE_SERVER=" + server_->address()};
  run = RunProgram("/bin/sh", piped);
  EXPECT_THAT(run.err, HasSubstr("quire: 3 done, "));
  EXPECT_THAT(run.err, Not(HasSubstr("left")));
  for (const char* mode : {"auto", "never"}) {
    run = Run({"batch", "web", "--progress", mode}, items);
    EXPECT_THAT(run.err, EndsWith("no such document\n")) << mode;
  }
  EXPECT_EQ(Run({"batch", "web", "--progress", "perhaps"}).exit_code, 2);
}

TEST_F(QuireTest, CompletesNamesThatTheServerKnows) {
  const auto complete = [this](std::vector<std::string> words) {
    words.insert(words.begin(), "quire");
    const ProgramRun run = Run({"--complete", absl::StrJoin(words, "\n")});
    EXPECT_EQ(run.exit_code, 0);
    EXPECT_EQ(run.err, "");
    return run.out;
  };
  EXPECT_EQ(complete({"info", ""}), "empty\ntiny\nweb\n");
  EXPECT_EQ(complete({"get", "--at", "2022", "w"}), "web\n");
  EXPECT_EQ(complete({"get", "web", "doc/1"}),
            "doc/10\ndoc/11\ndoc/12\ndoc/13\ndoc/14\ndoc/15\ndoc/16\n"
            "doc/17\ndoc/18\ndoc/19\n");
  // Two versions of an id are offered once; any number of ids completes.
  EXPECT_EQ(complete({"get", "web", "--", "doc/1", "tw"}), "twice\n");
  EXPECT_EQ(complete({"ls", "web", "lar"}), "large\n");
  EXPECT_THAT(complete({"get", "web", ""}), Not(HasSubstr("\x1B")));
  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{{},
                                             {"nothing", ""},
                                             {"ls", "web", "lar", ""},
                                             {"get", "web", "--at", ""},
                                             {"get", "nowhere", ""},
                                             {"range", "web", ""},
                                             {"-s", "unix:/none", "info", ""},
                                             {"--server=::", "info", ""}}) {
    EXPECT_EQ(complete(words), "");
  }
}

TEST_F(QuireTest, GetsPartsOfDocuments) {
  EXPECT_EQ(Run({"get", "web", "doc/17", "--range", "3:10"}).out,
            Web(17).text.substr(3, 10));
  EXPECT_EQ(Run({"get", "web", "large", "--range", "1KiB:2KiB"}).out,
            Web(43).text.substr(1024, 2048));
  EXPECT_EQ(Run({"get", "web", "--ordinal", "5", "6", "--range", "0:4"}).out,
            Web(5).text.substr(0, 4) + Web(6).text.substr(0, 4));
  ProgramRun run = Run({"get", "tiny", "only", "--range", "10:8"});
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_EQ(run.out, "");
  EXPECT_THAT(run.err, HasSubstr("document \"only\", 8 bytes at offset 10: "));
  for (const char* bad : {"5", "5:", ":5", "-1:5", "a:b", "1:2:3"}) {
    run = Run({"get", "web", "doc/17", "--range", bad});
    EXPECT_EQ(run.exit_code, 2) << bad;
    EXPECT_THAT(run.err, HasSubstr("--range")) << bad;
  }
}

TEST_F(QuireTest, KeepsBinaryDataOffATerminal) {
  const std::string binary("\x1F\x8B\0\0", 4);
  FakeArchive raw;
  raw.documents = {{"text", "abc", {}, {}}, {"gzip", binary, {}, {}}};
  server_ = FakeServer::Start({}, {{"raw", raw}});
  ProgramInput input;
  input.terminal_out = true;
  for (const std::vector<std::string>& arguments :
       std::vector<std::vector<std::string>>{{"get", "raw", "text", "gzip"},
                                             {"range", "raw", "0", "7"},
                                             {"scan", "raw"}}) {
    input.arguments = arguments;
    ProgramRun run = Run(input);
    EXPECT_EQ(run.exit_code, 1);
    EXPECT_THAT(run.out, Not(HasSubstr(binary)));
    EXPECT_THAT(run.err, HasSubstr("--force prints them"));
    EXPECT_THAT(Run(arguments).out, EndsWith(binary));
    input.arguments.push_back("--force");
    run = Run(input);
    EXPECT_EQ(run.exit_code, 0);
    EXPECT_THAT(run.out, HasSubstr(binary));
  }
  input.arguments = {"get", "raw", "text"};
  EXPECT_THAT(Run(input).out, HasSubstr("abc"));
}

TEST_F(QuireTest, WritesAFileOnlyIfAllIsWell) {
  const std::string path = directory_ + "/page";
  EXPECT_EQ(Run({"get", "web", "doc/09", "-o", path}).exit_code, 0);
  EXPECT_EQ(FileText(path), Web(9).text);
  const ProgramRun run = Run({"get", "web", "doc/08", "missing", "-o", path});
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_EQ(FileText(path), Web(9).text);
  EXPECT_THAT(run.err, HasSubstr("page\" was not written"));
  EXPECT_EQ(
      Run({"get", "web", "doc/08", "-o", directory_ + "/no/page"}).exit_code,
      1);
}

// All text has come, so that only their number tells.
TEST_F(QuireTest, AnExportOfAnotherKindOfFileIsRefused) {
  const std::string path = directory_ + "/web.tar.zst";
  const ProgramRun run = Run({"export", "web", "--tar", path});
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_THAT(run.err, HasSubstr("if its name ends in .gz or .tgz"));
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST_F(QuireTest, AnExportWithoutTheLastEmptyDocumentsIsNotWhole) {
  server_->Reload({{"tail",
                    {.documents = {{.id = "a", .text = "text"},
                                   {.id = "b", .text = ""},
                                   {.id = "c", .text = ""}}}}});
  const std::string path = directory_ + "/tail.tar";
  EXPECT_EQ(Run({"export", "tail", "--tar", path}).exit_code, 0);
  std::filesystem::remove(path);
  FakeFaults faults;
  faults.unlisted_documents = 2;
  server_->SetFaults(faults);
  const ProgramRun run = Run({"export", "tail", "--tar", path});
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.err, HasSubstr("did not list document number 1 of "));
  EXPECT_FALSE(std::filesystem::exists(path));
  EXPECT_THAT(Run({"export", "tail", "--output-dir", path}).err,
              HasSubstr("did not list document number 1 of "));
}

TEST_F(QuireTest, AScanThatEndsEarlyKeepsWhatCame) {
  const std::string json = Run({"info", "web", "--json"}).out;
  const size_t begin = json.find("\"uuid\":\"") + 8;
  const std::string uuid = json.substr(begin, json.find('"', begin) - begin);
  FakeFaults faults;
  faults.early_ends = 1;
  faults.messages_before_break = 2;
  server_->SetFaults(faults);
  const std::string path = directory_ + "/scan";
  const ProgramRun run =
      Run({"scan", "web", "--offset", "5", "--length", "9000", "-o", path});
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_FALSE(std::filesystem::exists(path));
  const std::string kept = FileText(path + ".partial");
  ASSERT_GT(kept.size(), 0u);
  EXPECT_EQ(kept, web_text_.substr(5, kept.size()));
  EXPECT_THAT(run.err,
              HasSubstr(absl::StrCat(
                  "what came is in \"", path,
                  ".partial\"; the rest: quire scan web --uuid ", uuid,
                  " --offset ", 5 + kept.size(), " --length ",
                  9000 - kept.size(), " >> \"", path, ".partial\"\n")));
}

TEST_F(QuireTest, AScanInStoredOrderIsWholeOrNotThere) {
  FakeFaults faults;
  faults.edit_scan = [](v1::ScanResponse& message) {
    v1::ScanPlace& place = *message.add_places();
    place.set_offset(message.range().offset());
    place.set_size_bytes(static_cast<uint32_t>(message.range().size_bytes()));
  };
  server_->SetFaults(faults);
  const std::string path = directory_ + "/scan";
  EXPECT_EQ(Run({"scan", "web", "-o", path}).exit_code, 0);
  EXPECT_EQ(FileText(path), web_text_);
  std::filesystem::remove(path);
  faults.early_ends = 1;
  faults.messages_before_break = 2;
  server_->SetFaults(faults);
  const ProgramRun run = Run({"scan", "web", "-o", path});
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_FALSE(std::filesystem::exists(path));
  EXPECT_FALSE(std::filesystem::exists(path + ".partial"));
  EXPECT_THAT(run.err, HasSubstr("what came is not kept"));
  EXPECT_THAT(run.err, HasSubstr("quire scan web > FILE"));
}

// Documents are withdrawn during the scan, or an append joins parts of the
// archive.
TEST_F(QuireTest, AScanStartsAgainIfItsOrderIsGone) {
  const std::string path = directory_ + "/scan";
  FakeFaults faults;
  faults.broken_streams = 1;
  faults.messages_before_break = 2;
  faults.refused_resumes = 1;
  int message_count = 0;
  faults.edit_scan = [&message_count](v1::ScanResponse& message) {
    // Places in the wrong order: the logical scan overwrites all of them.
    if (message_count++ < 2) {
      v1::ScanPlace& place = *message.add_places();
      place.set_offset(5000 - message.range().offset());
      place.set_size_bytes(static_cast<uint32_t>(message.range().size_bytes()));
    }
  };
  server_->SetFaults(faults);
  const ProgramRun run = Run({"scan", "web", "-o", path});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(FileText(path), web_text_);
  EXPECT_GT(message_count, 3);
  EXPECT_EQ(server_->CallCount("Scan"), 3);
}

TEST_F(QuireTest, ReportsDamage) {
  FakeFaults faults;
  faults.wrong_checksums = 1;
  server_->SetFaults(faults);
  const ProgramRun run = Run({"get", "web", "doc/09", "doc/10"});
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_EQ(run.out, Web(10).text);
  EXPECT_EQ(run.err,
            "quire: document \"doc/09\": received bytes do not match their "
            "checksum\n");
}

TEST_F(QuireTest, ReportsAServerOutOfReach) {
  ProgramRun run =
      Run({"--server", "unix:/nonexistent/socket", "get", "web", "a", "b"});
  EXPECT_EQ(run.exit_code, 3);
  EXPECT_THAT(run.err, HasSubstr("cannot reach the server at unix:/nonexist"));
  EXPECT_EQ(std::count(run.err.begin(), run.err.end(), '\n'), 1);
  FakeFaults faults;
  faults.stalled_calls = 1;
  server_->SetFaults(faults);
  run = Run({"--timeout", "50ms", "info", "web"});
  EXPECT_EQ(run.exit_code, 3);
  EXPECT_THAT(run.err, HasSubstr(absl::StrCat(
                           "; --timeout (now 50ms) waits longer, --server or "
                           "QUIRE_SERVER (now ",
                           server_->address(), ") say where\n")));
  server_->Release();
}

TEST_F(QuireTest, PassesTheTraceOn) {
  const std::string trace =
      "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
  ProgramInput input;
  input.arguments = {"get", "web", "doc/17"};
  input.environment = {"TRACEPARENT=" + trace};
  EXPECT_EQ(Run(input).exit_code, 0);
  EXPECT_THAT(server_->TraceParents(),
              ::testing::AllOf(::testing::SizeIs(::testing::Ge(1u)),
                               ::testing::Each(trace)));
  input.environment = {"TRACEPARENT=00-xyz"};
  const ProgramRun run = Run(input);
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_THAT(run.err, HasSubstr("--traceparent (TRACEPARENT) must be"));
  EXPECT_THAT(run.err, HasSubstr("got \"00-xyz\""));
  input.environment = {"TRACEPARENT="};
  EXPECT_EQ(Run(input).exit_code, 0);
}

TEST_F(QuireTest, RefusesMistakesInTheCommandLine) {
  const std::vector<std::vector<std::string>> mistakes = {
      {},
      {"fetch", "web"},
      {"get"},
      {"get", "web"},
      {"get", "web", "--bogus", "x"},
      {"range", "web", "1"},
      {"range", "web", "1", "2", "3"},
      {"get", "web", "x", "--ordinal"},
      {"get", "web", "1", "--ordinal", "--occurrence", "1"},
      {"get", "web", "x", "--occurrence", "-1"},
      {"get", "web", "1", "--ordinal", "--at", "2022"},
      {"get", "web", "1", "--ordinal", "--record-type", "response"},
      {"get", "web", "x", "--occurrence", "1", "--at", "2022"},
      {"get", "web", "x", "--occurrence", "1", "--record-type", "response"},
      {"get", "web", "x", "--at", "June"},
      {"info", "web", "--timeout", "never"},
      {"info", "web", "--server", "somewhere"},
      {"scan", "web", "--json"},
      {"--completion", "csh"}};
  for (const std::vector<std::string>& arguments : mistakes) {
    const ProgramRun run = Run(arguments);
    EXPECT_EQ(run.exit_code, 2) << ::testing::PrintToString(arguments);
    EXPECT_EQ(run.out, "") << ::testing::PrintToString(arguments);
    EXPECT_THAT(run.err, StartsWith("quire: "))
        << ::testing::PrintToString(arguments);
  }
  for (const char* number : {"-1", "1.5", "x"}) {
    EXPECT_THAT(Run({"get", "web", "x", "--occurrence", number}).err,
                StartsWith(absl::StrCat(
                    "quire: --occurrence: must be a whole number from 0, got ",
                    QuotedText(number), "\n")));
  }
}

TEST_F(QuireTest, EndsQuietlyIfNobodyReads) {
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"scan", "web"},
        {"ls", "web"},
        {"get", "web", "doc/10", "doc/11"},
        {"archives"},
        {"--completion", "bash"}}) {
    ProgramInput input;
    input.arguments = arguments;
    input.closed_out = true;
    const ProgramRun run = Run(input);
    EXPECT_EQ(run.exit_code, 0) << ::testing::PrintToString(arguments);
    EXPECT_EQ(run.err, "") << ::testing::PrintToString(arguments);
  }
}

TEST_F(QuireTest, ReportsAFullDisk) {
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"scan", "web"},
        {"ls", "web"},
        {"get", "web", "doc/10", "doc/11"}}) {
    ProgramInput input;
    input.arguments = arguments;
    input.out_path = "/dev/full";
    const ProgramRun run = Run(input);
    EXPECT_EQ(run.exit_code, 1) << ::testing::PrintToString(arguments);
    EXPECT_EQ(run.err,
              "quire: cannot write to standard output: No space left on "
              "device\n");
  }
}

TEST_F(QuireTest, ExplainsItself) {
  ProgramRun run = Run({"--help"});
  EXPECT_EQ(run.exit_code, 0);
  EXPECT_THAT(run.out, HasSubstr("Exit codes:\n  0  "));
  EXPECT_EQ(Run({"batch", "--help"}).exit_code, 0);
  EXPECT_THAT(Run({"--version"}).out, StartsWith("quire 0."));
  EXPECT_THAT(Run({"--help-all"}).out, HasSubstr("archives\n"));
  for (const char* shell : {"bash", "zsh"}) {
    run = Run({"--completion", shell});
    EXPECT_EQ(run.exit_code, 0);
    EXPECT_THAT(run.out, HasSubstr("quire --complete"));
  }
}

}  // namespace
}  // namespace quire
