// SPDX-License-Identifier: GPL-3.0-or-later
//
// The server's certificate, and its replacement while the server runs.
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

// Whether clients must show a certificate, where there is a CA for them.
enum class ClientCertificates { kRequired, kOptional };

// What new connections are made with. Those that are open keep what they have.
//
// gRPC's own watcher of files is of no use here: it takes a key and a
// certificate that do not belong together, and then no one can connect.
// Thread-safe.
class TlsCertificates {
 public:
  // Reads the files. Errors: as ReadTlsIdentity().
  static absl::StatusOr<std::unique_ptr<TlsCertificates>> Open(
      const TlsFiles& files, ClientCertificates client_certificates);

  // Ends the watching. REQUIRES: no server uses the credentials any more.
  ~TlsCertificates();
  TlsCertificates(const TlsCertificates&) = delete;
  TlsCertificates& operator=(const TlsCertificates&) = delete;

  // Looks at the files every `interval` from now on, and says what it
  // did, on a thread of its own.
  // Errors: ResourceExhausted  no thread could be started.
  // To be called once.
  absl::Status Watch(absl::Duration interval, SayLine say);

  // Reads the files now. If they are good and have changed, new connections get
  // what they hold; if they are not good, what was there stays. Returns what to
  // say of it; empty if nothing changed. Blocks on I/O.
  // Errors: as ReadTlsIdentity().
  absl::StatusOr<std::string> Check() ABSL_LOCKS_EXCLUDED(mutex_);

  // For ServerBuilder::AddListeningPort(), of one port. This must outlive the
  // server.
  std::shared_ptr<grpc::ServerCredentials> Credentials();

  // When the certificate that is used expires.
  absl::Time expiry() const ABSL_LOCKS_EXCLUDED(mutex_);

  // Whether the last check found good files.
  bool is_good() const ABSL_LOCKS_EXCLUDED(mutex_);

  // For the credentials: what is used, if it was not taken yet.
  std::optional<TlsIdentity> TakeNew() ABSL_LOCKS_EXCLUDED(mutex_);

  bool asks_clients() const { return !files_.client_ca.empty(); }

  ClientCertificates client_certificates() const {
    return client_certificates_;
  }

 private:
  TlsCertificates(TlsFiles files, ClientCertificates client_certificates,
                  TlsIdentity identity);

  void WatchUntilStopped(absl::Duration interval, const SayLine& say);

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
