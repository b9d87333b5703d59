// SPDX-License-Identifier: GPL-3.0-or-later
//
// The rules in force, and the identity of a call.
#ifndef QUIRE_SERVER_SERVICE_SECURITY_ACCESS_CONTROL_H_
#define QUIRE_SERVER_SERVICE_SECURITY_ACCESS_CONTROL_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "grpcpp/server_context.h"

#include "codecs/base/mutex.h"
#include "server/service/security/access_rules.h"

namespace quire {

// The credentials of a call. The views are valid as long as its context.
struct ShownCredentials {
  // The header "authorization", and its number of occurrences.
  absl::string_view authorization;
  size_t authorization_count = 0;
  // Not looked up for a token from this machine, which may be unencrypted.
  bool is_encrypted = false;
  // Peer as in ServerContext::peer().
  absl::string_view peer;
  // Alternative names of a verified certificate, URIs first. Looked up for a
  // token, which takes precedence, only if a rule needs both.
  std::vector<std::string> certificate_names = {};
};

// Returns the credentials of `context`. `peer` is context.peer(), which takes
// two allocations; the result refers to it. `pairs_tokens` is
// AccessControl::pairs_tokens().
ShownCredentials CredentialsIn(const grpc::CallbackServerContext& context,
                               absl::string_view peer, bool pairs_tokens);

// Thread-safe.
class AccessControl {
 public:
  // Reads the file, of at most 16 MiB. Blocks on I/O.
  // Errors: FailedPrecondition  it cannot be read, or as AccessRules::Parse();
  //                             names file and line.
  static absl::StatusOr<std::unique_ptr<AccessControl>> Open(
      const std::string& path);

  // Reads the file again. A malformed file changes nothing. Returns text for
  // the log. Blocks on I/O. Errors: as Open().
  absl::StatusOr<std::string> Reload() ABSL_LOCKS_EXCLUDED(mutex_);

  // Returns the identity for the credentials: that of the token, otherwise of
  // the first alternative name of the client's certificate that has one, URIs
  // first. A token that needs a certificate is unknown without it. Sets
  // `expired` to the name of an identity whose token is right but expired.
  // Errors: Unauthenticated (CREDENTIALS_REJECTED)  there is none, or a token
  //   arrived unencrypted and not from this machine.
  absl::StatusOr<std::shared_ptr<const AccessIdentity>> Authenticate(
      const ShownCredentials& shown, std::string& expired) const
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Names the identities that expire within a week, for the log; empty: none.
  std::string DescribeExpiring(absl::Time now) const
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Returns the first expiry after `now`; unset if none expires.
  std::optional<absl::Time> NextExpiry(absl::Time now) const
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Returns the current rules for an identity. Errors: as Authenticate().
  absl::StatusOr<std::shared_ptr<const AccessIdentity>> Refresh(
      const AccessIdentity& identity) const ABSL_LOCKS_EXCLUDED(mutex_);

  // As in the current AccessRules.
  size_t certificate_count() const ABSL_LOCKS_EXCLUDED(mutex_) {
    return rules()->certificate_count();
  }

  bool pairs_tokens() const {
    return pairs_tokens_.load(std::memory_order_acquire);
  }

  // Increases with each Reload() that changed the rules.
  uint64_t generation() const {
    return generation_.load(std::memory_order_acquire);
  }

 private:
  AccessControl(std::string path, std::string text,
                std::shared_ptr<const AccessRules> rules);

  std::shared_ptr<const AccessRules> rules() const ABSL_LOCKS_EXCLUDED(mutex_);

  const std::string path_;
  std::atomic<uint64_t> generation_ = 0;
  std::atomic<bool> pairs_tokens_;
  mutable Mutex mutex_;
  std::string text_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<const AccessRules> rules_ ABSL_GUARDED_BY(mutex_);
};

// True if the traffic of `peer`, as in ServerContext::peer(), has not left this
// machine. Descriptors passed to gRPC ("fd:") are unix sockets.
bool IsLocalPeer(absl::string_view peer);

}  // namespace quire

#endif  // QUIRE_SERVER_SERVICE_SECURITY_ACCESS_CONTROL_H_
