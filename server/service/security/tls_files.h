// SPDX-License-Identifier: GPL-3.0-or-later
//
// Files of a server's certificate: reading and checking.
#ifndef QUIRE_SERVER_SERVICE_SECURITY_TLS_FILES_H_
#define QUIRE_SERVER_SERVICE_SECURITY_TLS_FILES_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace quire {

// Paths of PEM files. `client_ca` may be empty: then clients need no
// certificate. All empty: no TLS.
struct TlsFiles {
  // The server's certificate, then the intermediate ones up to the root.
  std::string certificate;
  // Its private key, without a passphrase.
  std::string key;
  // Issuer of client certificates.
  std::string client_ca;

  // Accept a key that all users can read.
  bool allow_readable_secrets = false;

  bool is_set() const { return !certificate.empty(); }
};

// Contents of the files. The key matches the certificate.
struct TlsIdentity {
  std::string certificate_pem;
  std::string key_pem;
  std::string client_ca_pem;
  absl::Time expiry;

  // Compares contents.
  bool operator==(const TlsIdentity& other) const = default;
};

// Reads the files. Detects a half-written file, and a key and certificate of
// which only one was replaced. Blocks on I/O. Thread-safe.
// Errors: FailedPrecondition  a file cannot be read, is over 1 MiB, or has the
//                             wrong contents; key and certificate do not match;
//                             the certificate is not valid at `now`; all users
//                             can read the key. Names the file.
absl::StatusOr<TlsIdentity> ReadTlsIdentity(const TlsFiles& files,
                                            absl::Time now);

}  // namespace quire

#endif  // QUIRE_SERVER_SERVICE_SECURITY_TLS_FILES_H_
