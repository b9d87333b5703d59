// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/storage/remote/credential_chain.h"

#include <atomic>
#include <chrono>
#include <csignal>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"

#include "server/storage/remote/credential_process.h"
#include "testing/base/status_matchers.h"
#include "testing/base/temporary_directory.h"

namespace quire {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
constexpr auto kDenied = absl::StatusCode::kPermissionDenied;
constexpr auto kUnavailable = absl::StatusCode::kUnavailable;
constexpr char kImds[] = "http://169.254.169.254/latest/";
constexpr char kRoles[] = "meta-data/iam/security-credentials/";

std::string RoleAnswer(absl::string_view id) {
  return absl::StrCat(R"({"AccessKeyId": ")", id,
                      R"(", "SecretAccessKey": "SECRET", "Token": "T",)"
                      R"( "Expiration": "2030-01-31T12:00:00Z"})");
}

// Services and programs that answer as the test says.
class CredentialChainTest : public ::testing::Test {
 protected:
  using Method = CredentialRequest::Method;

  CredentialFinding Find() {
    return FindCredentials(
        settings_, {.send = [this](const CredentialRequest& request)
                        -> absl::StatusOr<CredentialAnswer> {
                      requests_.push_back(request);
                      const auto found = answers_.find(request.url);
                      if (found == answers_.end()) {
                        return absl::UnavailableError("nothing is there");
                      }
                      return found->second;
                    },
                    .run = [this](const std::vector<std::string>& arguments)
                        -> absl::StatusOr<std::string> {
                      arguments_ = arguments;
                      return R"({"Version": 1, "AccessKeyId": "PROCESS",)"
                             R"( "SecretAccessKey": "SECRET"})";
                    },
                    .region = "eu-west-1",
                    .now = absl::FromUnixSeconds(1'000)});
  }

  // Key id that is found, or the message of the error.
  std::string Found() {
    const CredentialFinding finding = Find();
    return finding.credentials.ok()
               ? finding.credentials->access_key_id
               : std::string(finding.credentials.status().message());
  }

  void AddInstance() {
    answers_[absl::StrCat(kImds, "api/token")] = {200, "METATOKEN"};
    answers_[absl::StrCat(kImds, kRoles)] = {200, "web-role\n"};
    answers_[absl::StrCat(kImds, kRoles, "web-role")] = {
        200, RoleAnswer("INSTANCE")};
  }

  void AddWebIdentity() {
    const std::string path = absl::StrCat(directory_.path(), "/token");
    std::ofstream(path) << "JWT/+=\n";
    settings_.variables["AWS_WEB_IDENTITY_TOKEN_FILE"] = path;
    settings_.variables["AWS_ROLE_ARN"] = "arn:aws:iam::1:role/web";
    answers_["https://sts.eu-west-1.amazonaws.com/"] = {
        200,
        "<Credentials><AccessKeyId>IDENTITY</AccessKeyId>"
        "<SecretAccessKey>SECRET</SecretAccessKey><SessionToken>T"
        "</SessionToken><Expiration>2030-01-31T12:00:00Z</Expiration>"
        "</Credentials>"};
  }

  const TemporaryDirectory directory_;
  CredentialSettings settings_;
  std::map<std::string, absl::StatusOr<CredentialAnswer>> answers_;
  std::vector<CredentialRequest> requests_;
  std::vector<std::string> arguments_;
};

// store_credentials_test.py compares the order with botocore's.
TEST_F(CredentialChainTest, TheFirstSourceCounts) {
  EXPECT_EQ(Found(), "");
  AddInstance();
  EXPECT_EQ(Found(), "INSTANCE");
  settings_.variables["AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"] = "/v2/x";
  answers_["http://169.254.170.2/v2/x"] = {200, RoleAnswer("CONTAINER")};
  EXPECT_EQ(Found(), "CONTAINER");
  settings_.config_file = {{"aws_access_key_id", "CONFIG"},
                           {"aws_secret_access_key", "SECRET"}};
  EXPECT_EQ(Found(), "CONFIG");
  settings_.config_file["credential_process"] = "/bin/keys 'a b'";
  EXPECT_EQ(Found(), "PROCESS");
  EXPECT_THAT(arguments_, ElementsAre("/bin/keys", "a b"));
  settings_.credentials_file = {{"aws_access_key_id", "FILE"},
                                {"aws_secret_access_key", "SECRET"}};
  EXPECT_EQ(Found(), "FILE");
  AddWebIdentity();
  EXPECT_EQ(Found(), "IDENTITY");
  requests_.clear();
  settings_.variables["AWS_ACCESS_KEY_ID"] = "VARIABLE";
  settings_.variables["AWS_SECRET_ACCESS_KEY"] = "SECRET";
  EXPECT_EQ(Found(), "VARIABLE");
  EXPECT_THAT(requests_, IsEmpty());
  EXPECT_TRUE(Find().is_local);
}

// Silence would send unsigned requests, or those of another identity.
TEST_F(CredentialChainTest, NamesSourcesThatItDoesNotHave) {
  for (const char* const name :
       {"role_arn", "sso_account_id", "login_session"}) {
    settings_.config_file = {{name, "x"}};
    EXPECT_THAT(Find().credentials,
                FailsWith(kInvalid, AllOf(HasSubstr(name),
                                          HasSubstr("credential_process"))));
  }
}

TEST_F(CredentialChainTest, InstanceRolesUseAToken) {
  AddInstance();
  const auto found = Find();
  ASSERT_TRUE(found.credentials.ok()) << found.credentials.status();
  EXPECT_FALSE(found.is_local);
  EXPECT_EQ(found.credentials->source, "instance role web-role");
  ASSERT_EQ(requests_.size(), 3u);
  EXPECT_EQ(requests_[0].method, Method::kPut);
  EXPECT_THAT(requests_[0].headers,
              ElementsAre(testing::Pair("x-aws-ec2-metadata-token-ttl-seconds",
                                        "21600")));
  for (size_t i = 1; i < 3; ++i) {
    EXPECT_EQ(requests_[i].method, Method::kGet);
    EXPECT_THAT(
        requests_[i].headers,
        ElementsAre(testing::Pair("x-aws-ec2-metadata-token", "METATOKEN")));
    EXPECT_FALSE(requests_[i].may_use_proxy);
    EXPECT_EQ(requests_[i].tries_max, 1);
    EXPECT_EQ(requests_[i].time_max, std::chrono::seconds(1));
  }
}

TEST_F(CredentialChainTest, InstanceRolesFallBackToVersion1) {
  AddInstance();
  const std::string token_url = absl::StrCat(kImds, "api/token");
  for (const auto& answer : std::vector<absl::StatusOr<CredentialAnswer>>{
           CredentialAnswer{404, ""}, CredentialAnswer{403, ""},
           CredentialAnswer{405, ""},
           absl::DeadlineExceededError("no answer")}) {
    answers_[token_url] = answer;
    settings_.variables.erase("AWS_EC2_METADATA_V1_DISABLED");
    requests_.clear();
    EXPECT_EQ(Found(), "INSTANCE");
    EXPECT_THAT(requests_.back().headers, IsEmpty());
    settings_.variables["AWS_EC2_METADATA_V1_DISABLED"] = "True";
    EXPECT_THAT(Find().credentials,
                FailsWith(kUnavailable, HasSubstr("V1_DISABLED")));
  }
}

TEST_F(CredentialChainTest, MachinesWithoutARoleSignNothing) {
  const auto expect_none = [this](const char* why) {
    const auto found = Find().credentials;
    ASSERT_TRUE(found.ok()) << found.status();
    EXPECT_FALSE(found->is_set());
    EXPECT_THAT(found->source, HasSubstr(why));
  };
  expect_none("nothing is there");
  EXPECT_EQ(requests_.size(), 1u);
  AddInstance();
  answers_[absl::StrCat(kImds, kRoles)] = {404, "<html>"};
  expect_none("names no role (404)");
  answers_[absl::StrCat(kImds, "api/token")] = {400, ""};
  expect_none("(400)");
  requests_.clear();
  settings_.variables["AWS_EC2_METADATA_DISABLED"] = "TRUE";
  expect_none("AWS_EC2_METADATA_DISABLED");
  EXPECT_THAT(requests_, IsEmpty());
}

TEST_F(CredentialChainTest, ARoleThatFailsIsAnError) {
  AddInstance();
  const std::string url = absl::StrCat(kImds, kRoles, "web-role");
  answers_[url] = {503, ""};
  EXPECT_THAT(Find().credentials,
              FailsWith(kUnavailable, AllOf(HasSubstr("instance role web-role"),
                                            HasSubstr("answered 503"))));
  answers_[url] = {200, R"({"Code": "Failed", "AccessKeyId": "SECRET"})"};
  EXPECT_THAT(Find().credentials,
              FailsWith(kUnavailable, AllOf(HasSubstr("Code \"Failed\""),
                                            Not(HasSubstr("SECRET")))));
  for (const char* role : {"a/b", "../x", "a b", "a%20"}) {
    answers_[absl::StrCat(kImds, kRoles)] = {200, role};
    EXPECT_THAT(Find().credentials,
                FailsWith(kUnavailable, HasSubstr("no name of a role")));
  }
}

TEST_F(CredentialChainTest, InstanceEndpointsCanBeChosen) {
  settings_.variables["AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE"] = "IPv6";
  (void)Find();
  EXPECT_EQ(requests_.back().url, "http://[fd00:ec2::254]/latest/api/token");
  settings_.variables["AWS_EC2_METADATA_SERVICE_ENDPOINT"] =
      "http://127.0.0.1:9/";
  (void)Find();
  EXPECT_EQ(requests_.back().url, "http://127.0.0.1:9/latest/api/token");
  settings_.variables["AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE"] = "ipv5";
  EXPECT_THAT(Find().credentials, FailsWith(kInvalid, HasSubstr("ipv5")));
}

TEST_F(CredentialChainTest, ContainerRolesAreAskedWithTheirToken) {
  auto& variables = settings_.variables;
  variables["AWS_CONTAINER_CREDENTIALS_FULL_URI"] =
      "http://127.0.0.1:80/SECRET";
  variables["AWS_CONTAINER_AUTHORIZATION_TOKEN"] = "Basic TOKEN";
  answers_["http://127.0.0.1:80/SECRET"] = {200, RoleAnswer("CONTAINER")};
  EXPECT_EQ(Found(), "CONTAINER");
  EXPECT_THAT(requests_.back().headers,
              ElementsAre(testing::Pair("Accept", "application/json"),
                          testing::Pair("Authorization", "Basic TOKEN")));
  EXPECT_FALSE(requests_.back().may_use_proxy);
  const std::string path = absl::StrCat(directory_.path(), "/token");
  variables["AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"] = path;
  EXPECT_THAT(Find().credentials,
              FailsWith(absl::StatusCode::kFailedPrecondition,
                        AllOf(HasSubstr("container role"), HasSubstr(path))));
  std::ofstream(path) << "FILED\n";
  EXPECT_EQ(Found(), "CONTAINER");
  EXPECT_EQ(requests_.back().headers.back().second, "FILED");
  std::ofstream(path) << "FILED\nX-Other: SECRET";
  EXPECT_THAT(Find().credentials,
              FailsWith(kInvalid, Not(HasSubstr("SECRET"))));
  variables.erase("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE");
  answers_["http://127.0.0.1:80/SECRET"] = {500, "SECRET"};
  EXPECT_THAT(Find().credentials,
              FailsWith(kUnavailable,
                        AllOf(HasSubstr("http://127.0.0.1:80 answered 500"),
                              Not(HasSubstr("SECRET")))));
  requests_.clear();
  variables["AWS_CONTAINER_CREDENTIALS_FULL_URI"] = "http://10.0.0.1/";
  EXPECT_THAT(Find().credentials, FailsWith(kInvalid, HasSubstr("10.0.0.1")));
  // Would be a user name.
  variables["AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"] = "@example.org/";
  EXPECT_THAT(Find().credentials, FailsWith(kInvalid, HasSubstr("slash")));
  EXPECT_THAT(requests_, IsEmpty());
}

TEST_F(CredentialChainTest, WebIdentitiesAreExchanged) {
  AddWebIdentity();
  EXPECT_EQ(Found(), "IDENTITY");
  EXPECT_EQ(requests_[0].method, Method::kPost);
  EXPECT_TRUE(requests_[0].may_use_proxy);
  EXPECT_EQ(requests_[0].body,
            "Action=AssumeRoleWithWebIdentity&Version=2011-06-15"
            "&RoleArn=arn%3Aaws%3Aiam%3A%3A1%3Arole%2Fweb"
            "&RoleSessionName=quired-1000&WebIdentityToken=JWT%2F%2B%3D");
  settings_.variables["AWS_ENDPOINT_URL_STS"] = "http://127.0.0.1:9";
  settings_.variables["AWS_ROLE_SESSION_NAME"] = "mine";
  answers_["http://127.0.0.1:9"] = {
      403, "<Error><Code>AccessDenied</Code><Message>JWT</Message></Error>"};
  EXPECT_THAT(Find().credentials,
              FailsWith(kDenied, AllOf(HasSubstr("web identity"),
                                       HasSubstr("403 AccessDenied"),
                                       Not(HasSubstr("JWT")))));
  EXPECT_THAT(requests_.back().body, HasSubstr("&RoleSessionName=mine&"));
  answers_["http://127.0.0.1:9"] = {503, ""};
  EXPECT_THAT(Find().credentials, HasCode(kUnavailable));
  settings_.variables["AWS_WEB_IDENTITY_TOKEN_FILE"] = "/nowhere/token";
  EXPECT_THAT(
      Find().credentials,
      FailsWith(absl::StatusCode::kFailedPrecondition,
                AllOf(HasSubstr("web identity"), HasSubstr("/nowhere/token"))));
  settings_.variables.erase("AWS_ROLE_ARN");
  EXPECT_THAT(Find().credentials,
              FailsWith(kInvalid, HasSubstr("AWS_ROLE_ARN")));
}

class CredentialProcessTest : public ::testing::Test {
 protected:
  static absl::StatusOr<std::string> Shell(
      const char* script,
      std::chrono::milliseconds time_max = std::chrono::minutes(1)) {
    return RunCredentialProcess({"/bin/sh", "-c", script}, time_max, kGoOn);
  }

  static inline const std::atomic<bool> kGoOn = false;
};

TEST_F(CredentialProcessTest, ReturnsTheOutput) {
  const auto output = Shell("echo error >&2; printf 'a b'; cat");
  ASSERT_TRUE(output.ok()) << output.status();
  EXPECT_EQ(*output, "a b");
  // No shell.
  EXPECT_EQ(RunCredentialProcess({"echo", "$HOME;", "*"},
                                 std::chrono::minutes(1), kGoOn)
                .value(),
            "$HOME; *\n");
  // A child of its own holds the pipes open.
  const auto left = Shell("sleep 1000 & echo $!");
  ASSERT_TRUE(left.ok()) << left.status();
  EXPECT_EQ(kill(std::stoi(*left), SIGKILL), 0);
}

TEST_F(CredentialProcessTest, SeesNoFilesOfTheServer) {
  EXPECT_EQ(Shell("ls /proc/self/fd | wc -l").value(), "4\n");
}

TEST_F(CredentialProcessTest, NamesFailures) {
  constexpr auto kFailed = absl::StatusCode::kFailedPrecondition;
  EXPECT_THAT(Shell("echo SECRET; echo 'log\x1b in' >&2; echo b >&2; exit 3"),
              FailsWith(kFailed, "ended with exit code 3: log\\x1B in"));
  EXPECT_THAT(Shell("kill -9 $$"), FailsWith(kFailed, "ended by signal 9"));
  EXPECT_THAT(Shell("head -c 1000000 /dev/zero >&2; exit 1").status().message(),
              testing::SizeIs(testing::Lt(1000)));
  EXPECT_THAT(Shell("exec yes"), FailsWith(kFailed, HasSubstr("65536 bytes")));
  EXPECT_THAT(
      RunCredentialProcess({"/nowhere/x"}, std::chrono::minutes(1), kGoOn),
      FailsWith(kFailed, HasSubstr("No such file")));
}

TEST_F(CredentialProcessTest, EndsInTime) {
  EXPECT_THAT(Shell("sleep 1000; true", std::chrono::milliseconds(100)),
              HasCode(absl::StatusCode::kDeadlineExceeded));
  const std::atomic<bool> cancel = true;
  EXPECT_THAT(
      RunCredentialProcess({"sleep", "1000"}, std::chrono::minutes(1), cancel),
      HasCode(absl::StatusCode::kCancelled));
}

}  // namespace
}  // namespace quire
