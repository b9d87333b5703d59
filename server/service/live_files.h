// SPDX-License-Identifier: GPL-3.0-or-later
//
// The files of a server that a reload reads again, except archives.
#ifndef QUIRE_SERVER_SERVICE_LIVE_FILES_H_
#define QUIRE_SERVER_SERVICE_LIVE_FILES_H_

#include <vector>

#include "server/service/base/log_line.h"
#include "server/service/catalog/catalog.h"
#include "server/service/logging/call_log.h"
#include "server/service/security/access_control.h"
#include "server/service/security/tls_certificates.h"
#include "server/service/withdrawal_file.h"
#include "server/storage/remote/remote_store.h"

namespace quire {

// Each may be null, and must outlive this object. Thread-compatible.
struct LiveFiles {
  AccessControl* access_control = nullptr;
  WithdrawalFile* withdrawals = nullptr;
  // Its credentials.
  RemoteStore* store = nullptr;
  TlsCertificates* certificates = nullptr;
  // Opened again, for programs that rotate logs.
  CallLog* call_log = nullptr;

  // Reads rules of access, withdrawn documents, credentials, and the
  // certificate, and reopens the access log. Adds a line about each that
  // exists. One with an error stays unchanged; archives that new rules of
  // withdrawal cannot be matched with are withheld. Returns false if there is
  // such an error.
  // Blocks on I/O.
  bool Reload(const Catalog& catalog, std::vector<LogLine>& lines) const;
};

}  // namespace quire

#endif  // QUIRE_SERVER_SERVICE_LIVE_FILES_H_
