// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/service/connection_count.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"

namespace quire {
namespace {

using ::testing::Optional;

// Both ends of connections are in this process: those of clients must not
// count.
class ConnectionCountTest : public ::testing::Test {
 protected:
  ~ConnectionCountTest() override {
    for (const int fd : files_) {
      close(fd);
    }
  }

  int Socket(int family) {
    const int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    EXPECT_GE(fd, 0);
    files_.push_back(fd);
    return fd;
  }

  int Accept(int listening) {
    const int fd = accept4(listening, nullptr, nullptr, SOCK_CLOEXEC);
    EXPECT_GE(fd, 0);
    files_.push_back(fd);
    return fd;
  }

  void Close(int fd) {
    EXPECT_EQ(close(fd), 0);
    std::erase(files_, fd);
  }

  // Listens at a port of its own; the address is in `place` then.
  template <typename Address>
  int Listen(int family, Address& place) {
    const int fd = Socket(family);
    auto* const address = reinterpret_cast<sockaddr*>(&place);
    socklen_t size = sizeof(place);
    EXPECT_EQ(bind(fd, address, size), 0);
    EXPECT_EQ(listen(fd, 8), 0);
    EXPECT_EQ(getsockname(fd, address, &size), 0);
    return fd;
  }

  // The client's end.
  template <typename Address>
  int Connect(int family, const Address& place) {
    const int fd = Socket(family);
    EXPECT_EQ(
        connect(fd, reinterpret_cast<const sockaddr*>(&place), sizeof(place)),
        0);
    return fd;
  }

 private:
  std::vector<int> files_;
};

TEST_F(ConnectionCountTest, CountsThoseOfAPort) {
  sockaddr_in place{};
  place.sin_family = AF_INET;
  place.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  sockaddr_in other_place = place;
  const int listening = Listen(AF_INET, place);
  const int other = Listen(AF_INET, other_place);
  const std::string address = absl::StrCat("127.0.0.1:", ntohs(place.sin_port));
  EXPECT_THAT(CountConnections(address), Optional(0));

  Connect(AF_INET, place);
  const int first = Accept(listening);
  Connect(AF_INET, place);
  Accept(listening);
  Connect(AF_INET, other_place);
  Accept(other);
  EXPECT_THAT(CountConnections(address), Optional(2));
  EXPECT_THAT(
      CountConnections(absl::StrCat("localhost:", ntohs(place.sin_port))),
      Optional(2));
  EXPECT_THAT(
      CountConnections(absl::StrCat("127.0.0.1:", ntohs(other_place.sin_port))),
      Optional(1));
  Close(first);
  EXPECT_THAT(CountConnections(address), Optional(1));
}

TEST_F(ConnectionCountTest, CountsThoseOfAPortOfIPv6) {
  sockaddr_in6 place{};
  place.sin6_family = AF_INET6;
  place.sin6_addr = in6addr_any;
  const int probe = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (probe < 0) {
    GTEST_SKIP() << "this machine has no IPv6";
  }
  close(probe);
  const int listening = Listen(AF_INET6, place);
  // As a dual-stack listener has them.
  sockaddr_in ipv4{};
  ipv4.sin_family = AF_INET;
  ipv4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ipv4.sin_port = place.sin6_port;
  Connect(AF_INET, ipv4);
  Accept(listening);
  EXPECT_THAT(CountConnections(absl::StrCat("[::]:", ntohs(place.sin6_port))),
              Optional(1));
}

TEST_F(ConnectionCountTest, CountsThoseOfAUnixSocket) {
  std::string directory =
      (std::filesystem::temp_directory_path() / "quire_test_XXXXXX").string();
  ASSERT_NE(mkdtemp(directory.data()), nullptr);
  sockaddr_un place{};
  place.sun_family = AF_UNIX;
  const std::string path = absl::StrCat(directory, "/socket");
  std::memcpy(place.sun_path, path.data(), path.size());
  sockaddr_un bound = place;
  const int listening = Listen(AF_UNIX, bound);
  EXPECT_THAT(CountConnections("unix:" + path), Optional(0));
  const int client = Connect(AF_UNIX, place);
  Accept(listening);
  Connect(AF_UNIX, place);
  Accept(listening);
  EXPECT_THAT(CountConnections("unix:" + path), Optional(2));
  EXPECT_THAT(CountConnections("unix://" + path), Optional(2));
  // Of one whose name begins alike.
  EXPECT_THAT(CountConnections("unix:" + path + "s"), Optional(0));
  EXPECT_THAT(CountConnections("unix:" + path.substr(0, path.size() - 1)),
              Optional(0));
  Close(client);
  std::filesystem::remove_all(directory);
}

TEST_F(ConnectionCountTest, KnowsNothingOfWhatIsNoAddress) {
  EXPECT_EQ(CountConnections(""), std::nullopt);
  EXPECT_EQ(CountConnections("localhost"), std::nullopt);
}

}  // namespace
}  // namespace quire
