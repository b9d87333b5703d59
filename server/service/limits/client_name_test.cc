// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/service/limits/client_name.h"

#include "gtest/gtest.h"

namespace quire {
namespace {

TEST(ClientNameTest, LeavesThePortOut) {
  EXPECT_EQ(ClientNameOf("ipv4:10.0.0.1:40001"), "ipv4:10.0.0.1");
  EXPECT_EQ(ClientNameOf("ipv4:10.0.0.1:40002"), "ipv4:10.0.0.1");
  EXPECT_EQ(ClientNameOf("ipv6:[2001:db8::1]:40001"), "ipv6:[2001:db8::1]");
  EXPECT_EQ(ClientNameOf("ipv6:%5B2001:db8::1%5D:40001"),
            "ipv6:%5B2001:db8::1%5D");
  EXPECT_EQ(ClientNameOf("ipv6:%5b::1%5d:1"), "ipv6:%5b::1%5d");
}

TEST(ClientNameTest, KeepsWhatHasNoPort) {
  for (const char* peer :
       {"", "unix:", "unix:/run/quired:1/socket", "ipv4:10.0.0.1",
        "ipv6:[2001:db8::1]", "ipv6:%5B2001:db8::1%5D", "fd:17"}) {
    EXPECT_EQ(ClientNameOf(peer), peer);
  }
}

}  // namespace
}  // namespace quire
