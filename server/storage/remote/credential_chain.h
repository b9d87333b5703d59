// SPDX-License-Identifier: GPL-3.0-or-later
//
// The sources of credentials, in the order in which botocore asks them: the
// environment, a web identity, the credentials file, credential_process, the
// config file, the role of a container, the role of an instance. The first that
// is configured counts: if it fails, that is an error, and no other is asked.
#ifndef QUIRE_SERVER_STORAGE_REMOTE_CREDENTIAL_CHAIN_H_
#define QUIRE_SERVER_STORAGE_REMOTE_CREDENTIAL_CHAIN_H_

#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

#include "server/storage/remote/credential_request.h"
#include "server/storage/remote/credential_settings.h"
#include "server/storage/remote/store_credentials.h"

namespace quire {

// What sources use of the world outside of settings and files.
struct CredentialMeans {
  std::function<absl::StatusOr<CredentialAnswer>(const CredentialRequest&)>
      send;
  // Returns the output of a program.
  std::function<absl::StatusOr<std::string>(const std::vector<std::string>&)>
      run;
  // Of STS.
  std::string region = "us-east-1";
  absl::Time now;
};

struct CredentialFinding {
  // Not set if no source is configured.
  // Errors: InvalidArgument, FailedPrecondition  a source is not configured
  //                            properly, or is one that Quire does not know.
  //         PermissionDenied   a source refuses to give any.
  //         Unavailable        a source does not answer properly.
  //         Cancelled.
  // Messages begin with the source.
  absl::StatusOr<StoreCredentials> credentials;
  // True if nothing but the environment and files was asked.
  bool is_local = true;
};

CredentialFinding FindCredentials(const CredentialSettings& settings,
                                  const CredentialMeans& means);

// The same with the settings, network and programs of this machine. Blocks,
// until `cancel` is true or for some seconds, or a minute for
// credential_process. Thread-safe.
CredentialFinding FindStoreCredentials(const std::string& region,
                                       const std::atomic<bool>& cancel);

}  // namespace quire

#endif  // QUIRE_SERVER_STORAGE_REMOTE_CREDENTIAL_CHAIN_H_
