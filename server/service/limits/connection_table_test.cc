// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/service/limits/connection_table.h"

#include <sys/socket.h>
#include <unistd.h>

#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace quire {
namespace {

using enum ConnectionVerdict;

// Connections are pairs of sockets. The server's end stays open, as in gRPC,
// until a test closes it.
class ConnectionTableTest : public ::testing::Test {
 protected:
  ~ConnectionTableTest() override {
    for (const auto& [ours, theirs] : pairs_) {
      close(ours);
      close(theirs);
    }
  }

  // Returns the server's end.
  int Connect() {
    int ends[2] = {-1, -1};
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0,
                         ends),
              0);
    pairs_[ends[0]] = ends[1];
    return ends[0];
  }

  void CloseBoth(int fd) {
    close(fd);
    close(pairs_[fd]);
    pairs_.erase(fd);
  }

  // Returns the state that the client sees.
  bool WasEnded(int fd) const {
    char byte = 0;
    return recv(pairs_.at(fd), &byte, 1, 0) == 0;
  }

  static std::string PeerOf(int fd) { return absl::StrCat("peer:", fd); }

  ConnectionVerdict Add(ConnectionTable& table, int fd,
                        const std::string& client) {
    return table.Add(fd, PeerOf(fd), client);
  }

  ConnectionTable MakeTable(const ConnectionLimits& limits) {
    return ConnectionTable(limits, [this] { return now_; });
  }

  const ConnectionLimits kRoomy = {.client_connections_max = 100,
                                   .crowded_descriptor = 10'000,
                                   .last_descriptor = 10'000};

  absl::Time now_ = absl::UnixEpoch();

 private:
  // Client's end by server's end.
  std::map<int, int> pairs_;
};

TEST_F(ConnectionTableTest, CountsWhatIsOpen) {
  ConnectionTable table(kRoomy);
  const int first = Connect();
  const int second = Connect();
  EXPECT_EQ(Add(table, first, "a"), kTaken);
  EXPECT_EQ(Add(table, second, "b"), kTaken);
  EXPECT_EQ(table.Count(), 2u);
  CloseBoth(first);
  EXPECT_EQ(table.Count(), 1u);
  // Its number is another socket's now.
  const int third = Connect();
  ASSERT_EQ(third, first);
  EXPECT_EQ(table.Count(), 1u);
  EXPECT_EQ(Add(table, third, "a"), kTaken);
  EXPECT_EQ(table.Count(), 2u);
}

TEST_F(ConnectionTableTest, GivesEachClientItsShare) {
  ConnectionLimits limits = kRoomy;
  limits.client_connections_max = 2;
  ConnectionTable table = MakeTable(limits);
  const int first = Connect();
  const int second = Connect();
  for (const int fd : {first, second}) {
    EXPECT_EQ(Add(table, fd, "a"), kTaken);
    table.CallBegan(PeerOf(fd));
  }
  EXPECT_EQ(Add(table, Connect(), "a"), kClientHasItsShare);
  EXPECT_EQ(table.verdict_count(kClientHasItsShare), 1u);
  EXPECT_EQ(Add(table, Connect(), "b"), kTaken);
  // An ended connection frees its descriptor once it is looked for.
  CloseBoth(first);
  now_ += absl::Seconds(1);
  EXPECT_EQ(Add(table, Connect(), "a"), kTaken);
  EXPECT_EQ(table.verdict_count(kTaken), 4u);
}

TEST_F(ConnectionTableTest, EndsTheOldestSilentOneOfAClientWithItsShare) {
  ConnectionLimits limits = kRoomy;
  limits.client_connections_max = 3;
  ConnectionTable table(limits);
  const int others = Connect();
  const int busy = Connect();
  const int oldest = Connect();
  const int newest = Connect();
  EXPECT_EQ(Add(table, others, "b"), kTaken);
  for (const int fd : {busy, oldest, newest}) {
    EXPECT_EQ(Add(table, fd, "a"), kTaken);
  }
  table.CallBegan(PeerOf(busy));
  EXPECT_EQ(Add(table, Connect(), "a"), kTaken);
  EXPECT_TRUE(WasEnded(oldest));
  for (const int fd : {others, busy, newest}) {
    EXPECT_FALSE(WasEnded(fd));
  }
  EXPECT_EQ(table.silent_ended_count(), 1u);
}

TEST_F(ConnectionTableTest, EndsSilentOnesWhereDescriptorsAreScarce) {
  const int first = Connect();
  const int second = Connect();
  const int third = Connect();
  const int fourth = Connect();
  ConnectionLimits limits = kRoomy;
  limits.crowded_descriptor = third;
  limits.last_descriptor = fourth + 1;
  ConnectionTable table(limits);
  EXPECT_EQ(Add(table, first, "a"), kTaken);
  EXPECT_EQ(Add(table, second, "a"), kTaken);
  table.CallBegan(PeerOf(first));
  EXPECT_EQ(Add(table, third, "b"), kTaken);
  EXPECT_TRUE(WasEnded(second));
  EXPECT_FALSE(WasEnded(first));
  table.CallBegan(PeerOf(third));
  // No silent connection remains.
  EXPECT_EQ(Add(table, fourth, "c"), kNoDescriptors);
  EXPECT_EQ(table.verdict_count(kNoDescriptors), 1u);
}

