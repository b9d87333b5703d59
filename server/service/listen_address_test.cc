// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/service/listen_address.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"

#include "codecs/base/status_matchers.h"

namespace quire {
namespace {

TEST(ListenAddressTest, TellsGoodFromBad) {
  for (const char* good : {"127.0.0.1:7420", "[::]:0", "localhost:65535",
                           "unix:/tmp/no-such-socket", "unix:relative"}) {
    QUIRE_EXPECT_OK(CheckListenAddress(good)) << good;
  }
  for (const char* bad :
       {"", "7420", ":7420", "host:", "host:x", "host:65536", "unix:"}) {
    EXPECT_THAT(CheckListenAddress(bad),
                HasCode(absl::StatusCode::kInvalidArgument))
        << bad;
  }
  EXPECT_THAT(CheckListenAddress("unix:/" + std::string(200, 'x')),
              HasCode(absl::StatusCode::kInvalidArgument));
}

TEST(ListenAddressTest, MetricsHaveAHostAndAPort) {
  for (const char* good : {"127.0.0.1:7421", "[::]:0", "localhost:65535"}) {
    QUIRE_EXPECT_OK(CheckMetricsAddress(good)) << good;
  }
  for (const char* bad : {"", "7421", ":7421", "host:", "host:65536",
                          "unix:/tmp/socket", "127.0.0.1:1,0.0.0.0:2"}) {
    EXPECT_THAT(CheckMetricsAddress(bad),
                HasCode(absl::StatusCode::kInvalidArgument))
        << bad;
  }
}

TEST(ListenAddressTest, TellsWhyNotListening) {
  sockaddr_in place{};
  place.sin_family = AF_INET;
  place.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(place);
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  auto* const address = reinterpret_cast<sockaddr*>(&place);
  ASSERT_EQ(bind(fd, address, size), 0);
  ASSERT_EQ(listen(fd, 1), 0);
  ASSERT_EQ(getsockname(fd, address, &size), 0);
  const std::string taken = absl::StrCat("127.0.0.1:", ntohs(place.sin_port));
  EXPECT_EQ(WhyNotListening(taken), "the port is in use");
  close(fd);

  EXPECT_EQ(WhyNotListening("203.0.113.1:7420"),
            "this machine has no such address");
  // Too long to be asked for.
  EXPECT_THAT(WhyNotListening(absl::StrCat(std::string(300, 'x'), ":7420")),
              testing::StartsWith("the host is not known ("));
  EXPECT_THAT(WhyNotListening("127.0.0.1:0"), testing::HasSubstr("try again"));
  EXPECT_THAT(WhyNotListening("unix:/no-such-directory/socket"),
              testing::StartsWith("/no-such-directory/: No such file"));
  EXPECT_EQ(WhyNotListening("unix:/proc/version"),
            "there is a file that is no socket");
}

TEST(ListenAddressTest, TellsRefusalsApart) {
  EXPECT_THAT(DescribeListenError(EACCES), testing::HasSubstr("1024"));
  EXPECT_EQ(DescribeListenError(ENFILE), "Too many open files in system");
}

TEST(ListenAddressTest, PutsThePortInPlace) {
  EXPECT_EQ(WithPort("127.0.0.1:0", 1234), "127.0.0.1:1234");
  EXPECT_EQ(WithPort("[::1]:0", 1234), "[::1]:1234");
  EXPECT_EQ(WithPort("unix:/x:0", 1234), "unix:/x:0");
}

}  // namespace
}  // namespace quire
