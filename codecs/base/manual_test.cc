// SPDX-License-Identifier: Apache-2.0
#include "codecs/base/manual.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace quire {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Pair;

// A program with each kind of option.
class ManualTest : public ::testing::Test {
 protected:
  ManualTest() {
    app_.require_subcommand(1);
    app_.fallthrough();
    app_.add_option("-s,--server", server_, "Where it is")
        ->type_name("ADDR")
        ->capture_default_str();
    app_.add_flag("--secret", secret_, "Not for everyone")->group("");
    CLI::App* get = app_.add_subcommand("get", "Print 'documents'");
    get->add_option("ARCHIVE", archive_, "Its name")->required();
    get->add_option("ID", ids_, "What to print")->required();
    get->add_option("-o,--output", output_, "Where to")->type_name("FILE");
    get->add_option("--listen", address_, "Where to listen")
        ->type_name("HOST:PORT|unix:PATH")
        ->check(CLI::TypeValidator<std::string>("text"));
    OfferValues(*get->add_option("--codec", codec_, "Or another")
                     ->type_name("NAME[:LEVEL]"),
                {"rlz", "zstd"});
    get->add_flag("--json", json_, "As JSON: one line each [really]");
    CLI::App* tool = app_.add_subcommand("tool", "Others");
    tool->add_subcommand("make", "Make it")
        ->add_option("SHELL", archive_, "Which")
        ->required()
        ->check(CLI::IsMember({"bash", "zsh"}));
    app_.add_subcommand("hidden", "Not for everyone either")->group("");
    AttachManual(app_, manual_);
  }

  // Returns the output of the program, and its exit code.
  std::string Output(std::vector<std::string> arguments, int& exit_code) {
    std::reverse(arguments.begin(), arguments.end());
    std::ostringstream out;
    std::ostringstream err;
    try {
      app_.parse(arguments);
      exit_code = -1;
    } catch (const CLI::ParseError& e) {
      exit_code = app_.exit(e, out, err);
    }
    return out.str();
  }

  std::string address_;
  std::string codec_;
  bool secret_ = false;
  bool json_ = false;
  std::string server_ = "here:1";
  std::string archive_;
  std::string output_;
  std::vector<std::string> ids_;
  const Manual manual_ = {
      .version = "1.2.3",
      .exit_codes = {{"0", "Good."}, {"2", "Bad usage."}},
      .environment = {{"THING_SERVER", "Default of --server."}},
      .examples = {{"thing get a b", "Print b of a:"}},
      .word_source = nullptr};
  CLI::App app_{"prints things", "thing"};
};

struct CommandResult {
  int exit_code = -1;
  std::string output;
};

// Runs a script in bash; the output includes standard error.
CommandResult RunInBash(const std::string& script) {
  const std::string path =
      ::testing::TempDir() + "manual_test_" + std::to_string(getpid()) + ".sh";
  std::ofstream(path) << script;
  CommandResult result;
  FILE* pipe = popen(("bash '" + path + "' 2>&1").c_str(), "r");
  if (pipe != nullptr) {
    char buffer[4096];
    size_t size = 0;
    while ((size = fread(buffer, 1, sizeof(buffer), pipe)) > 0) {
      result.output.append(buffer, size);
    }
    result.exit_code = pclose(pipe);
  }
  std::remove(path.c_str());
  return result;
}

TEST_F(ManualTest, HelpEndsWithExitCodesAndExamples) {
  int exit_code = -1;
  const std::string help = Output({"--help"}, exit_code);
  EXPECT_THAT(help, HasSubstr("Exit codes:\n  0  Good.\n  2  Bad usage.\n"));
  EXPECT_THAT(help, HasSubstr("  THING_SERVER  Default of --server.\n"));
  EXPECT_THAT(help, HasSubstr("  # Print b of a:\n  thing get a b\n"));
  EXPECT_THAT(help, Not(HasSubstr("--complete ")));
}

TEST_F(ManualTest, AMistakeSaysWhereToReadOn) {
  const auto message_of = [](CLI::App& app, const std::string& arguments) {
    std::ostringstream out;
    std::ostringstream err;
    try {
      app.parse(arguments);
    } catch (const CLI::ParseError& error) {
      app.exit(error, out, err);
    }
    return err.str();
  };
  EXPECT_THAT(message_of(app_, "got web a"),
              HasSubstr("thing: the subcommand must be one of get, tool, "
                        "got \"got\"\n"));
  EXPECT_THAT(message_of(app_, "get --outptu x"),
              HasSubstr("thing: unknown option \"--outptu\"\n"));
  EXPECT_THAT(message_of(app_, "tool make bash more"),
              HasSubstr("thing: unexpected argument \"more\"\n"));
  EXPECT_THAT(message_of(app_, ""),
              HasSubstr("thing: a subcommand must be given: get, tool\n"));
  EXPECT_THAT(message_of(app_, "get web"),
              HasSubstr("thing: ID is required\n"));
  EXPECT_THAT(
      message_of(app_, "--bad"),
      HasSubstr("\nTry 'thing --help', or --help after a subcommand.\n"));
  EXPECT_THAT(message_of(app_, "get --bad web a"),
              HasSubstr("\nTry 'thing get --help'.\n"));
  CLI::App bare("Has no subcommands", "plain");
  AttachManual(bare, manual_);
  EXPECT_THAT(message_of(bare, "--bad"), HasSubstr("\nTry 'plain --help'.\n"));
}

