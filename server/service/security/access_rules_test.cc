// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/service/security/access_rules.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "server/service/security/access_control.h"
#include "testing/base/status_matchers.h"

namespace quire {
namespace {

using ::testing::HasSubstr;

const absl::Time kNow = absl::FromUnixSeconds(1'800'000'000);  // 2027-01-15

std::string Hex(absl::string_view secret) {
  const Sha256 digest = Sha256Of(secret);
  return absl::BytesToHexString(
      {reinterpret_cast<const char*>(digest.data()), digest.size()});
}

TEST(AccessRulesTest, HashesAsTheStandardSays) {
  // FIPS 180-4, for "abc".
  EXPECT_EQ(Hex("abc"),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(AccessRulesTest, MatchesGlobs) {
  const std::pair<const char*, const char*> matching[] = {
      {"*", ""},          {"*", "docs"},      {"docs", "docs"},
      {"d?cs", "docs"},   {"web-*", "web-1"}, {"*-*", "a-b"},
      {"*a*b*", "xaxbx"}, {"**", "x"},        {"*ab", "aab"}};
  for (const auto& [pattern, name] : matching) {
    EXPECT_TRUE(MatchesGlob(pattern, name)) << pattern << " " << name;
  }
  const std::pair<const char*, const char*> others[] = {
      {"", "x"},        {"docs", "docs2"}, {"docs", "doc"},   {"?", ""},
      {"web-*", "web"}, {"*b", "abc"},     {"*a*b*", "xbxa"}, {"DOCS", "docs"}};
  for (const auto& [pattern, name] : others) {
    EXPECT_FALSE(MatchesGlob(pattern, name)) << pattern << " " << name;
  }
  // Backtracking would never end.
  const std::string stars = "*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*b";
  EXPECT_FALSE(MatchesGlob(stars, std::string(128, 'a')));
}

TEST(AccessRulesTest, FindsWhoeverHasTheSecret) {
  QUIRE_ASSERT_OK_AND_ASSIGN(
      const auto rules,
      AccessRules::Parse(absl::StrCat(
          "# who may read\n\n", "token reader sha256=", Hex("s3cret"),
          " archives=web-*,docs rights=list,read expires=2027-01-31 calls=100 "
          "bytes=1MiB\r\n",
          "token old sha256=", Hex("s"),
          " archives=* rights=read expires=2027-01-15T07:59:59Z\n",
          "certificate spiffe://a/b archives=docs rights=list\n")));
  EXPECT_EQ(rules->size(), 3U);
  const auto reader = rules->FindToken("Bearer reader.s3cret", kNow);
  ASSERT_NE(reader, nullptr);
  EXPECT_EQ(reader->name, "token:reader");
  EXPECT_TRUE(reader->Covers("docs"));
  EXPECT_TRUE(reader->Covers("web-2"));
  EXPECT_FALSE(reader->Covers("private"));
  EXPECT_EQ(reader->quota.calls_per_second, 100U);
  EXPECT_EQ(reader->quota.bytes_per_second, 1U << 20);
  EXPECT_TRUE(reader->Has(Right::kList));
  EXPECT_TRUE(reader->Has(Right::kRead));
  EXPECT_NE(rules->FindToken("bEARER reader.s3cret", kNow), nullptr);
  EXPECT_EQ(rules->FindToken("Bearer reader.s3cret",
                             absl::FromUnixSeconds(1'801'353'600)),
            nullptr);
  EXPECT_EQ(rules->FindToken("Bearer old.s", kNow), nullptr);
  for (const std::string header :
       {"", "Bearer", "Bearer ", "Bearer .", "Bearer reader", "Bearer reader.",
        "Bearer reader.s3cre", "Bearer reader.s3cretx", "Bearer  reader.s3cret",
        "Bearer reader.s3cret ", "Basic reader.s3cret", "reader.s3cret",
        "Bearer Reader.s3cret", "Bearer spiffe://a/b.x",
        "Bearer token:reader.x", "Bearer old.s3cret"}) {
    EXPECT_EQ(rules->FindToken(header, kNow), nullptr) << header;
  }
  EXPECT_EQ(
      rules->FindToken(
          absl::StrCat("Bearer reader.", std::string(100'000, 'x')), kNow),
      nullptr);
  const auto certificate = rules->FindCertificate("spiffe://a/b", kNow);
  ASSERT_NE(certificate, nullptr);
  EXPECT_FALSE(certificate->Has(Right::kRead));
  EXPECT_EQ(rules->FindCertificate("reader", kNow), nullptr);
  EXPECT_EQ(rules->FindCertificate("spiffe://a/B", kNow), nullptr);
}

TEST(AccessRulesTest, FindsAnIdentityAgainWhileItsSecretIsTheSame) {
  const auto parse = [](absl::string_view secret) {
    return *AccessRules::Parse(absl::StrCat("token reader sha256=", Hex(secret),
                                            " archives=* rights=read"));
  };
  const auto rules = parse("one");
  const auto identity = rules->FindToken("Bearer reader.one", kNow);
  EXPECT_NE(parse("one")->FindAgain(*identity, kNow), nullptr);
  EXPECT_EQ(parse("two")->FindAgain(*identity, kNow), nullptr);
  EXPECT_EQ((*AccessRules::Parse(""))->FindAgain(*identity, kNow), nullptr);
}

TEST(AccessRulesTest, TakesTwoSecretsOfAnIdentityWhileOneReplacesTheOther) {
  const auto parse = [](const std::string& digests) {
    return *AccessRules::Parse(absl::StrCat("token reader sha256=", digests,
                                            " archives=* rights=read"));
  };
  const auto both = parse(absl::StrCat(Hex("old"), ",", Hex("new")));
  EXPECT_EQ(both->size(), 1U);
  const auto by_old = both->FindToken("Bearer reader.old", kNow);
  const auto by_new = both->FindToken("Bearer reader.new", kNow);
  ASSERT_NE(by_old, nullptr);
  ASSERT_NE(by_new, nullptr);
  EXPECT_EQ(by_old->name, by_new->name);
  EXPECT_EQ(both->FindToken("Bearer reader.other", kNow), nullptr);
  // A call keeps its rights as long as its secret is listed.
  EXPECT_NE(both->FindAgain(*by_old, kNow), nullptr);
  const auto last = parse(Hex("new"));
  EXPECT_EQ(last->FindAgain(*by_old, kNow), nullptr);
  EXPECT_NE(last->FindAgain(*by_new, kNow), nullptr);
}

TEST(AccessRulesTest, ASecretThatWasRightMakesNoOtherRight) {
  QUIRE_ASSERT_OK_AND_ASSIGN(
      const auto rules,
      AccessRules::Parse(absl::StrCat(
          "token reader sha256=", Hex("old"), ",", Hex("new"),
          " archives=* rights=read expires=2027-01-31\n",
          "token other sha256=", Hex("oth"), " archives=* rights=read\n",
          "token empty sha256=", Hex(""), " archives=* rights=read\n")));
  for (int round = 0; round < 3; ++round) {
    for (const std::string header : {"Bearer reader.old", "Bearer reader.new",
                                     "Bearer other.oth", "Bearer empty."}) {
      EXPECT_NE(rules->FindToken(header, kNow), nullptr) << header;
    }
    for (const std::string header :
         {"Bearer reader.olx", "Bearer reader.nld", "Bearer reader.ol",
          "Bearer reader.oldx", "Bearer reader.", "Bearer reader",
          "Bearer reader.oth", "Bearer other.old", "Bearer other.",
          "Bearer empty.x", "Bearer none.old"}) {
      EXPECT_EQ(rules->FindToken(header, kNow), nullptr) << header;
    }
    EXPECT_NE(rules->FindToken("Bearer reader.old", kNow)->secret_sha256,
              rules->FindToken("Bearer reader.new", kNow)->secret_sha256);
    EXPECT_EQ(rules->FindToken("Bearer reader.old",
                               absl::FromUnixSeconds(1'801'353'600)),
              nullptr);
  }
}

TEST(AccessRulesTest, ThreadsShowTheSameTokens) {
  constexpr int kRounds = 200;
  const std::string text =
      absl::StrCat("token reader sha256=", Hex("old"), ",", Hex("new"),
                   " archives=* rights=read\n");
  for (int round = 0; round < kRounds; ++round) {
    const auto rules = *AccessRules::Parse(text);
    std::vector<std::thread> threads;
    for (const std::string secret : {"old", "new", "bad", "old"}) {
      threads.emplace_back([&rules, secret] {
        for (int call = 0; call < 5; ++call) {
          const auto found =
              rules->FindToken(absl::StrCat("Bearer reader.", secret), kNow);
          EXPECT_EQ(found != nullptr, secret != "bad");
          EXPECT_TRUE(found == nullptr ||
                      found->secret_sha256 == Sha256Of(secret));
        }
      });
    }
    for (std::thread& thread : threads) {
      thread.join();
    }
  }
}

TEST(AccessRulesTest, ReadsExpiryAsUtcInEveryTimeZone) {
  // A time zone that needs no database.
  setenv("TZ", "Fixed/UTC-05:00:00", /*overwrite=*/1);
  const auto rules = AccessRules::Parse(
      absl::StrCat("token reader sha256=", Hex("s"),
                   " archives=* rights=read expires=2027-01-15\n"));
  unsetenv("TZ");
  QUIRE_ASSERT_OK(rules);
  const absl::Time end = absl::FromUnixSeconds(1'799'971'200);
  EXPECT_NE((*rules)->FindToken("Bearer reader.s", end - absl::Seconds(1)),
            nullptr);
  EXPECT_EQ((*rules)->FindToken("Bearer reader.s", end), nullptr);
  EXPECT_NE((*rules)->MatchToken("Bearer reader.s"), nullptr);
  EXPECT_EQ((*rules)->MatchToken("Bearer reader.t"), nullptr);
}

TEST(AccessRulesTest, TellsWhatExpiresInOrder) {
  const std::string secret = absl::StrCat(" sha256=", Hex("s"));
  QUIRE_ASSERT_OK_AND_ASSIGN(
      const auto rules,
      AccessRules::Parse(absl::StrCat(
          "token late", secret, " archives=* rights=read expires=2027-01-20\n",
          "token soon", secret, " archives=* rights=read expires=2027-01-16\n",
          "token past", secret, " archives=* rights=read expires=2027-01-01\n",
          "token far", secret, " archives=* rights=read expires=2027-03-01\n",
          "token never", secret, " archives=* rights=read\n")));
  const auto expiring =
      rules->Expiring(kNow, absl::FromUnixSeconds(1'800'500'000));
  ASSERT_EQ(expiring.size(), 2U);
  EXPECT_EQ(expiring[0].second, "token:soon");
  EXPECT_EQ(expiring[1].second, "token:late");
}

TEST(AccessRulesTest, SaysWhichLineIsMalformed) {
  const std::string token = absl::StrCat("token a sha256=", Hex("s"));
  const std::pair<std::string, std::string> cases[] = {
      {"user a", "line 1: a line must begin with token or certificate"},
      {"token", "line 1: must be token ID"},
      {"# a\n\ntoken a", "line 3: has no archives="},
      {"token a/b archives=* rights=read", "a token's ID must be"},
      {absl::StrCat("token ", std::string(65, 'a')), "a token's ID must be"},
      {"token a archives=* rights=read", "has no sha256="},
      {"token a sha256=12 archives=* rights=read", "64 hex digits"},
      {absl::StrCat("token a sha256=", std::string(64, 'g')), "64 hex digits"},
      {absl::StrCat("token a sha256=", Hex("a"), ",", Hex("b"), ",", Hex("c")),
       "one digest, or two"},
      {token + " archives= rights=read", "archives must be"},
      {token + " archives=a,,b rights=read", "archives must be"},
      {token + " archives=a/b rights=read", "archives must be"},
      {token + " archives=*", "has no rights="},
      {token + " archives=* rights=", "rights must be"},
      {token + " archives=* rights=write", "rights must be"},
      {token + " archives=* rights=read expires=soon", "expires must be"},
      {token + " archives=* rights=read expires=2027-02-30", "expires must be"},
      {token + " archives=* rights=read colour=red", "settings must be"},
      {token + " archives=* rights=read certificate=",
       "certificate must be an alternative name of 1 to 1024 bytes, got 0"},
      {"certificate spiffe://a archives=* right=read",
       "got \"right\"; the line must be: certificate NAME archives=GLOB"},
      {"certificate archives=*", "must be: certificate NAME archives=GLOB"},
      {"certificate a certificate=b archives=* rights=read",
       "settings must be"},
      {"token a", "must be: token ID sha256=HEX[,HEX] archives=GLOB"},
      {"user a", "[streams=N], or certificate NAME archives=GLOB"},
      {token + " archives=* rights=read rights=list", "is set twice"},
      {token + " archives=* rights=read calls=0", "calls must be a number"},
      {"certificate a sha256=0 archives=* rights=read", "settings must be"},
      {token + " archives=* rights=read\n" + token + " archives=b rights=read",
       "line 2: \"token:a\" has a line already"}};
  for (const auto& [text, fault] : cases) {
    const auto rules = AccessRules::Parse(text);
    ASSERT_FALSE(rules.ok()) << text;
    EXPECT_THAT(std::string(rules.status().message()), HasSubstr(fault))
        << text;
  }
}

class AccessControlFileTest : public ::testing::Test {
 protected:
  ~AccessControlFileTest() override { std::filesystem::remove(path_); }

  std::unique_ptr<AccessControl> Open(const std::string& rules) {
    std::ofstream(path_) << rules;
    return *AccessControl::Open(path_);
  }

  const std::string path_ = testing::TempDir() + "/quire_access_control_test";
};

TEST_F(AccessControlFileTest, TakesATokenOverTlsOrFromThisMachineAlone) {
  const auto control = Open(absl::StrCat("token reader sha256=", Hex("s"),
                                         " archives=* rights=read\n"));
  std::string expired;
  ShownCredentials shown = {.authorization = "Bearer reader.s",
                            .authorization_count = 1,
                            .peer = "ipv4:10.0.0.1:5"};
  EXPECT_THAT(control->Authenticate(shown, expired),
              FailsWith(absl::StatusCode::kUnauthenticated,
                        HasSubstr("unencrypted over a network")));
  shown.is_encrypted = true;
  EXPECT_THAT(control->Authenticate(shown, expired), IsOk());
  shown.is_encrypted = false;
  // A peer of a unix socket.
  for (const char* peer : {"fd:7", "ipv4:127.0.0.1:5"}) {
    shown.peer = peer;
    EXPECT_THAT(control->Authenticate(shown, expired), IsOk()) << peer;
  }
  shown.authorization_count = 2;
  EXPECT_THAT(control->Authenticate(shown, expired),
              HasCode(absl::StatusCode::kUnauthenticated));
  EXPECT_EQ(expired, "");
}

TEST_F(AccessControlFileTest, TakesATokenWithItsCertificateOnly) {
  const std::string line =
      absl::StrCat("token reader sha256=", Hex("s"), " archives=* rights=read");
  const auto control =
      Open(line +
           " certificate=spiffe://a/b\ncertificate other archives=* "
           "rights=read\n");
  EXPECT_TRUE(control->pairs_tokens());
  EXPECT_EQ(control->certificate_count(), 2U);
  std::string expired;
  ShownCredentials shown = {.authorization = "Bearer reader.s",
                            .authorization_count = 1,
                            .is_encrypted = true,
                            .peer = "ipv4:10.0.0.1:5"};
  const auto identity = [&] { return control->Authenticate(shown, expired); };
  EXPECT_THAT(identity(), HasCode(absl::StatusCode::kUnauthenticated));
  shown.certificate_names = {"other", "spiffe://a/B"};
  EXPECT_THAT(identity(), HasCode(absl::StatusCode::kUnauthenticated));
  shown.certificate_names = {"other", "spiffe://a/b"};
  const auto found = identity();
  QUIRE_ASSERT_OK(found);
  EXPECT_EQ((*found)->name, "token:reader");
  shown.authorization = "Bearer reader.t";
  EXPECT_THAT(identity(), HasCode(absl::StatusCode::kUnauthenticated));
  // The certificate alone has no identity.
  shown.authorization_count = 0;
  shown.certificate_names = {"spiffe://a/b"};
  EXPECT_THAT(identity(), HasCode(absl::StatusCode::kUnauthenticated));
  // A call continues only while the rule asks for the same certificate.
  EXPECT_THAT(control->Refresh(**found), IsOk());
  std::ofstream(path_) << line << " certificate=spiffe://a/c\n";
  QUIRE_ASSERT_OK(control->Reload());
  EXPECT_THAT(control->Refresh(**found),
              HasCode(absl::StatusCode::kUnauthenticated));
  std::ofstream(path_) << line << "\n";
  QUIRE_ASSERT_OK(control->Reload());
  EXPECT_FALSE(control->pairs_tokens());
  EXPECT_EQ(control->certificate_count(), 0U);
}

TEST_F(AccessControlFileTest, ReloadEndsATokenThatHasBeenShown) {
  const auto line = [](absl::string_view secret, absl::string_view settings) {
    return absl::StrCat("token reader sha256=", Hex(secret),
                        " archives=* rights=read", settings, "\n");
  };
  const auto control = Open(line("one", ""));
  std::string expired;
  const auto shows = [&](absl::string_view header) {
    return control
        ->Authenticate(
            {.authorization = header, .authorization_count = 1, .peer = "fd:7"},
            expired)
        .ok();
  };
  const auto reload = [&](const std::string& rules) {
    std::ofstream(path_) << rules;
    return control->Reload();
  };
  EXPECT_TRUE(shows("Bearer reader.one"));
  EXPECT_TRUE(shows("Bearer reader.one"));
  QUIRE_ASSERT_OK(reload(line("two", "")));
  EXPECT_FALSE(shows("Bearer reader.one"));
  EXPECT_TRUE(shows("Bearer reader.two"));
  QUIRE_ASSERT_OK(reload(line("two", " expires=2020-01-01")));
  EXPECT_FALSE(shows("Bearer reader.two"));
  EXPECT_EQ(expired, "token:reader");
  QUIRE_ASSERT_OK(reload(line("two", "")));
  EXPECT_TRUE(shows("Bearer reader.two"));
  QUIRE_ASSERT_OK(reload(""));
  EXPECT_FALSE(shows("Bearer reader.two"));
}

TEST_F(AccessControlFileTest, NamesWhoseTokenHasExpired) {
  const auto control =
      Open(absl::StrCat("token reader sha256=", Hex("s"),
                        " archives=* rights=read expires=2020-01-01\n"));
  std::string expired;
  ShownCredentials shown = {.authorization = "Bearer reader.wrong",
                            .authorization_count = 1,
                            .peer = "fd:7"};
  EXPECT_THAT(control->Authenticate(shown, expired),
              HasCode(absl::StatusCode::kUnauthenticated));
  EXPECT_EQ(expired, "");
  shown.authorization = "Bearer reader.s";
  EXPECT_THAT(control->Authenticate(shown, expired),
              HasCode(absl::StatusCode::kUnauthenticated));
  EXPECT_EQ(expired, "token:reader");
}

TEST_F(AccessControlFileTest, WarnsAWeekBeforeAnExpiry) {
  const auto control =
      Open(absl::StrCat("token reader sha256=", Hex("s"),
                        " archives=* rights=read expires=2027-01-20\n"));
  const absl::Time end = absl::FromUnixSeconds(1'800'403'200);
  EXPECT_EQ(control->DescribeExpiring(end - absl::Hours(7 * 24 + 1)), "");
  EXPECT_EQ(control->DescribeExpiring(end - absl::Hours(24)),
            "access: identities expire soon: token:reader at 2027-01-20 "
            "00:00:00 UTC");
  EXPECT_EQ(control->NextExpiry(end - absl::Hours(9'000)), end);
  EXPECT_EQ(control->NextExpiry(end), std::nullopt);
}

TEST(AccessControlTest, KnowsThisMachine) {
  for (const char* peer :
       {"unix:", "fd:7", "unix:/run/q", "ipv4:127.0.0.1:5", "ipv6:%5B::1%5D:5",
        "ipv6:%5B::ffff:127.0.0.1%5D:5"}) {
    EXPECT_TRUE(IsLocalPeer(peer)) << peer;
  }
  for (const char* peer : {"", "ipv4:10.127.0.0:1", "ipv4:12.7.0.1:1",
                           "ipv6:%5B::11%5D:1", "ipv6:%5Bfe80::1%5D:1"}) {
    EXPECT_FALSE(IsLocalPeer(peer)) << peer;
  }
}

}  // namespace
}  // namespace quire
