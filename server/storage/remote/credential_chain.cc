// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/storage/remote/credential_chain.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"

#include "codecs/base/printable_text.h"
#include "codecs/base/status_macros.h"
#include "server/storage/remote/credential_process.h"
#include "server/storage/remote/store_address.h"

namespace quire {
namespace {

constexpr int kAnswered = 200;
constexpr std::chrono::seconds kProcessTimeMax{60};
constexpr std::chrono::seconds kStsTimeMax{5};
// Attempts of a request to a container's agent or to STS.
constexpr int kTriesMax = 3;
constexpr size_t kRoleNameSizeMax = 256;
constexpr absl::string_view kTokenSeconds = "21600";
constexpr absl::string_view kRolePath =
    "/latest/meta-data/iam/security-credentials/";

using Method = CredentialRequest::Method;
// Unset: the source is not configured.
using Found = absl::StatusOr<std::optional<StoreCredentials>>;

// Puts the source in front, and keeps the code.
absl::Status FromSource(absl::string_view source, const absl::Status& status) {
  const absl::StatusCode code =
      absl::IsDeadlineExceeded(status) || absl::IsResourceExhausted(status)
          ? absl::StatusCode::kUnavailable
          : status.code();
  return absl::Status(code, absl::StrCat(source, ": ", status.message()));
}

absl::Status NotAnswered(absl::string_view source, absl::string_view url,
                         int status, absl::string_view code = "") {
  const bool is_refused = status >= 400 && status < 500 && status != 429;
  return absl::Status(
      is_refused ? absl::StatusCode::kPermissionDenied
                 : absl::StatusCode::kUnavailable,
      absl::StrCat(source, ": ", OriginOf(url), " answered ", status,
                   code.empty() ? "" : absl::StrCat(" ", code),
                   "; expected credentials"));
}

bool IsTrue(absl::string_view value) {
  return absl::EqualsIgnoreCase(value, "true");
}

// Values of a form have no slashes.
std::string EncodeFormValue(absl::string_view value) {
  return absl::StrReplaceAll(EncodeStorePath(value), {{"/", "%2F"}});
}

// A name that can be the last part of a path.
bool IsRoleName(absl::string_view name) {
  return !name.empty() && name.size() <= kRoleNameSizeMax &&
         EncodeStorePath(name) ==
             absl::StrReplaceAll(
                 name,
                 {{"+", "%2B"}, {"=", "%3D"}, {",", "%2C"}, {"@", "%40"}}) &&
         !absl::StrContains(name, '/');
}

class Chain {
 public:
  Chain(const CredentialSettings& settings, const CredentialMeans& means)
      : settings_(settings), means_(means) {}

  // The first source that is configured.
  absl::StatusOr<StoreCredentials> Find() {
    using Source = Found (Chain::*)();
    for (const Source source :
         {&Chain::Environment, &Chain::AssumedRole, &Chain::WebIdentity,
          &Chain::SingleSignOn, &Chain::CredentialsFile, &Chain::LoginSession,
          &Chain::Process, &Chain::ConfigFile, &Chain::Container,
          &Chain::Instance}) {
      QUIRE_ASSIGN_OR_RETURN(std::optional<StoreCredentials> found,
                             (this->*source)());
      if (found.has_value()) {
        return *std::move(found);
      }
    }
    return StoreCredentials{.source = note_};
  }

  bool is_local() const { return is_local_; }

 private:
  static Found Named(absl::StatusOr<StoreCredentials> found,
                     absl::string_view source) {
    if (!found.ok()) {
      // It answered, but nothing that can be used.
      return absl::UnavailableError(
          absl::StrCat(source, ": ", found.status().message()));
    }
    found->source = std::string(source);
    return std::optional<StoreCredentials>(*std::move(found));
  }

  static Found IfSet(absl::StatusOr<StoreCredentials> keys) {
    if (!keys.ok()) {
      return keys.status();
    }
    return keys->is_set() ? std::optional<StoreCredentials>(*std::move(keys))
                          : std::nullopt;
  }

