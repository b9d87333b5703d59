// SPDX-License-Identifier: GPL-3.0-or-later
//
// The files of a server's certificate: read, and checked before they are used.
#ifndef QUIRE_SERVER_SERVICE_SECURITY_TLS_FILES_H_
#define QUIRE_SERVER_SERVICE_SECURITY_TLS_FILES_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace quire {

// Paths of PEM files. `client_ca` may be empty: then no client certificates are
// asked for. All empty: no TLS.
struct TlsFiles {
  // The server's certificate, then those between it and the root.
  std::string certificate;
  // Its private key, without a passphrase.
  std::string key;
  // Who signs the certificates of clients.
  std::string client_ca;

  // Takes a key that all users can read.
  bool allow_readable_secrets = false;

  bool is_set() const { return !certificate.empty(); }
};

// What the files hold. The key fits the certificate.
struct TlsIdentity {
  std::string certificate_pem;
  std::string key_pem;
  std::string client_ca_pem;
  absl::Time expiry;

  // Of the contents.
  bool operator==(const TlsIdentity& other) const = default;
};

// Reads the files. A file that is half written, or a key and certificate of
// which only one has been replaced, is found out. Blocks on I/O. Thread-safe.
// Errors: FailedPrecondition  a file cannot be read, is over 1 MiB, or is not
//                             what it must be; key and certificate do not
//                             belong together; the certificate is not valid
//                             at `now`; all users can read the key. Names the
//                             file.
absl::StatusOr<TlsIdentity> ReadTlsIdentity(const TlsFiles& files,
                                            absl::Time now);

}  // namespace quire

#endif  // QUIRE_SERVER_SERVICE_SECURITY_TLS_FILES_H_
