// SPDX-License-Identifier: Apache-2.0
//
// Ends the test program where one of its tests hangs. ctest's limit is that of
// a whole program: it takes longer, and does not show which test it was; here
// that is the last one printed. quire_test() links it into all tests.
#include <unistd.h>

#include "gtest/gtest.h"

namespace {

// The longest test takes a minute, sanitizers and other work on the machine
// several times that.
constexpr unsigned kTestSecondsMax = 300;

class TimeLimit final : public ::testing::EmptyTestEventListener {
  // SIGALRM ends the program.
  void OnTestStart(const ::testing::TestInfo& /*test*/) override {
    alarm(kTestSecondsMax);
  }

  void OnTestEnd(const ::testing::TestInfo& /*test*/) override { alarm(0); }
};

class Installer {
 public:
  Installer() {
    // GoogleTest owns it from here on.
    ::testing::UnitTest::GetInstance()->listeners().Append(new TimeLimit);
  }
};

const Installer kInstaller;

}  // namespace
