// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/storage/remote/credential_text.h"

#include <cstdlib>
#include <fstream>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"

#include "server/storage/remote/credential_request.h"
#include "server/storage/remote/credential_settings.h"
#include "testing/base/status_matchers.h"
#include "testing/base/temporary_directory.h"

namespace quire {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

constexpr auto kMalformed = absl::StatusCode::kInvalidArgument;
constexpr char kRoleText[] =
    R"({"Code": "Success", "Type": "AWS-HMAC", "AccessKeyId": "ID",)"
    R"( "SecretAccessKey": "SECRET/+=", "Token": "TOKEN",)"
    R"( "Expiration": "2030-01-31T12:00:00Z"})";
constexpr char kAssumed[] =
    "<AssumeRoleWithWebIdentityResponse xmlns=\"x\"><Result>"
    "<AssumedRoleUser><Arn>a</Arn></AssumedRoleUser><Credentials>\n"
    "<SessionToken>TOKEN</SessionToken>\n"
    "<SecretAccessKey>SECRET/+=</SecretAccessKey>"
    "<Expiration>2030-01-31T12:00:00Z</Expiration>"
    "<AccessKeyId>ID</AccessKeyId></Credentials></Result></A>";

TEST(CredentialTextTest, ReadsTheProfile) {
  constexpr char kFile[] =
      "# keys\n[default]\naws_access_key_id=ID1\naws_secret_access_key = S=1\n"
      "s3 =\n  aws_access_key_id = NESTED\n\n"
      "[ other ]\r\nAWS_Access_Key_ID : ID2\r\nregion = x\n"
      "credential_process = /bin/a\n    --b\n; end\n";
  QUIRE_ASSERT_OK_AND_ASSIGN(
      const auto first,
      ParseProfile(kFile, "default", ProfileFile::kCredentials));
  ASSERT_TRUE(first.has_value());
  EXPECT_THAT(*first,
              UnorderedElementsAre(Pair("aws_access_key_id", "ID1"),
                                   Pair("aws_secret_access_key", "S=1"),
                                   Pair("s3", "\naws_access_key_id = NESTED")));
  QUIRE_ASSERT_OK_AND_ASSIGN(
      const auto second,
      ParseProfile(kFile, "other", ProfileFile::kCredentials));
  ASSERT_TRUE(second.has_value());
  EXPECT_THAT(*second,
              UnorderedElementsAre(Pair("aws_access_key_id", "ID2"),
                                   Pair("region", "x"),
                                   Pair("credential_process", "/bin/a\n--b")));
  QUIRE_ASSERT_OK_AND_ASSIGN(
      const auto none, ParseProfile(kFile, "third", ProfileFile::kCredentials));
  EXPECT_FALSE(none.has_value());
}

TEST(CredentialTextTest, KnowsTheSectionsOfAConfigFile) {
  constexpr char kFile[] =
      "[profile a]\nx = 1\n[b]\nx = 2\n[profile \"c d\"]\nx = 3\n[default]\n"
      "x = 4\n";
  const auto x_of = [&](absl::string_view profile) {
    const auto found = ParseProfile(kFile, profile, ProfileFile::kConfig);
    return found.ok() && found->has_value() ? (*found)->at("x") : "";
  };
  EXPECT_EQ(x_of("a"), "1");
  EXPECT_EQ(x_of("b"), "");
  EXPECT_EQ(x_of("c d"), "3");
  EXPECT_EQ(x_of("default"), "4");
}

TEST(CredentialTextTest, RefusesMalformedFilesWithoutShowingThem) {
  for (const char* file : {"[default\n", "[default]\nSECRET\n"}) {
    EXPECT_THAT(ParseProfile(file, "default", ProfileFile::kCredentials),
                FailsWith(kMalformed,
                          AllOf(HasSubstr("line "), Not(HasSubstr("SEC")))));
  }
  for (const char* file :
       {"[default]\naws_secret_access_key = SECRET\n",
        "[default]\naws_access_key_id = A\n",
        "[default]\naws_access_key_id = A\naws_secret_access_key = SECRET x\n",
        "[default]\naws_access_key_id = A\naws_secret_access_key = SEC\n RET\n",
        "[default]\naws_access_key_id = A\naws_secret_access_key = SEC\x01"
        "RET\n"}) {
    QUIRE_ASSERT_OK_AND_ASSIGN(
        const auto parsed,
        ParseProfile(file, "default", ProfileFile::kCredentials));
    CredentialSettings settings;
    settings.credentials_file = *parsed;
    EXPECT_THAT(settings.KeysOf(ProfileFile::kCredentials),
                FailsWith(kMalformed, Not(HasSubstr("SEC"))))
        << file;
  }
}

// Each was compared with shlex.split().
TEST(CredentialTextTest, SplitsCommandLines) {
  const auto split = [](absl::string_view text) {
    return SplitCommandLine(text).value();
  };
  EXPECT_THAT(split(" /bin/a  b\tc\n"), ElementsAre("/bin/a", "b", "c"));
  EXPECT_THAT(split(R"(a "b c" 'd "e' f"g"'h')"),
              ElementsAre("a", "b c", "d \"e", "fgh"));
  EXPECT_THAT(split(R"(a\ b "c\"d\\e\$" 'f\' \#)"),
              ElementsAre("a b", "c\"d\\e\\$", "f\\", "#"));
  EXPECT_THAT(split(R"('' "" $HOME ;rm #c)"),
              ElementsAre("", "", "$HOME", ";rm", "#c"));
  EXPECT_THAT(split(""), ElementsAre());
  for (const char* text : {"a 'b", "\"", "a\\"}) {
    EXPECT_THAT(SplitCommandLine(text), HasCode(kMalformed)) << text;
  }
}

TEST(CredentialTextTest, ReadsAnswersOfServices) {
  for (const auto& parsed :
       {ParseCredentialJson(kRoleText, CredentialJson::kRole),
        ParseAssumedRole(kAssumed)}) {
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    EXPECT_EQ(parsed->access_key_id, "ID");
    EXPECT_EQ(parsed->secret_access_key, "SECRET/+=");
    EXPECT_EQ(parsed->session_token, "TOKEN");
    EXPECT_EQ(absl::ToUnixSeconds(parsed->expiry), 1896091200);
  }
}

TEST(CredentialTextTest, ReadsAnswersOfPrograms) {
  const auto permanent = ParseCredentialJson(
      R"({"Version": 1, "AccessKeyId": "ID", "SecretAccessKey": "S",)"
      R"( "Expiration": null})",
      CredentialJson::kProcess);
  ASSERT_TRUE(permanent.ok()) << permanent.status();
  EXPECT_EQ(permanent->expiry, absl::InfiniteFuture());
  EXPECT_EQ(permanent->session_token, "");
  for (const char* version : {"", R"("Version": 2,)", R"("Version": "1",)"}) {
    EXPECT_THAT(ParseCredentialJson(absl::StrCat("{", version,
                                                 R"("AccessKeyId": "ID",)"
                                                 R"("SecretAccessKey": "S"})"),
                                    CredentialJson::kProcess),
                FailsWith(kMalformed, HasSubstr("Version is not 1")));
  }
}

TEST(CredentialTextTest, RefusesOtherAnswersWithoutShowingThem) {
  const auto refused = FailsWith(kMalformed, Not(HasSubstr("SECRET")));
  for (const char* name :
       {"AccessKeyId", "SecretAccessKey", "Token", "Expiration"}) {
    for (const std::string& text :
         {absl::StrReplaceAll(kRoleText, {{name, "X"}}),
          absl::StrReplaceAll(
              kRoleText, {{absl::StrCat("\"", name, "\": "),
                           absl::StrCat("\"", name, "\": 1, \"a\": ")}})}) {
      EXPECT_THAT(ParseCredentialJson(text, CredentialJson::kRole), refused)
          << text;
    }
    // The other name of the token.
    const std::string element =
        absl::string_view(name) == "Token" ? "SessionToken" : name;
    EXPECT_THAT(
        ParseAssumedRole(absl::StrReplaceAll(kAssumed, {{element, "X"}})),
        refused);
  }
  for (const char* time :
       {"", "infinite-future", "2030-13-01T00:00:00Z", "x"}) {
    EXPECT_THAT(
        ParseCredentialJson(
            absl::StrReplaceAll(kRoleText, {{"2030-01-31T12:00:00Z", time}}),
            CredentialJson::kRole),
        refused)
        << time;
  }
  for (const char* value :
       {"SECRET x", "SECRET\n", "SECRET&amp;", "<b>x</b>"}) {
    EXPECT_THAT(
        ParseAssumedRole(absl::StrReplaceAll(kAssumed, {{"SECRET/+=", value}})),
        refused)
        << value;
  }
  for (const std::string& text :
       {std::string(), std::string("[1]"), std::string("SECRET"),
        std::string("\"SECRET\""), std::string(kRoleText, sizeof kRoleText - 2),
        std::string(20'000, '['),
        absl::StrReplaceAll(kRoleText, {{"ID", ""}})}) {
    EXPECT_THAT(ParseCredentialJson(text, CredentialJson::kRole), refused);
  }
  EXPECT_THAT(ParseCredentialJson(
                  R"({"Code": "AssumeRoleUnauthorizedAccess", "Message": "m"})",
                  CredentialJson::kRole),
              FailsWith(kMalformed, HasSubstr("AssumeRoleUnauthorizedAccess")));
  EXPECT_THAT(
      ParseCredentialJson(R"({"Code": "a\nb SECRET"})", CredentialJson::kRole),
      refused);
}

TEST(CredentialTextTest, ReadsCodesOfErrors) {
  EXPECT_EQ(ParseStsErrorCode("<ErrorResponse><Error><Type>Sender</Type>"
                              "<Code>ExpiredTokenException</Code></Error>"),
            "ExpiredTokenException");
  for (const char* text :
       {"", "<Code>A</Code>", "<Error><Code>a b</Code></Error>",
        "<Error><Code>a<x/></Code></Error>", "<Error><Code>A"}) {
    EXPECT_EQ(ParseStsErrorCode(text), "") << text;
  }
}

TEST(CredentialTextTest, AllowsTheContainerUrlsOfBotocore) {
  for (const char* url :
       {"https://example.org/x", "http://127.0.0.1/x", "http://127.3.2.1:80",
        "http://[::1]:8080/x", "http://localhost/x", "http://169.254.170.2/v2",
        "http://169.254.170.23/v1/credentials", "http://[fd00:ec2::23]/v1"}) {
    EXPECT_TRUE(IsContainerUrl(url)) << url;
  }
  for (const char* url :
       {"http://example.org/x", "http://169.254.169.254/x", "http://10.0.0.1",
        "http://127.0.0.1@example.org/", "http://169.254.170.2.example.org",
        "http://localhost.example.org", "ftp://127.0.0.1/", "127.0.0.1", "",
        "https://user:word@example.org/", "http://[::2]/", "http:///x"}) {
    EXPECT_FALSE(IsContainerUrl(url)) << url;
  }
  EXPECT_EQ(OriginOf("http://127.0.0.1:80/v2/credentials/SECRET?SECRET"),
            "http://127.0.0.1:80");
}

class CredentialSettingsTest : public ::testing::Test {
 protected:
  CredentialSettingsTest() {
    for (const char* const name : {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY",
                                   "AWS_PROFILE", "AWS_DEFAULT_PROFILE"}) {
      unsetenv(name);
    }
    Set("AWS_SHARED_CREDENTIALS_FILE", Write("credentials", ""));
    Set("AWS_CONFIG_FILE", Write("config", ""));
  }

  ~CredentialSettingsTest() override {
    for (const char* const name :
         {"AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE", "AWS_PROFILE"}) {
      unsetenv(name);
    }
  }

  static void Set(const char* name, const std::string& value) {
    setenv(name, value.c_str(), /*overwrite=*/1);
  }

  std::string Write(const char* name, const char* text) {
    std::string path = absl::StrCat(directory_.path(), "/", name);
    std::ofstream(path) << text;
    return path;
  }

  const TemporaryDirectory directory_;
};

TEST_F(CredentialSettingsTest, ReadsBothFiles) {
  Write("credentials", "[web]\na = 1\nb = 2\n");
  Write("config", "[profile web]\nb = 3\nc = 4\n[default]\na = 5\n");
  Set("AWS_PROFILE", "web");
  QUIRE_ASSERT_OK_AND_ASSIGN(const CredentialSettings settings,
                             ReadCredentialSettings());
  EXPECT_EQ(settings.Setting("a"), "1");
  EXPECT_EQ(settings.Setting("b"), "2");
  EXPECT_EQ(settings.Setting("c"), "4");
  EXPECT_EQ(settings.Variable("AWS_PROFILE"), "web");
}

TEST_F(CredentialSettingsTest, NamesAProfileThatNoFileHas) {
  QUIRE_EXPECT_OK(ReadCredentialSettings());
  Set("AWS_PROFILE", "web");
  EXPECT_THAT(ReadCredentialSettings(),
              FailsWith(kMalformed, HasSubstr("have no profile web")));
}

TEST_F(CredentialSettingsTest, RefusesAFileThatCannotBeRead) {
  for (const char* const name :
       {"AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE"}) {
    for (const std::string& path :
         {directory_.path(), absl::StrCat(directory_.path(), "/none")}) {
      const std::string before = std::getenv(name);
      Set(name, path);
      EXPECT_THAT(
          ReadCredentialSettings(),
          FailsWith(absl::StatusCode::kFailedPrecondition, HasSubstr(path)));
      Set(name, before);
    }
  }
}

}  // namespace
}  // namespace quire
