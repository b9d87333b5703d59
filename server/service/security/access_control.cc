// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/service/security/access_control.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"

#include "codecs/base/printable_text.h"
#include "codecs/base/status_macros.h"
#include "server/archive/files/small_file.h"
#include "server/service/base/service_error.h"

#include "grpc/grpc_security_constants.h"

namespace quire {
namespace {

constexpr size_t kTokenFileSizeBytesMax = size_t{16} << 20;
// Rules that expire within this time cause a warning.
constexpr absl::Duration kExpiryWarning = absl::Hours(7 * 24);
constexpr size_t kNamesMax = 10;

absl::StatusOr<std::shared_ptr<const AccessRules>> ParseRules(
    const std::string& path, absl::string_view text) {
  absl::StatusOr<std::shared_ptr<const AccessRules>> rules =
      AccessRules::Parse(text);
  if (!rules.ok()) {
    return absl::FailedPreconditionError(
        absl::StrCat(path, ": ", rules.status().message()));
  }
  return rules;
}

// One text for all: do not reveal which part of a credential is wrong.
absl::Status Rejected() {
  return ServiceError(absl::StatusCode::kUnauthenticated,
                      v1::CREDENTIALS_REJECTED,
                      "no valid credentials: this server requires a known "
                      "token or client certificate that has not expired");
}

absl::string_view View(const grpc::string_ref& text) {
  return {text.data(), text.size()};
}

// gRPC has a security type for unencrypted connections, too.
bool IsEncrypted(const grpc::AuthContext& auth) {
  for (const grpc::string_ref& type :
       auth.FindPropertyValues(GRPC_TRANSPORT_SECURITY_TYPE_PROPERTY_NAME)) {
    if (type == GRPC_SSL_TRANSPORT_SECURITY_TYPE ||
        type == GRPC_TLS_TRANSPORT_SECURITY_TYPE) {
      return true;
    }
  }
  return false;
}

}  // namespace

ShownCredentials CredentialsIn(const grpc::CallbackServerContext& context,
                               absl::string_view peer, bool pairs_tokens) {
  ShownCredentials shown;
  shown.peer = peer;
  const auto [first, end] =
      context.client_metadata().equal_range("authorization");
  if (first != end) {
    shown.authorization = View(first->second);
    shown.authorization_count = static_cast<size_t>(std::distance(first, end));
    if (IsLocalPeer(peer) && !pairs_tokens) {
      return shown;
    }
  }
  const std::shared_ptr<const grpc::AuthContext> auth = context.auth_context();
  shown.is_encrypted = IsEncrypted(*auth);
  if ((shown.authorization_count == 0 || pairs_tokens) && shown.is_encrypted &&
      auth->IsPeerAuthenticated()) {
    for (const char* property :
         {GRPC_PEER_URI_PROPERTY_NAME, GRPC_PEER_DNS_PROPERTY_NAME}) {
      for (const grpc::string_ref& name : auth->FindPropertyValues(property)) {
        shown.certificate_names.emplace_back(View(name));
      }
    }
  }
  return shown;
}

bool IsLocalPeer(absl::string_view peer) {
  return absl::StartsWith(peer, "unix:") || absl::StartsWith(peer, "fd:") ||
         absl::StartsWith(peer, "ipv4:127.") ||
         absl::StartsWith(peer, "ipv6:%5B::1%5D") ||
         absl::StartsWith(peer, "ipv6:[::1]") ||
         absl::StartsWith(peer, "ipv6:%5B::ffff:127.") ||
         absl::StartsWith(peer, "ipv6:[::ffff:127.");
}

absl::StatusOr<std::unique_ptr<AccessControl>> AccessControl::Open(
    const std::string& path) {
  QUIRE_ASSIGN_OR_RETURN(std::string text,
                         ReadSmallFile(path, kTokenFileSizeBytesMax));
  QUIRE_ASSIGN_OR_RETURN(std::shared_ptr<const AccessRules> rules,
                         ParseRules(path, text));
  return std::unique_ptr<AccessControl>(
      new AccessControl(path, std::move(text), std::move(rules)));
}

AccessControl::AccessControl(std::string path, std::string text,
                             std::shared_ptr<const AccessRules> rules)
    : path_(std::move(path)),
      pairs_tokens_(rules->pairs_tokens()),
      text_(std::move(text)),
      rules_(std::move(rules)) {}

absl::StatusOr<std::string> AccessControl::Reload() {
  QUIRE_ASSIGN_OR_RETURN(std::string text,
                         ReadSmallFile(path_, kTokenFileSizeBytesMax));
  QUIRE_ASSIGN_OR_RETURN(std::shared_ptr<const AccessRules> rules,
                         ParseRules(path_, text));
  const std::string line =
      absl::StrCat("access: ", rules->size(), " identities");
  MutexLock lock(&mutex_);
  if (text == text_) {
    return std::string("access: unchanged");
  }
  text_ = std::move(text);
  rules_ = std::move(rules);
  pairs_tokens_.store(rules_->pairs_tokens(), std::memory_order_release);
  generation_.fetch_add(1, std::memory_order_release);
  return line;
}

std::shared_ptr<const AccessRules> AccessControl::rules() const {
  MutexLock lock(&mutex_);
  return rules_;
}

absl::StatusOr<std::shared_ptr<const AccessIdentity>>
AccessControl::Authenticate(const ShownCredentials& shown,
                            std::string& expired) const {
  const std::shared_ptr<const AccessRules> rules = this->rules();
  const absl::Time now = absl::Now();
  if (shown.authorization_count > 0) {
    if (!shown.is_encrypted && !IsLocalPeer(shown.peer)) {
      return ServiceError(absl::StatusCode::kUnauthenticated,
                          v1::CREDENTIALS_REJECTED,
                          "a token arrived unencrypted over a network and is "
                          "compromised: replace it, and use TLS");
    }
    // Two tokens count as none.
    std::shared_ptr<const AccessIdentity> identity =
        shown.authorization_count == 1 ? rules->MatchToken(shown.authorization)
                                       : nullptr;
    // Names have been looked up unless the rules have changed since.
    if (identity != nullptr && !identity->certificate.empty() &&
        std::find(shown.certificate_names.begin(),
                  shown.certificate_names.end(),
                  identity->certificate) == shown.certificate_names.end()) {
      return Rejected();
    }
    if (identity != nullptr && identity->expiry <= now) {
      expired = identity->name;
      return Rejected();
    }
    return identity != nullptr
               ? absl::StatusOr<std::shared_ptr<const AccessIdentity>>(identity)
               : Rejected();
  }
  for (const std::string& name : shown.certificate_names) {
    if (auto identity = rules->FindCertificate(name, now)) {
      return identity;
    }
  }
  return Rejected();
}

std::string AccessControl::DescribeExpiring(absl::Time now) const {
  const auto expiring = rules()->Expiring(now, now + kExpiryWarning);
  std::string text;
  for (size_t i = 0; i < std::min(expiring.size(), kNamesMax); ++i) {
    const auto& [expiry, name] = expiring[i];
    absl::StrAppend(
        &text, i == 0 ? "access: identities expire soon: " : ", ",
        PrintableText(name), " at ",
        absl::FormatTime("%Y-%m-%d %H:%M:%S UTC", expiry, absl::UTCTimeZone()));
  }
  if (expiring.size() > kNamesMax) {
    absl::StrAppend(&text, " and ", expiring.size() - kNamesMax, " more");
  }
  return text;
}

std::optional<absl::Time> AccessControl::NextExpiry(absl::Time now) const {
  // A century covers all real expiry times.
  const auto expiring = rules()->Expiring(now, now + absl::Hours(876'000));
  return expiring.empty() ? std::nullopt
                          : std::optional(expiring.front().first);
}

absl::StatusOr<std::shared_ptr<const AccessIdentity>> AccessControl::Refresh(
    const AccessIdentity& identity) const {
  if (auto found = rules()->FindAgain(identity, absl::Now())) {
    return found;
  }
  return Rejected();
}

}  // namespace quire
