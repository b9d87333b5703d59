// SPDX-License-Identifier: GPL-3.0-or-later
//
// The server's certificate, and its replacement at run time.
#ifndef QUIRE_SERVER_SERVICE_SECURITY_TLS_CERTIFICATES_H_
#define QUIRE_SERVER_SERVICE_SECURITY_TLS_CERTIFICATES_H_

#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "grpcpp/security/server_credentials.h"

#include "codecs/base/mutex.h"
#include "server/service/base/log_line.h"
#include "server/service/security/tls_files.h"

namespace quire {

// Client certificates, if there is a CA for them.
enum class ClientCertificates { kRequired, kOptional };

// The certificate for new connections. Open connections keep theirs.
//
// gRPC's own file watcher is unsuitable: it accepts a key and a certificate
// that do not match, and then no client can connect.
// Thread-safe.
class TlsCertificates {
 public:
  // Reads the files. Errors: as ReadTlsIdentity().
  static absl::StatusOr<std::unique_ptr<TlsCertificates>> Open(
      const TlsFiles& files, ClientCertificates client_certificates);

  // Stops watching. REQUIRES: no server uses the credentials any more.
  ~TlsCertificates();
  TlsCertificates(const TlsCertificates&) = delete;
  TlsCertificates& operator=(const TlsCertificates&) = delete;

  // Checks the files every `interval` from now on, and reports changes, on its
  // own thread. Call once.
  // Errors: ResourceExhausted  cannot start a thread.
  absl::Status Watch(absl::Duration interval, LogSink log);

  // Reads the files now. Valid and changed files apply to new connections;
  // invalid ones change nothing. Returns text for the log; empty if nothing
  // changed. Blocks on I/O.
  // Errors: as ReadTlsIdentity().
  absl::StatusOr<std::string> Check() ABSL_LOCKS_EXCLUDED(mutex_);

  // For ServerBuilder::AddListeningPort(), for one port. This object must
  // outlive the server.
  std::shared_ptr<grpc::ServerCredentials> Credentials();

  // Expiry of the current certificate.
  absl::Time expiry() const ABSL_LOCKS_EXCLUDED(mutex_);

  // True if the last check found valid files.
  bool is_good() const ABSL_LOCKS_EXCLUDED(mutex_);

  // For the credentials: returns the current identity unless taken already.
  std::optional<TlsIdentity> TakeNew() ABSL_LOCKS_EXCLUDED(mutex_);

  bool asks_clients() const { return !files_.client_ca.empty(); }

  ClientCertificates client_certificates() const {
    return client_certificates_;
  }

 private:
  TlsCertificates(TlsFiles files, ClientCertificates client_certificates,
                  TlsIdentity identity);

  void WatchUntilStopped(absl::Duration interval, const LogSink& log);

  const TlsFiles files_;
  const ClientCertificates client_certificates_;
  mutable Mutex mutex_;
  CondVar stopped_;
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  TlsIdentity identity_ ABSL_GUARDED_BY(mutex_);
  bool is_taken_ ABSL_GUARDED_BY(mutex_) = false;
  bool is_good_ ABSL_GUARDED_BY(mutex_) = true;
  std::thread thread_;
};

}  // namespace quire

#endif  // QUIRE_SERVER_SERVICE_SECURITY_TLS_CERTIFICATES_H_
