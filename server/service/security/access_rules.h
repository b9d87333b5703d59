// SPDX-License-Identifier: GPL-3.0-or-later
//
// Permissions of clients on archives: the file of `quired serve --access`.
//
// One identity per line; empty lines and lines that begin with # are skipped:
//
//   token ID sha256=HEX archives=GLOBS rights=RIGHTS [certificate=NAME]
//       [expires=TIME] [QUOTA]...
//   certificate NAME archives=GLOBS rights=RIGHTS [expires=TIME] [QUOTA]...
//
// A token is "ID.SECRET"; the file has the SHA-256 of the secret, 64 hex
// digits, and never the secret; or two hashes, separated by a comma, while one
// secret replaces the other. The name of a certificate is an alternative name
// of its subject, a URI or a DNS name. A token with certificate=NAME is valid
// only on connections with that certificate. GLOBS are names of archives with *
// and
// ?, separated by commas. RIGHTS are "list" and "read". TIME is 2027-01-31 or
// 2027-01-31T12:00:00Z, in UTC. QUOTA is calls=N or bytes=SIZE, both per
// second, or streams=N at a time; it replaces that limit of --quota, and "none"
// lifts it.
#ifndef QUIRE_SERVER_SERVICE_SECURITY_ACCESS_RULES_H_
#define QUIRE_SERVER_SERVICE_SECURITY_ACCESS_RULES_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

#include "server/service/limits/quota.h"

namespace quire {

enum class Right {
  // See the archive and its description in lists.
  kList,
  // Read its contents: documents, ids, dictionary and symbol table.
  kRead,
};

using Sha256 = std::array<uint8_t, 32>;

Sha256 Sha256Of(absl::string_view text);

// True if `name` matches `pattern`, in which * is any text and ? one byte.
// Takes at most the product of their sizes.
bool MatchesGlob(absl::string_view pattern, absl::string_view name);

// One line of the file. Immutable.
struct AccessIdentity {
  // "token:ID" or "certificate:NAME".
  std::string name;
  // Hash of a token's secret. A line with two secrets makes two identities that
  // differ only in this.
  Sha256 secret_sha256 = {};
  // Name of the certificate that must come with the token; empty: none.
  std::string certificate;
  std::vector<std::string> archive_globs;
  bool may_list = false;
  bool may_read = false;
  absl::Time expiry = absl::InfiniteFuture();
  Quota quota = {};

  bool Has(Right right) const {
    return right == Right::kList ? may_list : may_read;
  }

  bool Covers(absl::string_view archive) const;
};

// The secret of a token, from the first call that showed it: comparing it takes
// a tenth of the time of hashing it. Set at most once. Thread-safe.
class ShownSecret {
 public:
  ShownSecret() = default;
  ~ShownSecret();
  ShownSecret(const ShownSecret&) = delete;
  ShownSecret& operator=(const ShownSecret&) = delete;

  // Its duration does not depend on how much of `secret` is right.
  bool Is(absl::string_view secret) const;

  // REQUIRES: the hash of `secret` is that of the identity.
  void Set(absl::string_view secret);

 private:
  // Wiped before it is freed.
  std::atomic<std::string*> secret_ = nullptr;
};

// A file of rules. Immutable, except that it remembers secrets that were right;
// thread-safe.
class AccessRules {
 public:
  // Errors: InvalidArgument  a line is malformed, or repeats an identity; "line
  //                          N: ", the error, and the syntax of such a line.
  static absl::StatusOr<std::shared_ptr<const AccessRules>> Parse(
      absl::string_view text);

  // Returns the identity for a header "Bearer ID.SECRET". Its duration does not
  // depend on how much of a secret is right. Null: malformed, unknown, wrong
  // secret, or expired at `now`.
  std::shared_ptr<const AccessIdentity> FindToken(absl::string_view header,
                                                  absl::Time now) const;

  // The same, including expired identities.
  std::shared_ptr<const AccessIdentity> MatchToken(
      absl::string_view header) const;

  // Returns the identity of a certificate with that alternative name. Null:
  // unknown, or expired at `now`.
  std::shared_ptr<const AccessIdentity> FindCertificate(absl::string_view name,
                                                        absl::Time now) const;

  // Returns the current identity with that AccessIdentity::name, if its secret
  // and certificate are the same. Null: none, or expired.
  std::shared_ptr<const AccessIdentity> FindAgain(
      const AccessIdentity& identity, absl::Time now) const;

  // Returns identities that expire after `from` and up to `to`: expiry and
  // name, in order.
  std::vector<std::pair<absl::Time, std::string>> Expiring(absl::Time from,
                                                           absl::Time to) const;

  size_t size() const { return identities_.size(); }

  // Number of identities that only clients with a certificate can have.
  size_t certificate_count() const { return certificate_count_; }

  // True if a token is valid only with a certificate.
  bool pairs_tokens() const { return pairs_tokens_; }

 private:
  // An identity with one of its secrets.
  struct Variant {
    std::shared_ptr<const AccessIdentity> identity;
    // Ends with these rules, so a removed hash ends what was remembered for it.
    std::unique_ptr<ShownSecret> shown;
  };

  // One per secret of the identity; one for a certificate.
  using Variants = std::vector<Variant>;

  absl::flat_hash_map<std::string, Variants> identities_;
  size_t certificate_count_ = 0;
  bool pairs_tokens_ = false;
};

}  // namespace quire

#endif  // QUIRE_SERVER_SERVICE_SECURITY_ACCESS_RULES_H_
