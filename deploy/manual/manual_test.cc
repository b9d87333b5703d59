// SPDX-License-Identifier: Apache-2.0
#include "deploy/manual/manual.h"

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

using ::testing::HasSubstr;
using ::testing::Not;

// A program with one of everything.
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
    CLI::App* completion = app_.add_subcommand("completion", "Print it");
    completion->add_option("SHELL", archive_, "Which")
        ->required()
        ->check(CLI::IsMember({"bash", "zsh"}));
    app_.add_subcommand("hidden", "Not for everyone either")->group("");
    AttachManual(app_, manual_);
  }

  // What the program prints when called so, and its exit code.
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
      .description = {"It prints.", ".It also \"prints\" \\ this."},
      .exit_codes = {{"0", "Good."}, {"2", "Bad usage."}},
      .environment = {{"THING_SERVER", "Default of --server."}},
      .examples = {{"thing get a b", "Print b of a:"}},
      .see_also = {"other(1)"}};
  CLI::App app_{"prints things", "thing"};
};

struct CommandResult {
  int exit_code = -1;
  std::string output;
};

// Runs a script in bash; standard error comes with the output.
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

// What bash offers for the last of `words`.
std::string Complete(const std::string& completion, const std::string& words) {
  const CommandResult result =
      RunInBash(completion + "\nCOMP_WORDS=(" + words +
                ")\nCOMP_CWORD=$((${#COMP_WORDS[@]} - 1))\n_thing\n"
                "echo \"${COMPREPLY[*]}\"\n");
  EXPECT_EQ(result.exit_code, 0);
  return result.output;
}

TEST_F(ManualTest, EveryOptionOfHelpIsInTheManPage) {
  int exit_code = -1;
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"--help"},
        {"get", "--help"},
        {"completion", "--help"}}) {
    const std::string help = Output(arguments, exit_code);
    EXPECT_EQ(exit_code, 0);
    const std::string page = RenderManPage(app_, manual_);
    std::istringstream in(help);
    int option_count = 0;
    for (std::string line; std::getline(in, line);) {
      // "  -o,--output FILE         Where to"
      if (line.rfind("  -", 0) != 0) {
        continue;
      }
      std::istringstream names(line.substr(2, line.find(' ', 2) - 2));
      for (std::string name; std::getline(names, name, ',');) {
        std::string escaped;
        for (const char c : name) {
          escaped += c == '-' ? std::string("\\-") : std::string(1, c);
        }
        EXPECT_THAT(page, HasSubstr("\\fB" + escaped + "\\fR")) << name;
        ++option_count;
      }
    }
    EXPECT_GE(option_count, 2);
  }
}

TEST_F(ManualTest, ATypeNameMayHaveColons) {
  EXPECT_THAT(RenderManPage(app_, manual_),
              HasSubstr("\\fIHOST:PORT|unix:PATH\\fR\n"));
}

TEST_F(ManualTest, ThePageHasEveryPart) {
  const std::string page = RenderManPage(app_, manual_);
  for (const char* part :
       {".TH THING 1", "thing \\- prints things", ".SH SYNOPSIS",
        "Default: here:1", "[\\fIoptions\\fR] \\fIARCHIVE\\fR \\fIID...\\fR",
        ".SH EXIT STATUS", "Bad usage.", "THING_SERVER", "thing get a b",
        "other(1)", "Which. One of bash|"}) {
    EXPECT_THAT(page, HasSubstr(part));
  }
  EXPECT_THAT(page, HasSubstr("\\&.It also \\(dqprints\\(dq \\e this."));
  EXPECT_THAT(page, Not(HasSubstr("secret")));
  EXPECT_THAT(page, Not(HasSubstr("hidden")));
}

TEST_F(ManualTest, GroffFindsNothingToWarnOf) {
  if (std::system("command -v groff >/dev/null") != 0) {
    GTEST_SKIP() << "no groff here";
  }
  const CommandResult result = RunInBash(
      "groff -man -Tascii -ww -rLL=100n >/dev/null <<'END_OF_PAGE'\n" +
      RenderManPage(app_, manual_) + "END_OF_PAGE\n");
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.output, "");
}

