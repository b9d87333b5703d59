// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/service/security/tls_certificates.h"

#include <pthread.h>

#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"

#include "codecs/base/status_macros.h"

#include "grpc/grpc.h"
#include "grpc/grpc_security.h"

namespace quire {
namespace {

// gRPC calls this on each new connection.
grpc_ssl_certificate_config_reload_status Fetch(
    void* certificates, grpc_ssl_server_certificate_config** config) {
  const std::optional<TlsIdentity> identity =
      static_cast<TlsCertificates*>(certificates)->TakeNew();
  if (!identity.has_value()) {
    return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_UNCHANGED;
  }
  const grpc_ssl_pem_key_cert_pair pair = {identity->key_pem.c_str(),
                                           identity->certificate_pem.c_str()};
  // gRPC requires some, even if clients need no certificate.
  const std::string& client_ca = identity->client_ca_pem.empty()
                                     ? identity->certificate_pem
                                     : identity->client_ca_pem;
  *config =
      grpc_ssl_server_certificate_config_create(client_ca.c_str(), &pair, 1);
  return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_NEW;
}

// Credentials with a certificate callback, which gRPC's C++ classes lack.
class ReloadingCredentials final : public grpc::ServerCredentials {
 public:
  explicit ReloadingCredentials(TlsCertificates& certificates)
      : certificates_(certificates) {}

  // Calls are authenticated on arrival, also on unix sockets.
  void SetAuthMetadataProcessor(
      const std::shared_ptr<grpc::AuthMetadataProcessor>& /*processor*/)
      override {}

 private:
  int AddPortToServer(const std::string& address,
                      grpc_server* server) override {
    const grpc_ssl_client_certificate_request_type request =
        !certificates_.asks_clients() ? GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE
        : certificates_.client_certificates() == ClientCertificates::kRequired
            ? GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY
            : GRPC_SSL_REQUEST_CLIENT_CERTIFICATE_AND_VERIFY;
    grpc_server_credentials* credentials =
        grpc_ssl_server_credentials_create_with_options(
            grpc_ssl_server_credentials_create_options_using_config_fetcher(
                request, Fetch, &certificates_));
    const int port =
        grpc_server_add_http2_port(server, address.c_str(), credentials);
    grpc_server_credentials_release(credentials);
    return port;
  }

  TlsCertificates& certificates_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<TlsCertificates>> TlsCertificates::Open(
    const TlsFiles& files, ClientCertificates client_certificates) {
  QUIRE_ASSIGN_OR_RETURN(TlsIdentity identity,
                         ReadTlsIdentity(files, absl::Now()));
  return std::unique_ptr<TlsCertificates>(
      new TlsCertificates(files, client_certificates, std::move(identity)));
}

TlsCertificates::TlsCertificates(TlsFiles files,
                                 ClientCertificates client_certificates,
                                 TlsIdentity identity)
    : files_(std::move(files)),
      client_certificates_(client_certificates),
      identity_(std::move(identity)) {}

TlsCertificates::~TlsCertificates() {
  {
    MutexLock lock(&mutex_);
    stop_ = true;
  }
  stopped_.NotifyAll();
  if (thread_.joinable()) {
    thread_.join();
  }
}

absl::Status TlsCertificates::Watch(absl::Duration interval, LogSink log) {
  try {
    thread_ = std::thread([this, interval, log = std::move(log)] {
      WatchUntilStopped(interval, log);
    });
  } catch (const std::system_error& error) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "cannot start a thread to watch certificates with: ", error.what()));
  }
  return absl::OkStatus();
}

void TlsCertificates::WatchUntilStopped(absl::Duration interval,
                                        const LogSink& log) {
  pthread_setname_np(pthread_self(), "quire-certs");
  // An error is reported once, not at each check.
  std::string last_fault;
  while (true) {
    {
      MutexLock lock(&mutex_);
      if (!stop_) {
        stopped_.WaitFor(&mutex_, absl::ToChronoNanoseconds(interval));
      }
      if (stop_) {
        return;
      }
    }
    const absl::StatusOr<std::string> outcome = Check();
    std::string fault =
        outcome.ok() ? "" : std::string(outcome.status().message());
    if (!fault.empty() && fault != last_fault) {
      log(LogLevel::kWarning,
          absl::StrCat("the certificate stays unchanged: ", fault));
    } else if (outcome.ok() && !outcome->empty()) {
      log(LogLevel::kInfo, *outcome);
    }
    last_fault = std::move(fault);
  }
}

absl::StatusOr<std::string> TlsCertificates::Check() {
  absl::StatusOr<TlsIdentity> fresh = ReadTlsIdentity(files_, absl::Now());
  MutexLock lock(&mutex_);
  is_good_ = fresh.ok();
  QUIRE_RETURN_IF_ERROR(fresh.status());
  if (*fresh == identity_) {
    return "";
  }
  identity_ = *std::move(fresh);
  is_taken_ = false;
  return absl::StrCat("new connections get the certificate that expires at ",
                      absl::FormatTime("%Y-%m-%d %H:%M:%S UTC",
                                       identity_.expiry, absl::UTCTimeZone()));
}

std::shared_ptr<grpc::ServerCredentials> TlsCertificates::Credentials() {
  return std::make_shared<ReloadingCredentials>(*this);
}

absl::Time TlsCertificates::expiry() const {
  MutexLock lock(&mutex_);
  return identity_.expiry;
}

bool TlsCertificates::is_good() const {
  MutexLock lock(&mutex_);
  return is_good_;
}

std::optional<TlsIdentity> TlsCertificates::TakeNew() {
  MutexLock lock(&mutex_);
  if (is_taken_) {
    return std::nullopt;
  }
  is_taken_ = true;
  return identity_;
}

}  // namespace quire
