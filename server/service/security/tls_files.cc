// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/service/security/tls_files.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <sys/stat.h>

#include <ctime>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"

#include "codecs/base/status_macros.h"
#include "server/archive/files/small_file.h"

namespace quire {
namespace {

// Four times a bundle of all public authorities.
constexpr size_t kFileSizeBytesMax = size_t{1} << 20;

struct OpenSslDelete {
  void operator()(BIO* bio) const { BIO_free(bio); }

  void operator()(X509* certificate) const { X509_free(certificate); }

  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
};

template <typename T>
using OpenSslPtr = std::unique_ptr<T, OpenSslDelete>;

absl::Status Fault(const std::string& path, absl::string_view what) {
  return absl::FailedPreconditionError(absl::StrCat(path, ": ", what));
}

OpenSslPtr<BIO> Open(const std::string& pem) {
  return OpenSslPtr<BIO>(
      BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
}

// Never prompts at the terminal.
int NoPassphrase(char* /*buffer*/, int /*size*/, int /*writing*/,
                 void* /*data*/) {
  return -1;
}

// Returns the first certificate; all others must be complete.
absl::StatusOr<OpenSslPtr<X509>> ParseCertificates(const std::string& path,
                                                   const std::string& pem) {
  const OpenSslPtr<BIO> bio = Open(pem);
  ERR_clear_error();
  OpenSslPtr<X509> first(
      PEM_read_bio_X509(bio.get(), nullptr, NoPassphrase, nullptr));
  if (first == nullptr) {
    ERR_clear_error();
    return Fault(path, "must hold a certificate in PEM form, and has none");
  }
  while (OpenSslPtr<X509> next{
      PEM_read_bio_X509(bio.get(), nullptr, NoPassphrase, nullptr)}) {
  }
  // At the end of the file this is the reason.
  const auto error = ERR_peek_last_error();
  ERR_clear_error();
  if (ERR_GET_REASON(error) != PEM_R_NO_START_LINE) {
    return Fault(path, "is malformed after its first certificate");
  }
  return first;
}

absl::Time TimeOf(const ASN1_TIME* time) {
  std::tm parts{};
  return ASN1_TIME_to_tm(time, &parts) == 1 ? absl::FromTimeT(timegm(&parts))
                                            : absl::InfinitePast();
}

std::string Date(absl::Time time) {
  return absl::FormatTime("%Y-%m-%d %H:%M:%S UTC", time, absl::UTCTimeZone());
}

}  // namespace

absl::StatusOr<TlsIdentity> ReadTlsIdentity(const TlsFiles& files,
                                            absl::Time now) {
  TlsIdentity identity;
  QUIRE_ASSIGN_OR_RETURN(identity.certificate_pem,
                         ReadSmallFile(files.certificate, kFileSizeBytesMax));
  QUIRE_ASSIGN_OR_RETURN(identity.key_pem,
                         ReadSmallFile(files.key, kFileSizeBytesMax));
  QUIRE_ASSIGN_OR_RETURN(
      const OpenSslPtr<X509> certificate,
      ParseCertificates(files.certificate, identity.certificate_pem));
  const OpenSslPtr<BIO> key_bio = Open(identity.key_pem);
  const OpenSslPtr<EVP_PKEY> key(
      PEM_read_bio_PrivateKey(key_bio.get(), nullptr, NoPassphrase, nullptr));
  ERR_clear_error();
  if (key == nullptr) {
    return Fault(files.key,
                 "must hold a private key in PEM form, without a passphrase, "
                 "and has none");
  }
  if (X509_check_private_key(certificate.get(), key.get()) != 1) {
    ERR_clear_error();
    return Fault(files.key, absl::StrCat("is not the key of the certificate ",
                                         files.certificate));
  }

  struct stat info {};

  if (!files.allow_readable_secrets && stat(files.key.c_str(), &info) == 0 &&
      (info.st_mode & S_IROTH) != 0) {
    return Fault(files.key,
                 "can be read by all users, and a private key must not be: "
                 "chmod o-r, or --allow-readable-secrets");
  }
  identity.expiry = TimeOf(X509_get0_notAfter(certificate.get()));
  if (identity.expiry <= now) {
    return Fault(
        files.certificate,
        absl::StrCat("expired at ", Date(identity.expiry), "; replace it"));
  }
  const absl::Time begin = TimeOf(X509_get0_notBefore(certificate.get()));
  if (now < begin) {
    return Fault(files.certificate,
                 absl::StrCat("is valid only from ", Date(begin),
                              " on; is the clock right?"));
  }
  if (!files.client_ca.empty()) {
    QUIRE_ASSIGN_OR_RETURN(identity.client_ca_pem,
                           ReadSmallFile(files.client_ca, kFileSizeBytesMax));
    QUIRE_RETURN_IF_ERROR(
        ParseCertificates(files.client_ca, identity.client_ca_pem).status());
  }
  return identity;
}

}  // namespace quire
