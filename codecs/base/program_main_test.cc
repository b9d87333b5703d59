// SPDX-License-Identifier: Apache-2.0
#include "codecs/base/program_main.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <functional>
#include <iostream>
#include <new>
#include <stdexcept>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace quire {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;
using ::testing::internal::CaptureStderr;
using ::testing::internal::CaptureStdout;
using ::testing::internal::GetCapturedStderr;
using ::testing::internal::GetCapturedStdout;

constexpr int kFailed = 7;

class ProgramMainTest : public ::testing::Test {
 protected:
  // Returns the exit code after parsing `arguments`; the work returns 3.
  int Run(const std::string& arguments) {
    CaptureStdout();
    CaptureStderr();
    const int code = RunIdler([&](CLI::App& app) {
      app.parse(arguments);
      return 3;
    });
    out_ = GetCapturedStdout();
    err_ = GetCapturedStderr();
    return code;
  }

  static int RunIdler(const std::function<int(CLI::App&)>& run) {
    return RunProgram("idler", "does nothing", kFailed, run);
  }

  std::string out_;
  std::string err_;
};

TEST_F(ProgramMainTest, GivesTheCodeOfTheWork) {
  EXPECT_EQ(Run(""), 3);
  EXPECT_EQ(out_ + err_, "");
}

TEST_F(ProgramMainTest, HelpIsNoMistake) {
  EXPECT_EQ(Run("--help"), 0);
  EXPECT_THAT(out_, HasSubstr("does nothing"));
  EXPECT_EQ(err_, "");
}

TEST_F(ProgramMainTest, AMistakeInTheCommandLineIsOfOneCode) {
  EXPECT_EQ(Run("--hlep"), kProgramExitUsage);
  EXPECT_EQ(out_, "");
  EXPECT_THAT(err_, HasSubstr("--hlep"));
}

TEST_F(ProgramMainTest, WhatElseIsThrownIsNamedAfterTheProgram) {
  CaptureStderr();
  const int code = RunIdler([](CLI::App& /*app*/) -> int {
    throw std::runtime_error("no more threads");
  });
  EXPECT_EQ(GetCapturedStderr(), "idler: no more threads\n");
  EXPECT_EQ(code, kFailed);
}

TEST_F(ProgramMainTest, SoIsWhatDeclaringOptionsThrows) {
  CaptureStderr();
  const int code = RunIdler([](CLI::App& app) {
    app.add_flag("--twice");
    app.add_flag("--twice");
    return 0;
  });
  EXPECT_THAT(GetCapturedStderr(), StartsWith("idler: "));
  EXPECT_EQ(code, kFailed);
}

// Returns the exit code of a process that runs the program, after `prepare`.
int CodeOfChild(const std::function<void()>& prepare,
                const std::function<int()>& run) {
  const pid_t child = fork();
  if (child == 0) {
    prepare();
    _exit(RunProgram("idler", "does nothing", kFailed,
                     [&](CLI::App& /*app*/) { return run(); }));
  }
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  return WEXITSTATUS(status);
}

TEST_F(ProgramMainTest, WhatCannotBeWrittenIsAFailure) {
  const auto fill = [] {
    const int full = open("/dev/full", O_WRONLY);
    dup2(full, 1);
    // Its messages do not matter here.
    dup2(full, 2);
  };
  const auto print = [](int code) {
    return [code] {
      std::cout << "much\n";
      return code;
    };
  };
  EXPECT_EQ(CodeOfChild(fill, print(0)), kFailed);
  EXPECT_EQ(CodeOfChild(fill, print(3)), 3);
  EXPECT_EQ(CodeOfChild(fill, [] { return 0; }), 0);
}

TEST_F(ProgramMainTest, AFailedAllocationEndsTheProcess) {
  EXPECT_EXIT(RunIdler([](CLI::App& /*app*/) {
                // operator new calls this; sanitizers have their own.
                std::get_new_handler()();
                return 0;
              }),
              ::testing::ExitedWithCode(kFailed), "^idler: out of memory\n$");
}

TEST_F(ProgramMainTest, AReaderThatGoesAwayIsNoFailure) {
  const auto leave = [] {
    std::signal(SIGPIPE, SIG_IGN);
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    dup2(ends[1], 1);
    close(ends[0]);
  };
  EXPECT_EQ(CodeOfChild(leave,
                        [] {
                          std::cout << "much\n";
                          return 0;
                        }),
            0);
}

}  // namespace
}  // namespace quire
