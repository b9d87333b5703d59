// SPDX-License-Identifier: Apache-2.0
//
// main() of a test program, which holds all tests of a directory:
//
//   PROGRAM [--sources=a_test.cc,b_test.cc] [GOOGLETEST OPTION...]
//
// --sources runs only the tests of these files; ctest runs each quire_test()
// that way. --gtest_filter, where given, decides instead.
//
// A test that hangs ends the program, and is the last one printed. The time
// limit of ctest would end it later, without the test's name.
#include <unistd.h>

#include <iostream>
#include <set>
#include <string>
#include <string_view>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace {

// The longest test takes a minute; sanitizers and other load make it several.
constexpr unsigned kTestSecondsMax = 300;

class TimeLimit final : public ::testing::EmptyTestEventListener {
  // SIGALRM ends the program.
  void OnTestStart(const ::testing::TestInfo& /*test*/) override {
    alarm(kTestSecondsMax);
  }

  void OnTestEnd(const ::testing::TestInfo& /*test*/) override { alarm(0); }
};

std::set<std::string> SplitAtCommas(std::string_view list) {
  std::set<std::string> names;
  while (!list.empty()) {
    const size_t size = list.find(',');
    names.emplace(list.substr(0, size));
    list.remove_prefix(size == list.npos ? list.size() : size + 1);
  }
  return names;
}

// Returns the --gtest_filter for the tests of `sources`; leaves the files
// without tests in `sources`.
std::string FilterOf(std::set<std::string>& sources) {
  std::string filter;
  std::set<std::string> without_tests = sources;
  const ::testing::UnitTest& all = *::testing::UnitTest::GetInstance();
  for (int i = 0; i < all.total_test_suite_count(); ++i) {
    const ::testing::TestSuite& suite = *all.GetTestSuite(i);
    for (int j = 0; j < suite.total_test_count(); ++j) {
      const ::testing::TestInfo& test = *suite.GetTestInfo(j);
      const std::string path = test.file();
      const std::string file = path.substr(path.rfind('/') + 1);
      if (sources.count(file) != 0) {
        without_tests.erase(file);
        filter += std::string(suite.name()) + "." + test.name() + ":";
      }
    }
  }
  sources = without_tests;
  return filter;
}

}  // namespace

int main(int argc, char** argv) {
  ::testing::InitGoogleMock(&argc, argv);
  constexpr std::string_view kSources = "--sources=";
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (argument.substr(0, kSources.size()) != kSources) {
      std::cerr << "unknown option " << argument << "\n";
      return 2;
    }
    std::set<std::string> sources =
        SplitAtCommas(argument.substr(kSources.size()));
    const std::string filter = FilterOf(sources);
    if (!sources.empty()) {
      std::cerr << "no tests in " << *sources.begin() << "\n";
      return 2;
    }
    if (GTEST_FLAG_GET(filter) == "*") {
      GTEST_FLAG_SET(filter, filter);
    }
  }
  // GoogleTest takes ownership.
  ::testing::UnitTest::GetInstance()->listeners().Append(new TimeLimit);
  return RUN_ALL_TESTS();
}