  // A source of botocore that Quire does not have.
  Found Unknown(absl::string_view what) const {
    return absl::InvalidArgumentError(absl::StrCat(
        "profile ", settings_.profile, " has ", what,
        ", which quired does not support; use credential_process, such as "
        "\"aws configure export-credentials --profile NAME\""));
  }

  absl::StatusOr<CredentialAnswer> Send(const CredentialRequest& request) {
    is_local_ = false;
    return means_.send(request);
  }

  Found Environment() { return IfSet(settings_.KeysOfVariables()); }

  Found AssumedRole() {
    if (!settings_.Setting("role_arn").empty() &&
        settings_.Setting("web_identity_token_file").empty()) {
      return Unknown("role_arn without web_identity_token_file");
    }
    return std::nullopt;
  }

  Found WebIdentity();

  Found SingleSignOn() {
    if (!settings_.Setting("sso_account_id").empty() ||
        !settings_.Setting("sso_role_name").empty()) {
      return Unknown("sso_account_id");
    }
    return std::nullopt;
  }

  Found CredentialsFile() {
    return IfSet(settings_.KeysOf(ProfileFile::kCredentials));
  }

  Found LoginSession() {
    if (!settings_.Setting("login_session").empty()) {
      return Unknown("login_session");
    }
    return std::nullopt;
  }

  Found Process();

  Found ConfigFile() { return IfSet(settings_.KeysOf(ProfileFile::kConfig)); }

  Found Container();
  Found Instance();
  // A token of IMDSv2; empty if only version 1 is there; unset if nothing is.
  absl::StatusOr<std::optional<std::string>> MetadataToken(
      const std::string& base, absl::string_view source);

