// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/service/listen/listen_address.h"

#include <sys/socket.h>

#include <cerrno>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"

#include "testing/base/status_matchers.h"

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
  for (const char* bad :
       {"", "7421", ":7421", "host:", "host:65536", "unix:/tmp/socket"}) {
    EXPECT_THAT(CheckMetricsAddress(bad),
                HasCode(absl::StatusCode::kInvalidArgument))
        << bad;
  }
}

TEST(ListenAddressTest, FindsHosts) {
  QUIRE_EXPECT_OK(ResolveListenAddress("[::1]:7420"));
  QUIRE_EXPECT_OK(ResolveListenAddress("127.0.0.1:0"));
  // Too long for a query.
  EXPECT_THAT(
      ResolveListenAddress(absl::StrCat(std::string(300, 'x'), ":7420")),
      FailsWith(absl::StatusCode::kFailedPrecondition,
                testing::StartsWith("the host is not known (")));
}

TEST(ListenAddressTest, TellsRefusalsApart) {
  EXPECT_EQ(DescribeListenError(EADDRINUSE), "the port is in use");
  EXPECT_EQ(DescribeListenError(EADDRNOTAVAIL),
            "this machine has no such address");
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
