// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/service/security/tls_certificates.h"

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <sys/stat.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "codecs/base/mutex.h"
#include "testing/base/status_matchers.h"

namespace quire {
namespace {

using ::testing::HasSubstr;

// Writes a key and a self-signed certificate.
void WriteIdentity(const TlsFiles& files) {
  EVP_PKEY* const key = EVP_EC_gen("P-256");
  ASSERT_NE(key, nullptr);
  X509* const certificate = X509_new();
  X509_gmtime_adj(X509_getm_notBefore(certificate), -60);
  X509_gmtime_adj(X509_getm_notAfter(certificate), 24 * 3600);
  X509_set_pubkey(certificate, key);
  ASSERT_GT(X509_sign(certificate, key, EVP_sha256()), 0);
  std::FILE* out = std::fopen(files.certificate.c_str(), "w");
  ASSERT_NE(out, nullptr);
  EXPECT_EQ(PEM_write_X509(out, certificate), 1);
  EXPECT_EQ(std::fclose(out), 0);
  out = std::fopen(files.key.c_str(), "w");
  ASSERT_NE(out, nullptr);
  EXPECT_EQ(
      PEM_write_PrivateKey(out, key, nullptr, nullptr, 0, nullptr, nullptr), 1);
  EXPECT_EQ(std::fclose(out), 0);
  EXPECT_EQ(chmod(files.key.c_str(), 0600), 0);
  X509_free(certificate);
  EVP_PKEY_free(key);
}

class TlsCertificatesTest : public ::testing::Test {
 protected:
  TlsCertificatesTest() {
    std::string pattern =
        (std::filesystem::temp_directory_path() / "quire_test_XXXXXX").string();
    directory_ = mkdtemp(pattern.data());
    files_.certificate = directory_ + "/certificate";
    files_.key = directory_ + "/key";
    WriteIdentity(files_);
  }

  ~TlsCertificatesTest() override { std::filesystem::remove_all(directory_); }

  std::string directory_;
  TlsFiles files_;
};

TEST_F(TlsCertificatesTest, SaysAFaultOnceEachTimeItComes) {
  // Declared first: the watcher may report until it is destroyed.
  Mutex mutex;
  CondVar changed;
  std::vector<std::string> said;
  QUIRE_ASSERT_OK_AND_ASSIGN(
      const std::unique_ptr<TlsCertificates> certificates,
      TlsCertificates::Open(files_, ClientCertificates::kOptional));
  QUIRE_ASSERT_OK(certificates->Watch(absl::Milliseconds(1),
                                      [&](LogLevel, const std::string& line) {
                                        MutexLock lock(&mutex);
                                        said.push_back(line);
                                        changed.NotifyAll();
                                      }));
  const auto await_lines = [&](size_t count) {
    MutexLock lock(&mutex);
    while (said.size() < count) {
      changed.Wait(&mutex);
    }
  };
  const std::string away = files_.key + ".away";
  std::filesystem::rename(files_.key, away);
  await_lines(1);
  // The error stays the same until the last file is in place. New files, so
  // that the repair is reported.
  TlsFiles fresh;
  fresh.certificate = directory_ + "/new-certificate";
  fresh.key = directory_ + "/new-key";
  WriteIdentity(fresh);
  std::filesystem::rename(fresh.certificate, files_.certificate);
  std::filesystem::rename(fresh.key, files_.key);
  {
    MutexLock lock(&mutex);
    while (!absl::StrContains(said.back(), "new connections get")) {
      changed.Wait(&mutex);
    }
    said.clear();
  }
  std::filesystem::rename(files_.key, away);
  await_lines(1);
  MutexLock lock(&mutex);
  EXPECT_THAT(said.front(), HasSubstr("cannot be read"));
}

TEST_F(TlsCertificatesTest, RefusesAKeyThatAllUsersCanRead) {
  ASSERT_EQ(chmod(files_.key.c_str(), 0640), 0);
  QUIRE_EXPECT_OK(ReadTlsIdentity(files_, absl::Now()));
  ASSERT_EQ(chmod(files_.key.c_str(), 0644), 0);
  EXPECT_THAT(ReadTlsIdentity(files_, absl::Now()),
              FailsWith(absl::StatusCode::kFailedPrecondition,
                        HasSubstr("can be read by all users")));
  files_.allow_readable_secrets = true;
  QUIRE_EXPECT_OK(ReadTlsIdentity(files_, absl::Now()));
}

}  // namespace
}  // namespace quire
