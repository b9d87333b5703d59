// SPDX-License-Identifier: Apache-2.0
#include "client/quire/internal/secure_channel.h"

#include <fstream>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace quire {
namespace {

using ::testing::HasSubstr;

std::string WriteFile(const std::string& name, const std::string& text) {
  const std::string path = ::testing::TempDir() + "/secure_channel_" + name;
  std::ofstream(path, std::ios::binary) << text;
  return path;
}

absl::Status Try(const std::string& address, const ChannelSecurity& security) {
  return MakeSecureChannel(address, security, {}).status();
}

TEST(SecureChannelTest, KnowsWhatStaysOnThisMachine) {
  for (const char* address :
       {"localhost:7420", "127.0.0.1:1", "127.9.9.9:1", "[::1]:7420",
        "unix:/run/quire", "unix-abstract:x", "dns:///localhost:1",
        "dns:localhost:1", "ipv4:127.0.0.1:1", "ipv6:[::1]:1"}) {
    EXPECT_TRUE(IsLocalAddress(address)) << address;
  }
  for (const char* address :
       {"", "example.org:1", "127.0.0.1.example.org:1", "10.0.0.1:1",
        "128.0.0.1:1", "localhost.example.org:1", "[::2]:1", "xds:localhost:1",
        "dns://10.0.0.1/localhost:1", "ipv4:127.0.0.1:1,10.0.0.1:1",
        "0.0.0.0:1"}) {
    EXPECT_FALSE(IsLocalAddress(address)) << address;
  }
}

TEST(SecureChannelTest, KeepsATokenFromWiresThatAllCanRead) {
  const std::string token = WriteFile("token", "reader.0123\n");
  EXPECT_TRUE(Try("localhost:1", {.token_file = token}).ok());
  EXPECT_TRUE(Try("unix:/nowhere", {.token_file = token}).ok());
  EXPECT_TRUE(Try("example.org:1", {.tls = true, .token_file = token}).ok());
  const absl::Status status = Try("example.org:1", {.token_file = token});
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("all can read it"));
}

TEST(SecureChannelTest, SaysWhichFileIsOfNoUse) {
  const std::string empty = WriteFile("empty", "");
  const std::string spaced = WriteFile("spaced", "a b\n");
  const std::string split = WriteFile("split", "a\r\nb: c");
  const std::string certificate =
      WriteFile("certificate",
                "-----BEGIN CERTIFICATE-----\nAA\n-----END CERTIFICATE-----\n");
  const std::string half =
      WriteFile("half", "-----BEGIN CERTIFICATE-----\nAAAA");
  const std::string locked = WriteFile(
      "locked",
      "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAA\n-----END ENCRYPTED PRIVATE "
      "KEY-----\n");

  const struct {
    ChannelSecurity security;
    std::string fault;
  } cases[] = {
      {{.token_file = "/nowhere/token"}, "/nowhere/token: cannot be read"},
      {{.token_file = empty}, "must hold a token"},
      {{.token_file = spaced}, "must hold a token"},
      {{.token_file = split}, "must hold a token"},
      {{.ca_file = "/nowhere/ca"}, "/nowhere/ca: cannot be read"},
      {{.ca_file = ::testing::TempDir()}, "cannot be read"},
      {{.ca_file = empty}, "must hold certificates in PEM form"},
      {{.ca_file = half}, "must hold certificates in PEM form"},
      {{.ca_file = locked}, "must hold certificates in PEM form"},
      {{.certificate_file = certificate, .key_file = certificate},
       "must hold a private key"},
      {{.certificate_file = certificate, .key_file = locked},
       "without a passphrase"},
      {{.certificate_file = certificate}, "must be given together"},
      {{.key_file = certificate}, "must be given together"}};

  for (const auto& [security, fault] : cases) {
    EXPECT_THAT(std::string(Try("localhost:1", security).message()),
                HasSubstr(fault));
  }
}

}  // namespace
}  // namespace quire