  const CredentialSettings& settings_;
  const CredentialMeans& means_;
  bool is_local_ = true;
  // Part of the message if no source has credentials.
  std::string note_;
};

Found Chain::WebIdentity() {
  const auto value = [this](const char* variable, const char* setting) {
    const std::string given = settings_.Variable(variable);
    return given.empty() ? settings_.Setting(setting) : given;
  };
  const std::string path =
      value("AWS_WEB_IDENTITY_TOKEN_FILE", "web_identity_token_file");
  if (path.empty()) {
    return std::nullopt;
  }
  const std::string role = value("AWS_ROLE_ARN", "role_arn");
  if (role.empty()) {
    return absl::InvalidArgumentError(
        "web identity: AWS_WEB_IDENTITY_TOKEN_FILE is set without "
        "AWS_ROLE_ARN; set both");
  }
  const std::string source =
      absl::StrCat("web identity (role ", PrintableText(role), ")");
  const absl::StatusOr<std::string> token = ReadTokenFile(path);
  if (!token.ok()) {
    return FromSource(source, token.status());
  }
  std::string session = value("AWS_ROLE_SESSION_NAME", "role_session_name");
  if (session.empty()) {
    session = absl::StrCat("quired-", absl::ToUnixSeconds(means_.now));
  }
  CredentialRequest request;
  request.method = Method::kPost;
  request.url = settings_.Variable("AWS_ENDPOINT_URL_STS");
  if (request.url.empty()) {
    request.url =
        absl::StrCat("https://sts.", means_.region, ".amazonaws.com",
                     absl::StartsWith(means_.region, "cn-") ? ".cn" : "", "/");
  }
  request.body = absl::StrCat(
      "Action=AssumeRoleWithWebIdentity&Version=2011-06-15&RoleArn=",
      EncodeFormValue(role), "&RoleSessionName=", EncodeFormValue(session),
      "&WebIdentityToken=", EncodeFormValue(*token));
  request.headers = {
      {"Content-Type", "application/x-www-form-urlencoded; charset=utf-8"}};
  request.may_use_proxy = true;
  request.time_max = kStsTimeMax;
  request.tries_max = kTriesMax;
  const absl::StatusOr<CredentialAnswer> answer = Send(request);
  if (!answer.ok()) {
    return FromSource(source, answer.status());
  }
  if (answer->status != kAnswered) {
    return NotAnswered(source, request.url, answer->status,
                       ParseStsErrorCode(answer->body));
  }
  return Named(ParseAssumedRole(answer->body), source);
}

Found Chain::Process() {
  const std::string command = settings_.Setting("credential_process");
  if (command.empty()) {
    return std::nullopt;
  }
  const std::string source =
      absl::StrCat("credential_process of profile ", settings_.profile);
  const auto arguments = SplitCommandLine(command);
  if (!arguments.ok()) {
    return FromSource(source, arguments.status());
  }
  if (arguments->empty()) {
    return absl::InvalidArgumentError(absl::StrCat(source, ": has no program"));
  }
  is_local_ = false;
  const absl::StatusOr<std::string> output = means_.run(*arguments);
  // Arguments can be secrets.
  const std::string program =
      absl::StrCat(source, ": ", PrintableText(arguments->front()));
  return output.ok()
             ? Named(ParseCredentialJson(*output, CredentialJson::kProcess),
                     program)
             : Found(FromSource(program, output.status()));
}

Found Chain::Container() {
  const std::string path =
      settings_.Variable("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI");
  CredentialRequest request;
  request.url = settings_.Variable("AWS_CONTAINER_CREDENTIALS_FULL_URI");
  if (path.empty() && request.url.empty()) {
    return std::nullopt;
  }
  const std::string source = "container role (AWS_CONTAINER_CREDENTIALS_*)";
  if (!path.empty()) {
    if (path.front() != '/') {
      return absl::InvalidArgumentError(absl::StrCat(
          source,
          ": AWS_CONTAINER_CREDENTIALS_RELATIVE_URI must begin with "
          "a slash"));
    }
    request.url = absl::StrCat("http://169.254.170.2", path);
  }
  if (!IsContainerUrl(request.url)) {
    return absl::InvalidArgumentError(absl::StrCat(
        source, ": ", QuotedText(OriginOf(request.url)),
        " must be https://, an address of the loopback, 169.254.170.2, "
        "169.254.170.23 or [fd00:ec2::23]"));
  }
  std::string token = settings_.Variable("AWS_CONTAINER_AUTHORIZATION_TOKEN");
  const std::string token_path =
      settings_.Variable("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE");
  if (!token_path.empty()) {
    absl::StatusOr<std::string> read = ReadTokenFile(token_path);
    if (!read.ok()) {
      return FromSource(source, read.status());
    }
    token = *std::move(read);
  }
  // "Basic ..." has a space.
  if (!IsHeaderText(absl::StrReplaceAll(token, {{" ", "_"}}))) {
    return absl::InvalidArgumentError(absl::StrCat(
        source, ": the token has line ends or bytes that are not ASCII"));
  }
  request.headers.emplace_back("Accept", "application/json");
  if (!token.empty()) {
    request.headers.emplace_back("Authorization", token);
  }
  request.tries_max = kTriesMax;
  const absl::StatusOr<CredentialAnswer> answer = Send(request);
  if (!answer.ok()) {
    return FromSource(source, answer.status());
  }
  if (answer->status != kAnswered) {
    return NotAnswered(source, request.url, answer->status);
  }
  return Named(ParseCredentialJson(answer->body, CredentialJson::kRole),
               source);
}

absl::StatusOr<std::optional<std::string>> Chain::MetadataToken(
    const std::string& base, absl::string_view source) {
  const absl::StatusOr<CredentialAnswer> answer =
      Send({.method = Method::kPut,
            .url = absl::StrCat(base, "/latest/api/token"),
            .headers = {{"x-aws-ec2-metadata-token-ttl-seconds",
                         std::string(kTokenSeconds)}}});
  if (absl::IsCancelled(answer.status())) {
    return answer.status();
  }
  // Nothing is there, or a service of another cloud.
  constexpr int kBadRequest = 400;
  if (absl::IsUnavailable(answer.status())) {
    note_ = std::string(answer.status().message());
    return std::nullopt;
  }
  if (answer.ok() && answer->status == kBadRequest) {
    note_ = absl::StrCat(OriginOf(base), " refuses to give a token (400)");
    return std::nullopt;
  }
  std::string token;
  if (answer.ok() && answer->status == kAnswered) {
    token = std::string(absl::StripAsciiWhitespace(answer->body));
  }
  if (!IsHeaderText(token)) {
    return absl::UnavailableError(
        absl::StrCat(source, ": ", OriginOf(base), " answered no token"));
  }
  if (token.empty() &&
      IsTrue(settings_.Variable("AWS_EC2_METADATA_V1_DISABLED"))) {
    return absl::UnavailableError(absl::StrCat(
        source, ": ", OriginOf(base),
        " gives no token, and AWS_EC2_METADATA_V1_DISABLED forbids to ask "
        "without one; raise the hop limit of the instance if this is a "
        "container"));
  }
  return token;
}

Found Chain::Instance() {
  if (IsTrue(settings_.Variable("AWS_EC2_METADATA_DISABLED"))) {
    note_ = "AWS_EC2_METADATA_DISABLED is set";
    return std::nullopt;
  }
  const std::string mode = absl::AsciiStrToLower(
      settings_.Variable("AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE"));
  const std::string source = "instance role (IMDS)";
  if (!mode.empty() && mode != "ipv4" && mode != "ipv6") {
    return absl::InvalidArgumentError(
        absl::StrCat(source,
                     ": AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE must be ipv4 or "
                     "ipv6, got ",
                     QuotedText(mode)));
  }
  std::string base = settings_.Variable("AWS_EC2_METADATA_SERVICE_ENDPOINT");
  if (base.empty()) {
    base = mode == "ipv6" ? "http://[fd00:ec2::254]" : "http://169.254.169.254";
  }
  base = std::string(absl::StripSuffix(base, "/"));
  if (OriginOf(base).empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        source, ": AWS_EC2_METADATA_SERVICE_ENDPOINT must be a URL"));
  }
  QUIRE_ASSIGN_OR_RETURN(const std::optional<std::string> token,
                         MetadataToken(base, source));
  if (!token.has_value()) {
    return std::nullopt;
  }
  CredentialRequest request;
  request.url = absl::StrCat(base, kRolePath);
  if (!token->empty()) {
    request.headers.emplace_back("x-aws-ec2-metadata-token", *token);
  }
  absl::StatusOr<CredentialAnswer> answer = Send(request);
  if (absl::IsCancelled(answer.status())) {
    return answer.status();
  }
  const absl::string_view body =
      answer.ok() ? absl::StripAsciiWhitespace(answer->body) : "";
  if (!answer.ok() || answer->status != kAnswered || body.empty()) {
    // As botocore: an instance without a role, or of another cloud.
    note_ = answer.ok() ? absl::StrCat(OriginOf(base), " names no role (",
                                       answer->status, ")")
                        : std::string(answer.status().message());
    return std::nullopt;
  }
  const std::string role(body.substr(0, body.find('\n')));
  if (!IsRoleName(role)) {
    return absl::UnavailableError(absl::StrCat(source, ": ", OriginOf(base),
                                               " answered no name of a role"));
  }
  const std::string named = absl::StrCat("instance role ", role);
  request.url = absl::StrCat(base, kRolePath, role);
  answer = Send(request);
  if (!answer.ok()) {
    return FromSource(named, answer.status());
  }
  if (answer->status != kAnswered) {
    return NotAnswered(named, base, answer->status);
  }
  return Named(ParseCredentialJson(answer->body, CredentialJson::kRole), named);
}

}  // namespace

CredentialFinding FindCredentials(const CredentialSettings& settings,
                                  const CredentialMeans& means) {
  Chain chain(settings, means);
  absl::StatusOr<StoreCredentials> found = chain.Find();
  return {.credentials = std::move(found), .is_local = chain.is_local()};
}

CredentialFinding FindStoreCredentials(const std::string& region,
                                       const std::atomic<bool>& cancel) {
  const absl::StatusOr<CredentialSettings> settings = ReadCredentialSettings();
  if (!settings.ok()) {
    return {.credentials = settings.status()};
  }
  return FindCredentials(
      *settings, {.send =
                      [&cancel](const CredentialRequest& request) {
                        return SendCredentialRequest(request, cancel);
                      },
                  .run =
                      [&cancel](const std::vector<std::string>& arguments) {
                        return RunCredentialProcess(arguments, kProcessTimeMax,
                                                    cancel);
                      },
                  .region = region,
                  .now = absl::Now()});
}

}  // namespace quire
