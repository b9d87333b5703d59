// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/service/security/handshake_failures.h"

#include <map>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace quire {
namespace {

using ::testing::HasSubstr;

constexpr char kStart[] =
    "Handshake failed with fatal error SSL_ERROR_SSL: error:0A00010B:SSL "
    "routines::";

class HandshakeFailuresTest : public ::testing::Test {
 protected:
  void Take(const std::string& text) { failures_.Take(text, now_); }

  uint64_t CountOf(const std::string& reason) {
    for (const auto& [name, count] : failures_.counts()) {
      if (name == reason) {
        return count;
      }
    }
    ADD_FAILURE() << reason;
    return 0;
  }

  absl::Time now_ = absl::UnixEpoch();
  HandshakeFailures failures_;
};

TEST_F(HandshakeFailuresTest, CountsByReason) {
  const std::map<std::string, std::string> texts = {
      {"no_tls", "wrong version number."},
      {"no_common_version_or_cipher", "no shared cipher."},
      {"no_client_certificate", "peer did not return a certificate."},
      {"client_certificate_refused", "certificate verify failed."},
      {"refused_by_client", "tlsv1 alert unknown ca."},
      {"other", "bad extension."}};
  ASSERT_EQ(failures_.counts().size(), texts.size());
  for (const auto& [reason, text] : texts) {
    EXPECT_EQ(CountOf(reason), 0U);
    Take(kStart + text);
    EXPECT_EQ(CountOf(reason), 1U);
  }
  Take(std::string(kStart) + "http request.");
  EXPECT_EQ(CountOf("no_tls"), 2U);
  // Lines about other things.
  Take("At least one of the completion queues must be frequently polled");
  EXPECT_EQ(CountOf("other"), 1U);
}

TEST_F(HandshakeFailuresTest, SaysEachReasonOnceAMinute) {
  std::vector<std::string> said;
  failures_.SetLog(
      [&](LogLevel, const std::string& line) { said.push_back(line); });
  const std::string line = std::string(kStart) + "wrong version number.";
  Take(line);
  Take(line);
  Take(line);
  ASSERT_EQ(said.size(), 1U);
  EXPECT_THAT(said[0], HasSubstr("1 TLS handshakes failed (no_tls)"));
  Take(std::string(kStart) + "no shared cipher.");
  EXPECT_EQ(said.size(), 2U);
  now_ += absl::Minutes(1);
  Take(line);
  ASSERT_EQ(said.size(), 3U);
  EXPECT_THAT(said[2], HasSubstr("3 TLS handshakes failed (no_tls)"));
}

}  // namespace
}  // namespace quire
