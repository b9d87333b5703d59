// SPDX-License-Identifier: Apache-2.0
#include "deploy/manual/program_main.h"

#include <stdexcept>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace quire {
namespace {

using ::testing::HasSubstr;
using ::testing::internal::CaptureStderr;
using ::testing::internal::CaptureStdout;
using ::testing::internal::GetCapturedStderr;
using ::testing::internal::GetCapturedStdout;

constexpr int kFailed = 7;

class ProgramMainTest : public ::testing::Test {
 protected:
  ProgramMainTest() : app_("Does nothing.", "idler") {}

  // The exit code after parsing `arguments`; the work gives 3.
  int Run(const std::string& arguments) {
    CaptureStdout();
    CaptureStderr();
    const int code = RunProgram(app_, kFailed, [&] {
      app_.parse(arguments);
      return 3;
    });
    out_ = GetCapturedStdout();
    err_ = GetCapturedStderr();
    return code;
  }

  CLI::App app_;
  std::string out_;
  std::string err_;
};

TEST_F(ProgramMainTest, GivesTheCodeOfTheWork) {
  EXPECT_EQ(Run(""), 3);
  EXPECT_EQ(out_ + err_, "");
}

TEST_F(ProgramMainTest, HelpIsNoMistake) {
  EXPECT_EQ(Run("--help"), 0);
  EXPECT_THAT(out_, HasSubstr("Does nothing."));
  EXPECT_EQ(err_, "");
}

TEST_F(ProgramMainTest, AMistakeInTheCommandLineIsOfOneCode) {
  EXPECT_EQ(Run("--hlep"), kProgramExitUsage);
  EXPECT_EQ(out_, "");
  EXPECT_THAT(err_, HasSubstr("--hlep"));
}

TEST_F(ProgramMainTest, WhatElseIsThrownIsNamedAfterTheProgram) {
  CaptureStderr();
  const int code = RunProgram(app_, kFailed, []() -> int {
    throw std::runtime_error("no more threads");
  });
  EXPECT_EQ(GetCapturedStderr(), "idler: no more threads\n");
  EXPECT_EQ(code, kFailed);
}

}  // namespace
}  // namespace quire