TEST_F(ManualTest, OptionsPrintAndExit) {
  int exit_code = -1;
  EXPECT_EQ(Output({"--version"}, exit_code), "thing 1.2.3\n");
  EXPECT_EQ(exit_code, 0);
  const std::string help = Output({"--help-all"}, exit_code);
  EXPECT_EQ(exit_code, 0);
  EXPECT_THAT(help, HasSubstr("Subcommands:\nget\n  Print 'documents'\n"));
  EXPECT_THAT(help, HasSubstr("--output"));
  EXPECT_THAT(help, Not(HasSubstr("secret")));
  EXPECT_THAT(help, Not(HasSubstr("hidden")));
  EXPECT_EQ(Output({"--completion", "zsh"}, exit_code),
            CompletionScript("thing", "zsh"));
  EXPECT_EQ(exit_code, 0);
  EXPECT_EQ(Output({"--completion", "csh"}, exit_code), "");
  EXPECT_NE(exit_code, 0);
  // Although a subcommand is required.
  ::testing::internal::CaptureStdout();
  Output({"--complete", "thing\nget\n--codec\nz"}, exit_code);
  EXPECT_EQ(::testing::internal::GetCapturedStdout(), "zstd\n");
  EXPECT_EQ(exit_code, 0);
}

// The words that CompleteWords() offers, without descriptions.
std::vector<std::string> Complete(const CLI::App& app,
                                  const std::vector<std::string>& typed,
                                  const WordSource& source = nullptr) {
  std::vector<std::string> words = {"thing"};
  words.insert(words.end(), typed.begin(), typed.end());
  std::vector<std::string> offered = CompleteWords(app, words, source);
  for (std::string& word : offered) {
    word.resize(std::min(word.size(), word.find('\t')));
  }
  return offered;
}

TEST_F(ManualTest, CompletesWhatTheTreeKnows) {
  EXPECT_THAT(Complete(app_, {""}), ElementsAre("get", "tool"));
  EXPECT_THAT(Complete(app_, {"g"}), ElementsAre("get"));
  EXPECT_THAT(Complete(app_, {"--s"}), ElementsAre("--server"));
  EXPECT_THAT(Complete(app_, {"--server", "get", ""}),
              ElementsAre("get", "tool"));
  EXPECT_THAT(Complete(app_, {"get", "--j"}), ElementsAre("--json"));
  EXPECT_THAT(
      Complete(app_, {"-s", "x", "get", "-"}),
      ElementsAre("--help", "-h", "--output", "-o", "--listen", "--codec",
                  "--json", "--server", "-s", "--completion"));
  EXPECT_THAT(Complete(app_, {"get", "--codec", ""}),
              ElementsAre("rlz", "zstd"));
  EXPECT_THAT(Complete(app_, {"tool", "make", "b"}), ElementsAre("bash"));
  EXPECT_THAT(Complete(app_, {"get", "--output", ""}), ElementsAre());
  EXPECT_THAT(Complete(app_, {"get", "--", "-"}), ElementsAre());
  EXPECT_THAT(Complete(app_, {}), ElementsAre());
  EXPECT_THAT(CompleteWords(app_, {"thing", "g"}, nullptr),
              ElementsAre("get\tPrint 'documents'"));
}

TEST_F(ManualTest, CompletionAsksTheProgramForOtherWords) {
  TypedWords asked;
  const WordSource source = [&asked](const TypedWords& typed) {
    asked = typed;
    return std::vector<std::string>{"http://a", "other"};
  };
  EXPECT_THAT(
      Complete(app_,
               {"-s", "[::1]:7420", "get", "--codec=rlz", "web", "x", "http:"},
               source),
      ElementsAre("http://a"));
  EXPECT_THAT(asked.positionals, ElementsAre("web", "x"));
  EXPECT_EQ(asked.positional, "ID");
  EXPECT_THAT(asked.values,
              ElementsAre(Pair("codec", "rlz"), Pair("server", "[::1]:7420")));
}

// A program that records its arguments and offers `words`.
std::string ProgramOffering(const std::string& words) {
  return "thing() { printf '%s|' \"$1\" \"${2//$'\\n'/ }\" >&3; printf '" +
         words + "'; }\nexec 3>&1\n";
}

TEST_F(ManualTest, BashCompletes) {
  const auto complete = [](const std::string& line, const std::string& words) {
    return RunInBash(ProgramOffering(words) +
                     CompletionScript("thing", "bash") + "COMP_LINE='" + line +
                     "'\nCOMP_POINT=${#COMP_LINE}\n_thing\n"
                     "echo \"${COMPREPLY[*]}\"\n")
        .output;
  };
  EXPECT_EQ(complete("thing get w", "web\\tThe web\\nwide\\n"),
            "--complete|thing get w|web wide\n");
  EXPECT_EQ(complete("thing get ", ""), "--complete|thing get |\n");
  // Bash replaces the text after the last colon by the answer.
  EXPECT_EQ(complete("thing get http://", "http://a\\nhttp://b\\n"),
            "--complete|thing get http://|//a //b\n");
}

TEST_F(ManualTest, ZshCompletes) {
  if (std::system("command -v zsh >/dev/null") != 0) {
    GTEST_SKIP() << "zsh is not installed";
  }
  const CommandResult result = RunInBash(
      "zsh -f <<'END'\n" + ProgramOffering("web\\tThe web\\nwide\\n") +
      "compdef() { :; }\ncompadd() { print -r -- \"${offered[*]}\" "
      "\"${shown[*]}\"; }\n" +
      CompletionScript("thing", "zsh") +
      "words=(thing get w) CURRENT=3\n_thing\nEND\n");
  EXPECT_EQ(result.output,
            "--complete|thing get w|web wide web  -- The web wide\n");
}

}  // namespace
}  // namespace quire
