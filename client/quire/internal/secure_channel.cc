// SPDX-License-Identifier: Apache-2.0
#include "client/quire/internal/secure_channel.h"

#include <arpa/inet.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/security/credentials.h"
#include "grpcpp/support/client_interceptor.h"

#include "codecs/base/status_macros.h"

namespace quire {
namespace {

using grpc::experimental::ClientInterceptorFactoryInterface;
using grpc::experimental::ClientRpcInfo;
using grpc::experimental::InterceptionHookPoints;
using grpc::experimental::Interceptor;
using grpc::experimental::InterceptorBatchMethods;

constexpr size_t kFileSizeBytesMax = size_t{1} << 20;
constexpr absl::string_view kBearer = "Bearer ";
constexpr size_t kTokenSizeBytesMax = 1024;

absl::Status Fault(const std::string& path, absl::string_view what) {
  return absl::FailedPreconditionError(absl::StrCat(path, ": ", what));
}

absl::StatusOr<std::string> ReadSmallFile(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::string text;
  if (in) {
    text.resize(kFileSizeBytesMax + 1);
    in.read(text.data(), static_cast<std::streamsize>(text.size()));
    text.resize(static_cast<size_t>(in.gcount()));
  }
  if (in.bad() || (in.fail() && !in.eof())) {
    return Fault(path, absl::StrCat("cannot be read: ",
                                    std::generic_category().message(errno)));
  }
  if (text.size() > kFileSizeBytesMax) {
    return Fault(path, "must be a file of at most 1 MiB, and is larger");
  }
  return text;
}

// gRPC would report only that no connection can be made.
absl::StatusOr<std::string> ReadPem(const std::string& path,
                                    absl::string_view what,
                                    absl::string_view label) {
  if (path.empty()) {
    return std::string();
  }
  QUIRE_ASSIGN_OR_RETURN(std::string text, ReadSmallFile(path));
  const size_t begin = text.find("-----BEGIN ");
  const size_t line_end = text.find('\n', begin);
  if (begin == std::string::npos || line_end == std::string::npos ||
      !absl::StrContains(
          absl::string_view(text).substr(begin, line_end - begin), label) ||
      !absl::StrContains(text, "-----END ")) {
    return Fault(
        path, absl::StrCat("must hold ", what, " in PEM form, and does not"));
  }
  return text;
}

// The value of the header.
absl::StatusOr<std::string> ReadToken(const std::string& path) {
  QUIRE_ASSIGN_OR_RETURN(const std::string text, ReadSmallFile(path));
  const absl::string_view token = absl::StripAsciiWhitespace(text);
  std::string header = absl::StrCat(kBearer, token);
  if (!IsBearerHeader({header.data(), header.size()})) {
    return Fault(path, "must hold a token, ID.SECRET, and nothing else");
  }
  return header;
}

// Puts the token into each call. (gRPC's own call credentials refuse unix
// sockets, and addresses of this machine, without TLS.)
class TokenInterceptor final : public Interceptor {
 public:
  explicit TokenInterceptor(const std::string& header) : header_(header) {}

  void Intercept(InterceptorBatchMethods* methods) override {
    if (methods->QueryInterceptionHookPoint(
            InterceptionHookPoints::PRE_SEND_INITIAL_METADATA)) {
      methods->GetSendInitialMetadata()->insert({"authorization", header_});
    }
    methods->Proceed();
  }

 private:
  const std::string& header_;
};

class TokenFactory final : public ClientInterceptorFactoryInterface {
 public:
  explicit TokenFactory(std::string header) : header_(std::move(header)) {}

  Interceptor* CreateClientInterceptor(ClientRpcInfo* /*info*/) override {
    return new TokenInterceptor(header_);
  }

 private:
  // The channel owns the factory, and outlives its calls.
  const std::string header_;
};

absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> MakeCredentials(
    const ChannelSecurity& security) {
  if (!security.uses_tls()) {
    return grpc::InsecureChannelCredentials();
  }
  if (security.certificate_file.empty() != security.key_file.empty()) {
    return absl::InvalidArgumentError(
        "a client's certificate and its key (--cert, --key) must be given "
        "together");
  }
  grpc::SslCredentialsOptions options;
  QUIRE_ASSIGN_OR_RETURN(
      options.pem_root_certs,
      ReadPem(security.ca_file, "certificates", "CERTIFICATE"));
  QUIRE_ASSIGN_OR_RETURN(
      options.pem_cert_chain,
      ReadPem(security.certificate_file, "a certificate", "CERTIFICATE"));
  QUIRE_ASSIGN_OR_RETURN(
      options.pem_private_key,
      ReadPem(security.key_file, "a private key without a passphrase",
              "PRIVATE KEY"));
  if (absl::StrContains(options.pem_private_key, "ENCRYPTED")) {
    return Fault(security.key_file,
                 "must hold a private key without a passphrase, and has one");
  }
  return grpc::SslCredentials(options);
}

}  // namespace

bool IsLocalAddress(absl::string_view address) {
  if (absl::StartsWith(address, "unix:") ||
      absl::StartsWith(address, "unix-abstract:")) {
    return true;
  }
  // "dns:///" has no name server before its last slash.
  for (const absl::string_view scheme : {"dns:///", "dns:", "ipv4:", "ipv6:"}) {
    if (absl::ConsumePrefix(&address, scheme)) {
      break;
    }
  }
  // Several addresses, or another scheme.
  if (absl::StrContains(address, ',') || absl::StrContains(address, '/')) {
    return false;
  }
  absl::string_view host = address.substr(0, address.rfind(':'));
  if (host == "localhost" || host == "[::1]") {
    return true;
  }
  in_addr parsed{};
  return inet_pton(AF_INET, std::string(host).c_str(), &parsed) == 1 &&
         (ntohl(parsed.s_addr) >> 24) == 127;
}

bool CanCarryToken(const std::string& address,
                   const ChannelSecurity& security) {
  return security.uses_tls() || IsLocalAddress(address);
}

bool IsBearerHeader(absl::string_view header) {
  if (!absl::StartsWithIgnoreCase(header, kBearer)) {
    return false;
  }
  const absl::string_view token = header.substr(kBearer.size());
  return !token.empty() && token.size() <= kTokenSizeBytesMax &&
         std::all_of(token.begin(), token.end(), [](char c) {
           return absl::ascii_isgraph(static_cast<unsigned char>(c));
         });
}

absl::StatusOr<std::shared_ptr<grpc::Channel>> MakeSecureChannel(
    const std::string& address, const ChannelSecurity& security,
    grpc::ChannelArguments arguments) {
  QUIRE_ASSIGN_OR_RETURN(
      const std::shared_ptr<grpc::ChannelCredentials> credentials,
      MakeCredentials(security));
  if (!security.server_name.empty()) {
    arguments.SetSslTargetNameOverride(security.server_name);
  }
  std::vector<std::unique_ptr<ClientInterceptorFactoryInterface>> factories;
  if (!security.token_file.empty()) {
    if (!CanCarryToken(address, security)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "a token would travel to ", address,
          " where all can read it; use TLS (--tls or --ca), a unix socket, or "
          "a server on this machine"));
    }
    QUIRE_ASSIGN_OR_RETURN(std::string header, ReadToken(security.token_file));
    factories.push_back(std::make_unique<TokenFactory>(std::move(header)));
  }
  return grpc::experimental::CreateCustomChannelWithInterceptors(
      address, credentials, arguments, std::move(factories));
}

}  // namespace quire
