// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/service/security/access_rules.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

#include "codecs/base/check.h"
#include "codecs/base/printable_text.h"
#include "codecs/base/status_macros.h"

namespace quire {
namespace {

constexpr size_t kNameSizeMax = 64;
constexpr size_t kCertificateNameSizeMax = 1024;
constexpr size_t kSecretSizeMax = 256;
constexpr size_t kGlobsMax = 64;
constexpr size_t kGlobSizeMax = 128;
constexpr size_t kLinesMax = 100'000;
// The current secret and its replacement.
constexpr size_t kSecretsMax = 2;
constexpr char kToken[] = "token:";
constexpr char kCertificate[] = "certificate:";
constexpr char kTokenSyntax[] =
    "token ID sha256=HEX[,HEX] archives=GLOB[,GLOB]... rights=list,read "
    "[certificate=NAME] [expires=TIME] [calls=N] [bytes=SIZE] [streams=N]";
constexpr char kCertificateSyntax[] =
    "certificate NAME archives=GLOB[,GLOB]... rights=list,read [expires=TIME] "
    "[calls=N] [bytes=SIZE] [streams=N]";

absl::Status Malformed(absl::string_view what) {
  return absl::InvalidArgumentError(what);
}

// Returns the form that a line must have, by its beginning.
std::string SyntaxFor(absl::string_view line) {
  return absl::StartsWith(line, "certificate") ? kCertificateSyntax
         : absl::StartsWith(line, "token")
             ? kTokenSyntax
             : absl::StrCat(kTokenSyntax, ", or ", kCertificateSyntax);
}

bool IsTokenId(absl::string_view id) {
  return !id.empty() && id.size() <= kNameSizeMax &&
         std::all_of(id.begin(), id.end(), [](char c) {
           return absl::ascii_isalnum(static_cast<unsigned char>(c)) ||
                  c == '_' || c == '-';
         });
}

bool IsGlob(absl::string_view glob) {
  return !glob.empty() && glob.size() <= kGlobSizeMax &&
         std::all_of(glob.begin(), glob.end(), [](char c) {
           return absl::ascii_isalnum(static_cast<unsigned char>(c)) ||
                  absl::StrContains("._-*?", c);
         });
}

absl::StatusOr<Sha256> ParseSha256(absl::string_view text) {
  Sha256 digest;
  if (text.size() != 2 * digest.size() ||
      !std::all_of(text.begin(), text.end(), [](char c) {
        return absl::ascii_isxdigit(static_cast<unsigned char>(c));
      })) {
    return Malformed(
        absl::StrCat("sha256 must be 64 hex digits, as quired token new prints "
                     "them, got ",
                     QuotedText(text)));
  }
  const std::string bytes = absl::HexStringToBytes(text);
  std::copy(bytes.begin(), bytes.end(), digest.begin());
  return digest;
}

absl::StatusOr<std::vector<std::string>> ParseGlobs(absl::string_view text) {
  std::vector<std::string> globs;
  for (const absl::string_view glob : absl::StrSplit(text, ',')) {
    if (!IsGlob(glob) || globs.size() == kGlobsMax) {
      return Malformed(absl::StrCat(
          "archives must be 1 to ", kGlobsMax,
          " names of archives with * and ?, separated by commas, got ",
          QuotedText(text)));
    }
    globs.emplace_back(glob);
  }
  return globs;
}

absl::Status ParseRights(absl::string_view text, AccessIdentity& identity) {
  for (const absl::string_view right : absl::StrSplit(text, ',')) {
    if (right == "list") {
      identity.may_list = true;
    } else if (right == "read") {
      identity.may_read = true;
    } else {
      return Malformed(absl::StrCat(
          "rights must be list, read, or list,read, got ", QuotedText(text),
          right == "admin" ? "; no call needs more: a server is operated by "
                             "signals and --admin, which require no rights"
                           : ""));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<absl::Time> ParseExpiry(absl::string_view text) {
  absl::Time time;
  std::string error;
  for (const char* format : {"%E4Y-%m-%d", "%E4Y-%m-%dT%H:%M:%SZ"}) {
    if (absl::ParseTime(format, text, absl::UTCTimeZone(), &time, &error)) {
      return time;
    }
  }
  return Malformed(
      absl::StrCat("expires must be a time in UTC, 2027-01-31 or "
                   "2027-01-31T12:00:00Z, got ",
                   QuotedText(text)));
}

absl::StatusOr<std::vector<Sha256>> ParseSecrets(absl::string_view text) {
  std::vector<Sha256> secrets;
  for (const absl::string_view digest : absl::StrSplit(text, ',')) {
    if (secrets.size() == kSecretsMax) {
      return Malformed(
          "sha256 must be one digest, or two with a comma between");
    }
    QUIRE_ASSIGN_OR_RETURN(secrets.emplace_back(), ParseSha256(digest));
  }
  return secrets;
}

// `secrets` receives those of a token.
absl::Status ParseSetting(absl::string_view key, absl::string_view value,
                          AccessIdentity& identity,
                          std::vector<Sha256>& secrets) {
  if (key == "sha256" && absl::StartsWith(identity.name, kToken)) {
    QUIRE_ASSIGN_OR_RETURN(secrets, ParseSecrets(value));
  } else if (key == "certificate" && absl::StartsWith(identity.name, kToken)) {
    if (value.empty() || value.size() > kCertificateNameSizeMax) {
      return Malformed(absl::StrCat(
          "certificate must be an alternative name of 1 to ",
          kCertificateNameSizeMax, " bytes, got ", value.size(), " bytes"));
    }
    identity.certificate = std::string(value);
  } else if (key == "archives") {
    QUIRE_ASSIGN_OR_RETURN(identity.archive_globs, ParseGlobs(value));
  } else if (key == "rights") {
    QUIRE_RETURN_IF_ERROR(ParseRights(value, identity));
  } else if (key == "expires") {
    QUIRE_ASSIGN_OR_RETURN(identity.expiry, ParseExpiry(value));
  } else {
    QUIRE_ASSIGN_OR_RETURN(const bool is_quota,
                           SetQuota(key, value, identity.quota));
    if (!is_quota) {
      return Malformed(absl::StrCat(
          "settings must be sha256 and certificate (of a token), archives, "
          "rights, expires, calls, bytes and streams, got ",
          QuotedText(key)));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> ParseName(absl::string_view kind,
                                      absl::string_view name) {
  if (kind == "token") {
    return IsTokenId(name)
               ? absl::StatusOr<std::string>(absl::StrCat(kToken, name))
               : Malformed(absl::StrCat(
                     "a token's ID must be 1 to ", kNameSizeMax,
                     " letters, digits, '_' and '-', got ", QuotedText(name)));
  }
  if (kind == "certificate") {
    return !name.empty() && name.size() <= kCertificateNameSizeMax
               ? absl::StatusOr<std::string>(absl::StrCat(kCertificate, name))
               : Malformed(absl::StrCat("a certificate's name must have 1 to ",
                                        kCertificateNameSizeMax, " bytes, got ",
                                        name.size(), " bytes"));
  }
  return Malformed(absl::StrCat(
      "a line must begin with token or certificate, got ", QuotedText(kind)));
}

// Returns an identity for each secret, at least one.
absl::StatusOr<std::vector<AccessIdentity>> ParseLine(absl::string_view line) {
  const std::vector<absl::string_view> words =
      absl::StrSplit(line, absl::ByAnyChar(" \t\r"), absl::SkipEmpty());
  if (words.size() < 2) {
    return Malformed(
        "must be token ID or certificate NAME, and settings, KEY=VALUE");
  }
  AccessIdentity identity;
  std::vector<Sha256> secrets;
  QUIRE_ASSIGN_OR_RETURN(identity.name, ParseName(words[0], words[1]));
  std::vector<absl::string_view> keys;
  for (size_t i = 2; i < words.size(); ++i) {
    const std::pair<absl::string_view, absl::string_view> setting =
        absl::StrSplit(words[i], absl::MaxSplits('=', 1));
    if (std::find(keys.begin(), keys.end(), setting.first) != keys.end()) {
      return Malformed(
          absl::StrCat(QuotedText(setting.first), " is set twice"));
    }
    keys.push_back(setting.first);
    QUIRE_RETURN_IF_ERROR(
        ParseSetting(setting.first, setting.second, identity, secrets));
  }
  for (const absl::string_view needed : {"archives", "rights", "sha256"}) {
    if (std::find(keys.begin(), keys.end(), needed) == keys.end() &&
        (needed != "sha256" || words[0] == "token")) {
      return Malformed(absl::StrCat("has no ", needed, "="));
    }
  }
  std::vector<AccessIdentity> variants(std::max<size_t>(1, secrets.size()),
                                       identity);
  for (size_t i = 0; i < secrets.size(); ++i) {
    variants[i].secret_sha256 = secrets[i];
  }
  return variants;
}

}  // namespace

Sha256 Sha256Of(absl::string_view text) {
  // SHA256() would look up the algorithm by name, and EVP_Digest() allocate a
  // context: each takes longer than hashing.
  static const EVP_MD* const algorithm =
      EVP_MD_fetch(nullptr, "SHA256", nullptr);
  thread_local const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)>
      context(EVP_MD_CTX_new(), EVP_MD_CTX_free);
  Sha256 digest;
  QUIRE_CHECK(
      algorithm != nullptr && context != nullptr &&
          EVP_DigestInit_ex2(context.get(), algorithm, nullptr) == 1 &&
          EVP_DigestUpdate(context.get(), text.data(), text.size()) == 1 &&
          EVP_DigestFinal_ex(context.get(), digest.data(), nullptr) == 1,
      "OpenSSL has no SHA-256");
  return digest;
}

bool MatchesGlob(absl::string_view pattern, absl::string_view name) {
  size_t in_pattern = 0;
  size_t in_name = 0;
  // The last *, and the end of the text that it currently matches.
  size_t star = absl::string_view::npos;
  size_t star_end = 0;
  while (in_name < name.size()) {
    if (in_pattern < pattern.size() && pattern[in_pattern] == '*') {
      star = in_pattern++;
      star_end = in_name;
    } else if (in_pattern < pattern.size() &&
               (pattern[in_pattern] == '?' ||
                pattern[in_pattern] == name[in_name])) {
      ++in_pattern;
      ++in_name;
    } else if (star != absl::string_view::npos) {
      in_pattern = star + 1;
      in_name = ++star_end;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', in_pattern) == absl::string_view::npos;
}

bool AccessIdentity::Covers(absl::string_view archive) const {
  return std::any_of(
      archive_globs.begin(), archive_globs.end(),
      [&](const std::string& glob) { return MatchesGlob(glob, archive); });
}

ShownSecret::~ShownSecret() {
  std::string* const shown = secret_.load();
  if (shown != nullptr) {
    OPENSSL_cleanse(shown->data(), shown->size());
    delete shown;
  }
}

bool ShownSecret::Is(absl::string_view secret) const {
  const std::string* const shown = secret_.load(std::memory_order_acquire);
  return shown != nullptr && shown->size() == secret.size() &&
         CRYPTO_memcmp(shown->data(), secret.data(), secret.size()) == 0;
}

void ShownSecret::Set(absl::string_view secret) {
  auto shown = std::make_unique<std::string>(secret);
  std::string* expected = nullptr;
  if (secret_.compare_exchange_strong(expected, shown.get(),
                                      std::memory_order_acq_rel)) {
    static_cast<void>(shown.release());
  }
}

absl::StatusOr<std::shared_ptr<const AccessRules>> AccessRules::Parse(
    absl::string_view text) {
  auto rules = std::make_shared<AccessRules>();
  size_t number = 0;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    if (++number > kLinesMax) {
      return Malformed(
          absl::StrCat("line ", number, ": at most ", kLinesMax, " are read"));
    }
    line = absl::StripAsciiWhitespace(line);
    if (line.empty() || line[0] == '#') {
      continue;
    }
    absl::StatusOr<std::vector<AccessIdentity>> identity = ParseLine(line);
    if (!identity.ok()) {
      return Malformed(absl::StrCat("line ", number, ": ",
                                    identity.status().message(),
                                    "; the line must be: ", SyntaxFor(line)));
    }
    std::string name = identity->front().name;
    rules->pairs_tokens_ |= !identity->front().certificate.empty();
    rules->certificate_count_ += !identity->front().certificate.empty() ||
                                         absl::StartsWith(name, kCertificate)
                                     ? 1
                                     : 0;
    Variants variants;
    for (AccessIdentity& variant : *identity) {
      variants.push_back(
          {std::make_shared<const AccessIdentity>(std::move(variant)),
           std::make_unique<ShownSecret>()});
    }
    if (!rules->identities_.emplace(name, std::move(variants)).second) {
      return Malformed(absl::StrCat("line ", number, ": ", QuotedText(name),
                                    " has a line already"));
    }
  }
  return rules;
}

std::shared_ptr<const AccessIdentity> AccessRules::FindToken(
    absl::string_view header, absl::Time now) const {
  std::shared_ptr<const AccessIdentity> identity = MatchToken(header);
  return identity == nullptr || identity->expiry <= now ? nullptr : identity;
}

std::shared_ptr<const AccessIdentity> AccessRules::MatchToken(
    absl::string_view header) const {
  // The name of the scheme is case-insensitive (RFC 9110, section 11.1).
  constexpr absl::string_view kScheme = "bearer ";
  if (header.size() > kScheme.size() + kNameSizeMax + 1 + kSecretSizeMax ||
      !absl::StartsWithIgnoreCase(header, kScheme)) {
    return nullptr;
  }
  const std::pair<absl::string_view, absl::string_view> token =
      absl::StrSplit(header.substr(kScheme.size()), absl::MaxSplits('.', 1));
  if (!IsTokenId(token.first)) {
    return nullptr;
  }
  const auto found = identities_.find(absl::StrCat(kToken, token.first));
  if (found != identities_.end()) {
    for (const auto& [identity, shown] : found->second) {
      if (shown->Is(token.second)) {
        return identity;
      }
    }
  }
  const Sha256 digest = Sha256Of(token.second);
  const Variant* right = nullptr;
  if (found != identities_.end()) {
    for (const Variant& variant : found->second) {
      if (CRYPTO_memcmp(digest.data(), variant.identity->secret_sha256.data(),
                        digest.size()) == 0) {
        right = &variant;
      }
    }
  }
  if (right == nullptr) {
    return nullptr;
  }
  right->shown->Set(token.second);
  return right->identity;
}

std::shared_ptr<const AccessIdentity> AccessRules::FindCertificate(
    absl::string_view name, absl::Time now) const {
  const auto found = identities_.find(absl::StrCat(kCertificate, name));
  if (found == identities_.end()) {
    return nullptr;
  }
  const auto& identity = found->second.front().identity;
  return identity->expiry <= now ? nullptr : identity;
}

std::shared_ptr<const AccessIdentity> AccessRules::FindAgain(
    const AccessIdentity& identity, absl::Time now) const {
  const auto found = identities_.find(identity.name);
  if (found == identities_.end()) {
    return nullptr;
  }
  for (const auto& variant : found->second) {
    if (variant.identity->secret_sha256 == identity.secret_sha256 &&
        variant.identity->certificate == identity.certificate &&
        variant.identity->expiry > now) {
      return variant.identity;
    }
  }
  return nullptr;
}

std::vector<std::pair<absl::Time, std::string>> AccessRules::Expiring(
    absl::Time from, absl::Time to) const {
  std::vector<std::pair<absl::Time, std::string>> expiring;
  for (const auto& [name, variants] : identities_) {
    const absl::Time expiry = variants.front().identity->expiry;
    if (from < expiry && expiry <= to) {
      expiring.emplace_back(expiry, name);
    }
  }
  std::sort(expiring.begin(), expiring.end());
  return expiring;
}

}  // namespace quire
