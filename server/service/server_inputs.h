// SPDX-License-Identifier: GPL-3.0-or-later
//
// Checks a server's options before it listens.
#ifndef QUIRE_SERVER_SERVICE_SERVER_INPUTS_H_
#define QUIRE_SERVER_SERVICE_SERVER_INPUTS_H_

#include <memory>
#include <vector>

#include "absl/status/status.h"

#include "server/service/archive_outlines.h"
#include "server/service/limits/memory_plan.h"
#include "server/service/security/access_control.h"
#include "server/service/security/tls_certificates.h"
#include "server/service/server_options.h"
#include "server/service/withdrawal_file.h"

namespace quire {

// Checked inputs of a server.
struct ServerInputs {
  // Null without rules, and without TLS.
  std::unique_ptr<AccessControl> access_control;
  std::unique_ptr<TlsCertificates> certificates;
  // Null without --withdrawn.
  std::unique_ptr<WithdrawalFile> withdrawals;
  // Null without archives in object stores.
  std::unique_ptr<RemoteArchives> remote;
  // All archives.
  std::vector<PlannedArchive> planned;
  // Archives to be skipped: those that are wanted always and broken.
  std::vector<BrokenArchive> broken;
  MemoryPlan plan;
};

// Checks `options` and reads the files that they name, but of archives only
// their descriptions. Adds everything that keeps the server from starting to
// `faults`, in order of detection; the result is unusable if there is any.
// Warnings go to options.log. Blocks on I/O. A trial leaves the cache of object
// stores alone, which a running server may use.
ServerInputs CheckInputs(const ServerOptions& options, bool is_trial,
                         std::vector<absl::Status>& faults);

}  // namespace quire

#endif  // QUIRE_SERVER_SERVICE_SERVER_INPUTS_H_
