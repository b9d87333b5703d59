// SPDX-License-Identifier: Apache-2.0
#include "client/quire/internal/server_address.h"

#include <cstdint>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"

namespace quire {
namespace {

// Returns the text after the last ": ".
absl::string_view LastPart(absl::string_view text) {
  const size_t colon = text.rfind(": ");
  return colon == absl::string_view::npos ? text : text.substr(colon + 2);
}

constexpr char kVerifyFailed[] =
    "Ssl handshake failed: SSL_ERROR_SSL: error:0A000086:SSL "
    "routines::certificate verify failed";
constexpr char kWrongVersion[] =
    "Ssl handshake failed: SSL_ERROR_SSL: error:0A00010B:SSL routines::wrong "
    "version number";
constexpr char kNotInCertificate[] = " is not in peer certificate";

}  // namespace

bool IsCertificateFault(absl::string_view text) {
  return absl::StrContains(text, kVerifyFailed) ||
         absl::StrContains(text, kNotInCertificate);
}

absl::Status CheckServerAddress(absl::string_view address) {
  for (const absl::string_view scheme :
       {"unix:", "unix-abstract:", "dns:", "ipv4:", "ipv6:", "xds:"}) {
    if (absl::StartsWith(address, scheme) && address.size() > scheme.size()) {
      return absl::OkStatus();
    }
  }
  const size_t colon = address.rfind(':');
  uint32_t port = 0;
  if (colon == absl::string_view::npos || colon == 0 ||
      !absl::SimpleAtoi(address.substr(colon + 1), &port) || port == 0 ||
      port > 65535 || address.find('/') != absl::string_view::npos) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", address,
                     "' is no server address; give HOST:PORT, with a port from "
                     "1 to 65535, or unix:PATH"));
  }
  return absl::OkStatus();
}

std::string PlainConnectionText(absl::string_view text) {
  // "DNS resolution failed for HOST:PORT: C-ares status is ...: REASON"
  absl::string_view rest = text;
  if (absl::ConsumePrefix(&rest, "DNS resolution failed for ") &&
      absl::StrContains(rest, ": ")) {
    return absl::StrCat("no address is known for ",
                        rest.substr(0, rest.find(": ")), ": ", LastPart(rest));
  }
  rest = text;
  // "connections to all backends failing; last error: CODE: ADDRESS: Failed to
  // connect to remote host: REASON"; the first words come from round_robin and
  // differ with another policy.
  if (absl::ConsumePrefix(
          &rest, "connections to all backends failing; last error: ") ||
      absl::ConsumePrefix(&rest,
                          "failed to connect to all addresses; last error: ")) {
    const size_t code_end = rest.find(": ");
    return absl::StrReplaceAll(
        code_end == absl::string_view::npos ? rest : rest.substr(code_end + 2),
        {{"Failed to connect to remote host: ", ""},
         {kVerifyFailed,
          "the server's certificate is not accepted: it has expired, or no "
          "certificate that is trusted (--ca) has signed it"},
         {kWrongVersion,
          "what answers there does not speak TLS; leave out --tls, --ca, "
          "--cert "
          "and --key"},
         {"Socket closed",
          "the server closed the connection at once; does it want TLS (--tls, "
          "--ca), or a certificate that it trusts (--cert, --key)?"},
         {"Failed parsing HTTP/2",
          "what answers there does not speak gRPC; is that the port of a "
          "server's metrics?"},
         {"Peer name ",
          "the server's certificate is not accepted: it is not for the name "},
         {kNotInCertificate, "; --tls-name says which name it must have"},
         {"%5B", "["},
         {"%5D", "]"}});
  }
  // "Received http2 header with status: 404"
  if (absl::ConsumePrefix(&rest, "Received http2 header with status: ")) {
    return absl::StrCat(
        "what answers there is no Quire server, but one for HTTP,"
        " with status ",
        rest);
  }
  return std::string(text);
}

}  // namespace quire
