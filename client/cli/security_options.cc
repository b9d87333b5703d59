// SPDX-License-Identifier: Apache-2.0
#include "client/cli/security_options.h"

#include <sys/stat.h>

#include <string>

#include "absl/strings/str_cat.h"

namespace quire {

void AddSecurityOptions(CLI::App& app, ChannelSecurity& security,
                        bool& allow_readable) {
  app.add_flag("--tls", security.tls,
               "Use TLS with the system's certificates; implied by the next "
               "four options");
  app.add_option("--ca", security.ca_file,
                 "Certificates to trust instead of the system's (PEM)")
      ->type_name("FILE")
      ->envname("QUIRE_CA");
  app.add_option("--cert", security.certificate_file,
                 "Certificate of this client (PEM)")
      ->type_name("FILE")
      ->envname("QUIRE_CERT");
  app.add_option("--key", security.key_file,
                 "Private key of this client (PEM, without a passphrase)")
      ->type_name("FILE")
      ->envname("QUIRE_KEY");
  app.add_option("--tls-name", security.server_name,
                 "Name in the server's certificate (default: host of its "
                 "address)")
      ->type_name("NAME");
  app.add_option("--token-file", security.token_file,
                 "Token from quired token new; sent only over TLS, to a unix "
                 "socket or to this machine")
      ->type_name("FILE")
      ->envname("QUIRE_TOKEN_FILE");
  app.add_flag("--allow-readable-secrets", allow_readable,
               "Accept key and token files that all users can read");
}

absl::Status CheckSecretFiles(const ChannelSecurity& security,
                              bool allow_readable) {
  for (const std::string& path : {security.key_file, security.token_file}) {
    struct stat info {};

    if (!allow_readable && !path.empty() && stat(path.c_str(), &info) == 0 &&
        S_ISREG(info.st_mode) && (info.st_mode & S_IROTH) != 0) {
      return absl::FailedPreconditionError(
          absl::StrCat(path,
                       ": can be read by all users, and a secret must not be: "
                       "chmod o-r, or --allow-readable-secrets"));
    }
  }
  return absl::OkStatus();
}

void AddSecurityEnvironment(Manual& manual) {
  manual.environment.push_back({"QUIRE_CA", "Default of --ca."});
  manual.environment.push_back({"QUIRE_CERT", "Default of --cert."});
  manual.environment.push_back({"QUIRE_KEY", "Default of --key."});
  manual.environment.push_back(
      {"QUIRE_TOKEN_FILE", "Default of --token-file."});
}

}  // namespace quire
