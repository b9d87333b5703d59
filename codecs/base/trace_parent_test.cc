// SPDX-License-Identifier: Apache-2.0
#include "codecs/base/trace_parent.h"

#include <string>

#include "gtest/gtest.h"

namespace quire {
namespace {

constexpr char kTrace[] = "4bf92f3577b34da6a3ce929d0e0e4736";
constexpr char kHeader[] =
    "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

TEST(TraceParentTest, FindsTheTrace) {
  EXPECT_EQ(TraceIdOf(kHeader), kTrace);
  // A future version with more fields.
  EXPECT_EQ(TraceIdOf("cc" + std::string(kHeader).substr(2) + "-what-follows"),
            kTrace);
}

TEST(TraceParentTest, FindsTheCallingSpan) {
  EXPECT_EQ(ParentIdOf(kHeader), "00f067aa0ba902b7");
  EXPECT_EQ(ParentIdOf("00-malformed"), "");
}

TEST(TraceParentTest, OnlyWhatIsKnownInFullIsSentOn) {
  EXPECT_TRUE(IsTraceParent(kHeader));
  EXPECT_FALSE(IsTraceParent(""));
  EXPECT_FALSE(IsTraceParent("00-malformed"));
  EXPECT_FALSE(IsTraceParent("cc" + std::string(kHeader).substr(2) + "-\n"));
}

TEST(TraceParentTest, AMalformedHeaderIsNone) {
  const std::string good = kHeader;
  // Any byte removed, or replaced by an invalid one.
  for (size_t i = 0; i < good.size(); ++i) {
    EXPECT_EQ(TraceIdOf(good.substr(0, i)), "");
    for (const char wrong : {'A', 'g', ' ', '\0', '\x80', '\n'}) {
      std::string bad = good;
      bad[i] = wrong;
      EXPECT_EQ(TraceIdOf(bad), "") << bad;
    }
  }
  for (const std::string& bad :
       {good + "-", good + "0", "ff" + good.substr(2),
        "01" + good.substr(2) + "0",
        "00-00000000000000000000000000000000" + good.substr(35),
        good.substr(0, 36) + "0000000000000000-01"}) {
    EXPECT_EQ(TraceIdOf(bad), "") << bad;
  }
}

}  // namespace
}  // namespace quire
