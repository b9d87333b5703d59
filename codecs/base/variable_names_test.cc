// SPDX-License-Identifier: Apache-2.0
#include "codecs/base/variable_names.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace quire {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

const std::vector<std::string>& Known() {
  static const auto* const known =
      new std::vector<std::string>({"QUIRED_MEMORY", "QUIRED_METRICS",
                                    "QUIRED_LISTEN", "QUIRED_ACCESS_LOG"});
  return *known;
}

std::vector<std::string> Describe(std::vector<const char*> environment,
                                  UnknownVariables reported) {
  environment.push_back(nullptr);
  return DescribeUnknownVariables("QUIRED_", Known(), reported,
                                  environment.data());
}

TEST(VariableNamesTest, NamesUnknownVariablesAndTheNearestKnownOne) {
  EXPECT_THAT(
      Describe({"QUIRED_MEMROY=1GiB", "QUIRED_COLOUR=red", "HOME=/",
                "QUIRED_LISTEN=127.0.0.1:1", "QUIRED_ACESSLOG=x", "QUIRED",
                "QUIRED_EMPTY="},
               UnknownVariables::kAll),
      ElementsAre(
          "environment variable QUIRED_ACESSLOG is ignored: no option has this "
          "name; did you mean QUIRED_ACCESS_LOG?",
          "environment variable QUIRED_COLOUR is ignored: no option has this "
          "name",
          "environment variable QUIRED_MEMROY is ignored: no option has this "
          "name; did you mean QUIRED_MEMORY?"));
  EXPECT_THAT(
      Describe({"QUIRED_MEMROY=1GiB", "QUIRED_COLOUR=red", "QUIRED_LIST=1"},
               UnknownVariables::kSimilar),
      ElementsAre("environment variable QUIRED_LIST is ignored: no option has "
                  "this name; did you mean QUIRED_LISTEN?",
                  "environment variable QUIRED_MEMROY is ignored: no option "
                  "has this name; did you mean QUIRED_MEMORY?"));
}

TEST(VariableNamesTest, LeavesOutThoseOfServicesOfKubernetes) {
  EXPECT_THAT(
      Describe(
          {"QUIRED_SERVICE_HOST=10.0.0.1", "QUIRED_SERVICE_PORT=7420",
           "QUIRED_SERVICE_PORT_GRPC=7420", "QUIRED_PORT=tcp://10.0.0.1:7420",
           "QUIRED_PORT_7420_TCP=tcp://10.0.0.1:7420",
           "QUIRED_PORT_7420_TCP_PROTO=tcp", "QUIRED_PORT_7420_TCP_PORT=7420",
           "QUIRED_PORT_7420_TCP_ADDR=10.0.0.1",
           "QUIRED_DOCS_SERVICE_HOST=10.0.0.1",
           "QUIRED_DOCS_PORT=udp://10.0.0.1:7420",
           "QUIRED_DOCS_PORT_80_UDP_ADDR=10.0.0.1"},
          UnknownVariables::kAll),
      IsEmpty());
  EXPECT_THAT(Describe({"QUIRED_PORT=7420"}, UnknownVariables::kAll),
              ElementsAre("environment variable QUIRED_PORT is ignored: no "
                          "option has this name"));
  EXPECT_EQ(Describe({"QUIRED_PORT_x_TCP=1", "QUIRED_PORT_7420=1"},
                     UnknownVariables::kAll)
                .size(),
            2U);
}

TEST(VariableNamesTest, TakesNamesOfAnyLength) {
  const std::string long_name = "QUIRED_" + std::string(100'000, 'X') + "=1";
  const auto messages = Describe({long_name.c_str()}, UnknownVariables::kAll);
  ASSERT_EQ(messages.size(), 1U);
  EXPECT_LT(messages[0].size(), 200U);
}

}  // namespace
}  // namespace quire