TEST_F(ConnectionTableTest, TakesNoneFromTheLastDescriptorOn) {
  const int first = Connect();
  const int second = Connect();
  ConnectionLimits limits = kRoomy;
  limits.crowded_descriptor = second;
  limits.last_descriptor = second;
  ConnectionTable table(limits);
  EXPECT_EQ(Add(table, first, "a"), kTaken);
  EXPECT_EQ(Add(table, second, "b"), kNoDescriptors);
  // It is still closed for the next one.
  EXPECT_TRUE(WasEnded(first));
}

TEST_F(ConnectionTableTest, TakesAsManyAsHaveMemory) {
  std::vector<size_t> wanted;
  size_t reserved = 2;
  ConnectionLimits limits = kRoomy;
  limits.reserve_memory = [&](size_t count) {
    wanted.push_back(count);
    return reserved;
  };
  ConnectionTable table(limits, [this] { return now_; });
  const int first = Connect();
  const int silent = Connect();
  EXPECT_EQ(Add(table, first, "a"), kTaken);
  table.CallBegan(PeerOf(first));
  EXPECT_EQ(Add(table, silent, "b"), kTaken);
  EXPECT_EQ(wanted, std::vector<size_t>({1}));
  const int third = Connect();
  EXPECT_EQ(Add(table, third, "c"), kTaken);
  EXPECT_TRUE(WasEnded(silent));
  table.CallBegan(PeerOf(third));
  EXPECT_EQ(Add(table, Connect(), "d"), kNoMemory);
  EXPECT_EQ(table.verdict_count(kNoMemory), 1u);
  reserved = 3;
  EXPECT_EQ(Add(table, Connect(), "d"), kTaken);
  EXPECT_EQ(wanted, std::vector<size_t>({1, 3, 3, 3}));
  // Memory of ended connections is returned.
  CloseBoth(first);
  now_ += absl::Minutes(1);
  table.EndSilent();
  EXPECT_EQ(wanted.back(), 2u);
}

TEST_F(ConnectionTableTest, EndsWhatIsSilentForTooLong) {
  ConnectionLimits limits = kRoomy;
  limits.silence_max = absl::Seconds(10);
  ConnectionTable table = MakeTable(limits);
  EXPECT_EQ(table.EndSilent(), absl::InfiniteDuration());
  const int first = Connect();
  const int busy = Connect();
  const int later = Connect();
  EXPECT_EQ(Add(table, first, "a"), kTaken);
  EXPECT_EQ(Add(table, busy, "a"), kTaken);
  now_ += absl::Seconds(4);
  EXPECT_EQ(Add(table, later, "a"), kTaken);
  table.CallBegan(PeerOf(busy));
  EXPECT_EQ(table.EndSilent(), absl::Seconds(6));
  EXPECT_FALSE(WasEnded(first));
  now_ += absl::Seconds(6);
  EXPECT_EQ(table.EndSilent(), absl::Seconds(4));
  EXPECT_TRUE(WasEnded(first));
  EXPECT_FALSE(WasEnded(busy));
  EXPECT_FALSE(WasEnded(later));
  EXPECT_EQ(table.Count(), 2u);
}

TEST_F(ConnectionTableTest, LeavesAnotherFileOfTheSameNumberAlone) {
  ConnectionLimits limits = kRoomy;
  limits.silence_max = absl::Seconds(10);
  ConnectionTable table = MakeTable(limits);
  const int first = Connect();
  EXPECT_EQ(Add(table, first, "a"), kTaken);
  CloseBoth(first);
  const int other = Connect();
  ASSERT_EQ(other, first);
  now_ += absl::Minutes(1);
  table.EndSilent();
  EXPECT_FALSE(WasEnded(other));
  EXPECT_EQ(table.silent_ended_count(), 0u);
}

TEST_F(ConnectionTableTest, KnowsTheLaterConnectionOfAPort) {
  ConnectionLimits limits = kRoomy;
  limits.silence_max = absl::Seconds(10);
  ConnectionTable table = MakeTable(limits);
  const int earlier = Connect();
  const int later = Connect();
  EXPECT_EQ(table.Add(earlier, "peer", "a"), kTaken);
  CloseBoth(earlier);
  EXPECT_EQ(table.Add(later, "peer", "a"), kTaken);
  EXPECT_EQ(table.Count(), 1u);
  table.CallBegan("peer");
  now_ += absl::Minutes(1);
  EXPECT_EQ(table.EndSilent(), absl::InfiniteDuration());
  EXPECT_FALSE(WasEnded(later));
}

TEST_F(ConnectionTableTest, NamesTheClientOfADescriptor) {
  ConnectionTable table(kRoomy);
  const int fd = Connect();
  const std::string peer = absl::StrCat("fd:", fd);
  EXPECT_EQ(table.ClientOf(peer), peer);
  EXPECT_EQ(table.Add(fd, peer, "unix:user=1000"), kTaken);
  EXPECT_EQ(table.ClientOf(peer), "unix:user=1000");
  EXPECT_EQ(table.ClientOf("fd:x"), "fd:x");
  EXPECT_EQ(table.ClientOf("ipv4:10.0.0.1"), "ipv4:10.0.0.1");
}

TEST_F(ConnectionTableTest, KnowsAPeerWhateverItsZoneIsCalled) {
  ConnectionLimits limits = kRoomy;
  limits.silence_max = absl::Seconds(10);
  ConnectionTable table = MakeTable(limits);
  EXPECT_EQ(table.Add(Connect(), "ipv6:%5Bfe80::1%5D:4000", "a"), kTaken);
  table.CallBegan("ipv6:%5Bfe80::1%25eth0%5D:4000");
  EXPECT_EQ(table.EndSilent(), absl::InfiniteDuration());
}

}  // namespace
}  // namespace quire
