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

TEST(ClientNameTest, GivesASiteOfIPv6OneShare) {
  for (const char* name :
       {"ipv6:[2001:db8:1:2::1]", "ipv6:%5B2001:db8:1:2::1%5D",
        "ipv6:%5B2001:db8:1:2:ffff::9%5D"}) {
    EXPECT_EQ(ClientShareOf(name), "ipv6:[2001:db8:1:2::]/64");
  }
  EXPECT_EQ(ClientShareOf("ipv6:[2001:db8:1:3::1]"),
            "ipv6:[2001:db8:1:3::]/64");
  for (const char* name :
       {"ipv4:10.0.0.1", "unix:user=7", "ipv6:[::1]", "ipv6:%5Bfe80::1%5D",
        "ipv6:[::ffff:10.0.0.1]", "ipv6:[nonsense]", "fd:7", ""}) {
    EXPECT_EQ(ClientShareOf(name), name);
  }
}

}  // namespace
}  // namespace quire
