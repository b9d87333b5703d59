// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/service/limits/client_name.h"

#include "gtest/gtest.h"

#include "server/service/limits/unix_peers.h"

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

TEST(UnixPeersTest, NamesAConnectionByItsUser) {
  UnixPeers peers;
  EXPECT_EQ(peers.NameOf("fd:17"), "fd:17");
  peers.Add(17, 1000);
  peers.Add(18, 1000);
  EXPECT_EQ(peers.NameOf("fd:17"), "unix:user=1000");
  EXPECT_EQ(peers.NameOf("fd:18"), "unix:user=1000");
  EXPECT_EQ(peers.NameOf("fd:19"), "fd:19");
  // The number of a connection that has ended.
  peers.Add(17, 0);
  EXPECT_EQ(peers.NameOf("fd:17"), "unix:user=0");
  EXPECT_EQ(peers.NameOf("ipv4:10.0.0.1"), "ipv4:10.0.0.1");
}

}  // namespace
}  // namespace quire
