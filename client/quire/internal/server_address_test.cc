// SPDX-License-Identifier: Apache-2.0
#include "client/quire/internal/server_address.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "client/quire/client_status.h"
#include "testing/base/status_matchers.h"

namespace quire {
namespace {

using ::testing::HasSubstr;

TEST(ServerAddressTest, TakesWhatGrpcTakes) {
  for (const char* address :
       {"localhost:7420", "10.0.0.1:1", "[::1]:65535", "unix:/run/quire",
        "dns:///quire:7420", "ipv4:127.0.0.1:7420"}) {
    QUIRE_EXPECT_OK(CheckServerAddress(address));
  }
}

TEST(ServerAddressTest, SaysWhatAnAddressLooksLike) {
  for (const char* address :
       {"", "localhost", ":7420", "localhost:", "localhost:0",
        "localhost:65536", "localhost:http", "http://localhost:7420",
        "unix:"}) {
    EXPECT_THAT(CheckServerAddress(address),
                FailsWith(absl::StatusCode::kInvalidArgument,
                          HasSubstr("give HOST:PORT")))
        << address;
  }
}

// Messages of gRPC 1.51.
TEST(ServerAddressTest, LeavesWhatAPersonCanUse) {
  EXPECT_EQ(
      PlainConnectionText(
          "DNS resolution failed for nosuch.invalid:7420: C-ares status is not "
          "ARES_SUCCESS qtype=AAAA name=nosuch.invalid is_balancer=0: Domain "
          "name not found"),
      "no address is known for nosuch.invalid:7420: Domain name not found");
  EXPECT_EQ(
      PlainConnectionText(
          "failed to connect to all addresses; last error: UNKNOWN: "
          "ipv4:127.0.0.1:1: Failed to connect to remote host: Connection "
          "refused"),
      "ipv4:127.0.0.1:1: Connection refused");
  EXPECT_EQ(
      PlainConnectionText(
          "failed to connect to all addresses; last error: UNKNOWN: "
          "ipv6:%5B::1%5D:9: Failed to connect to remote host: Connection "
          "refused"),
      "ipv6:[::1]:9: Connection refused");
  EXPECT_EQ(
      PlainConnectionText("connections to all backends failing; last error: "
                          "UNKNOWN: unix:/nowhere: No such file or directory"),
      "unix:/nowhere: No such file or directory");
  EXPECT_EQ(
      PlainConnectionText("failed to connect to all addresses; last error: "
                          "UNKNOWN: ipv4:127.0.0.1:1: Failed parsing HTTP/2"),
      "ipv4:127.0.0.1:1: what answers there does not speak gRPC; is that the "
      "port of a server's metrics?");
  EXPECT_THAT(PlainConnectionText("Received http2 header with status: 404"),
              HasSubstr("no Quire server"));
}

TEST(ServerAddressTest, TellsFaultsOfCertificatesFromOthers) {
  const std::string begin =
      "failed to connect to all addresses; last error: UNKNOWN: "
      "ipv4:127.0.0.1:1: ";
  const std::string not_verified =
      absl::StrCat(begin,
                   "Ssl handshake failed: SSL_ERROR_SSL: error:0A000086:SSL "
                   "routines::certificate verify failed");
  const std::string other_name =
      absl::StrCat(begin, "Peer name a.example is not in peer certificate");
  const std::string no_tls = absl::StrCat(
      begin,
      "Ssl handshake failed: SSL_ERROR_SSL: error:0A00010B:SSL routines::wrong "
      "version number");
  EXPECT_THAT(
      PlainConnectionText(not_verified),
      HasSubstr("127.0.0.1:1: the server's certificate is not accepted: "
                "it has expired, or"));
  EXPECT_THAT(PlainConnectionText(other_name),
              HasSubstr("it is not for the name a.example; --tls-name"));
  EXPECT_THAT(PlainConnectionText(no_tls), HasSubstr("does not speak TLS"));
  const auto code_of = [](const std::string& text) {
    return StatusFromGrpc({grpc::StatusCode::UNAVAILABLE, text}).code();
  };
  EXPECT_EQ(code_of(not_verified), absl::StatusCode::kUnauthenticated);
  EXPECT_EQ(code_of(other_name), absl::StatusCode::kUnauthenticated);
  EXPECT_EQ(code_of(no_tls), absl::StatusCode::kUnavailable);
}

TEST(ServerAddressTest, LeavesOtherTextAlone) {
  for (const char* text :
       {"", "Socket closed", "failed to connect to all addresses",
        "DNS resolution failed for x"}) {
    EXPECT_EQ(PlainConnectionText(text), text);
  }
}

TEST(ServerAddressTest, AServersOwnWordsStayAsTheyAre) {
  const char* const words = "Received http2 header with status: 404";
  EXPECT_EQ(StatusFromGrpc({grpc::StatusCode::UNAVAILABLE, words, "details"})
                .message(),
            words);
  EXPECT_THAT(
      std::string(
          StatusFromGrpc({grpc::StatusCode::UNAVAILABLE, words}).message()),
      HasSubstr("no Quire server"));
}

}  // namespace
}  // namespace quire
