// SPDX-License-Identifier: GPL-3.0-or-later
//
// The rules that are in force, and which of them a call is subject to.
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
#include "grpcpp/server_context.h"

#include "codecs/base/mutex.h"
#include "server/service/security/access_rules.h"

namespace quire {

// The parts of a call that say who makes it.
struct ShownCredentials {
  // The header "authorization", and how often it is there.
  std::string authorization;
  size_t authorization_count = 0;
  bool is_encrypted = false;
  // As ServerContext::peer() names it.
  std::string peer;
  // Alternative names of a certificate that was verified, URIs first.
  std::vector<std::string> certificate_names = {};
};

// Those of `context`.
ShownCredentials CredentialsIn(const grpc::CallbackServerContext& context);

// Thread-safe.
class AccessControl {
 public:
  // Reads the file, of at most 16 MiB. Blocks on I/O.
  // Errors: FailedPrecondition  it cannot be read, or as AccessRules::Parse();
  //                             names file and line.
  static absl::StatusOr<std::unique_ptr<AccessControl>> Open(
      const std::string& path);

  // Reads the file again. What is malformed changes nothing. Returns what to
  // say of it. Blocks on I/O. Errors: as Open().
  absl::StatusOr<std::string> Reload() ABSL_LOCKS_EXCLUDED(mutex_);

  // The identity behind what a call shows: that of its token, or else of the
  // first alternative name of its client's certificate that has one, URIs
  // first. Errors: Unauthenticated (CREDENTIALS_REJECTED)  there is none; or a
  // token
  //                         came unencrypted, and not from this machine.
  // `expired` gets the name of an identity whose token is right and expired.
  absl::StatusOr<std::shared_ptr<const AccessIdentity>> Authenticate(
      const ShownCredentials& shown, std::string& expired) const
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Names those whose rules end within a week, for the log; empty: none.
  std::string DescribeExpiring(absl::Time now) const
      ABSL_LOCKS_EXCLUDED(mutex_);

  // The first end of rules after `now`; unset if none has an end.
  std::optional<absl::Time> NextExpiry(absl::Time now) const
      ABSL_LOCKS_EXCLUDED(mutex_);

  // The rules for an identity as they are now. Errors: as Authenticate().
  absl::StatusOr<std::shared_ptr<const AccessIdentity>> Refresh(
      const AccessIdentity& identity) const ABSL_LOCKS_EXCLUDED(mutex_);

  // Rises with each Reload() that changed the rules.
  uint64_t generation() const {
    return generation_.load(std::memory_order_acquire);
  }

 private:
  AccessControl(std::string path, std::string text,
                std::shared_ptr<const AccessRules> rules);

  std::shared_ptr<const AccessRules> rules() const ABSL_LOCKS_EXCLUDED(mutex_);

  const std::string path_;
  std::atomic<uint64_t> generation_ = 0;
  mutable Mutex mutex_;
  std::string text_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<const AccessRules> rules_ ABSL_GUARDED_BY(mutex_);
};

// Whether what comes from `peer`, as ServerContext::peer() names it, has not
// left this machine. Descriptors that were handed to gRPC ("fd:") are of unix
// sockets.
bool IsLocalPeer(absl::string_view peer);

}  // namespace quire

#endif  // QUIRE_SERVER_SERVICE_SECURITY_ACCESS_CONTROL_H_