TEST_F(ManualTest, HelpEndsWithExitCodesAndExamples) {
  int exit_code = -1;
  const std::string help = Output({"--help"}, exit_code);
  EXPECT_THAT(help, HasSubstr("Exit codes:\n  0  Good.\n  2  Bad usage.\n"));
  EXPECT_THAT(help, HasSubstr("  THING_SERVER  Default of --server.\n"));
  EXPECT_THAT(help, HasSubstr("  # Print b of a:\n  thing get a b\n"));
  EXPECT_THAT(help, Not(HasSubstr("--man")));
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
              HasSubstr("thing: the subcommand must be one of get, completion, "
                        "got \"got\"\n"));
  EXPECT_THAT(message_of(app_, "get --outptu x"),
              HasSubstr("thing: unknown option \"--outptu\"\n"));
  EXPECT_THAT(message_of(app_, "completion bash more"),
              HasSubstr("thing: unexpected argument \"more\"\n"));
  EXPECT_THAT(
      message_of(app_, ""),
      HasSubstr("thing: a subcommand must be given: get, completion\n"));
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

TEST_F(ManualTest, HiddenOptionsPrintIt) {
  int exit_code = -1;
  EXPECT_EQ(Output({"--man"}, exit_code), RenderManPage(app_, manual_));
  EXPECT_EQ(exit_code, 0);
  EXPECT_EQ(Output({"--completion", "zsh"}, exit_code),
            RenderCompletion(app_, Shell::kZsh));
  EXPECT_EQ(exit_code, 0);
  EXPECT_EQ(Output({"--version"}, exit_code), "thing 1.2.3\n");
  EXPECT_EQ(Output({"--completion", "csh"}, exit_code), "");
  EXPECT_NE(exit_code, 0);
}

TEST_F(ManualTest, BashCompletes) {
  const std::string script = RenderCompletion(app_, Shell::kBash);
  EXPECT_EQ(Complete(script, "thing ''"), "get completion\n");
  EXPECT_EQ(Complete(script, "thing g"), "get\n");
  EXPECT_EQ(Complete(script, "thing --s"), "--server\n");
  EXPECT_EQ(Complete(script, "thing --server get ''"), "get completion\n");
  EXPECT_EQ(Complete(script, "thing get --j"), "--json\n");
  EXPECT_EQ(Complete(script, "thing -s x get -"),
            "--help -h --output -o --listen --codec --json --server -s\n");
  EXPECT_EQ(Complete(script, "thing get --codec ''"), "rlz zstd\n");
  EXPECT_EQ(Complete(script, "thing completion z"), "zsh\n");
}

TEST_F(ManualTest, CompletionAsksTheProgram) {
  app_.add_subcommand(kCompleteWords, "Not for people")->group("");
  // A program that offers words with colons, for one archive.
  const std::string script =
      "thing() { [[ \"$1 $2 $3\" == 'complete-words -- thing' ]] || exit 9\n"
      "  echo \"asked: ${*:4}\" >&3\n"
      "  [[ ${*:4} == *'get web http:'* ]] && printf '%s\\n' http://a http://b;"
      " }\nexec 3>&1\n" +
      RenderCompletion(app_, Shell::kBash);
  const auto complete = [&script](const std::string& line) {
    return RunInBash(script + "COMP_LINE='" + line +
                     "'\nCOMP_POINT=${#COMP_LINE}\n_thing\n"
                     "echo \"${COMPREPLY[*]}\"\n")
        .output;
  };
  // Bash puts the answer in place of what follows the last colon.
  EXPECT_EQ(complete("thing -s [::1]:7420 get web http://"),
            "asked: -s [::1]:7420 get web http://\n//a //b\n");
  EXPECT_THAT(complete("thing get "), ::testing::StartsWith("asked: get \n"));
  EXPECT_EQ(complete("thing -s [::1]:7420 get --codec z"), "zstd\n");
  EXPECT_THAT(RenderCompletion(app_, Shell::kZsh),
              HasSubstr("thing complete-words -- "));
}

TEST_F(ManualTest, ZshNamesEverything) {
  const std::string script = RenderCompletion(app_, Shell::kZsh);
  for (const char* part : {"server", "get", "output", "json", "bash"}) {
    EXPECT_THAT(script, HasSubstr(part));
  }
  EXPECT_THAT(script, Not(HasSubstr("secret")));
  EXPECT_THAT(script, Not(HasSubstr("hidden")));
  EXPECT_THAT(script, HasSubstr("[As JSON\\: one line each \\[really\\]]"));
}

}  // namespace
}  // namespace quire
