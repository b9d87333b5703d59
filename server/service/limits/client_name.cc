// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/service/limits/client_name.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

namespace quire {

std::string ClientNameOf(std::string peer) {
  const size_t colon = peer.rfind(':');
  const absl::string_view address = absl::string_view(peer).substr(0, colon);
  // An IPv6 address contains colons, within brackets.
  const bool has_port = absl::StartsWith(address, "ipv4:") ||
                        (absl::StartsWith(address, "ipv6:") &&
                         (absl::EndsWith(address, "]") ||
                          absl::EndsWithIgnoreCase(address, "%5D")));
  if (has_port) {
    peer.resize(colon);
  }
  return peer;
}

std::string ClientShareOf(std::string name) {
  absl::string_view text = name;
  if (!absl::ConsumePrefix(&text, "ipv6:") ||
      !(absl::ConsumePrefix(&text, "[") || absl::ConsumePrefix(&text, "%5B"))) {
    return name;
  }
  if (!absl::ConsumeSuffix(&text, "]")) {
    absl::ConsumeSuffix(&text, "%5D");
  }
  in6_addr address{};
  if (inet_pton(AF_INET6, std::string(text).c_str(), &address) != 1 ||
      IN6_IS_ADDR_LOOPBACK(&address) || IN6_IS_ADDR_LINKLOCAL(&address) ||
      IN6_IS_ADDR_V4MAPPED(&address)) {
    return name;
  }
  std::fill(std::begin(address.s6_addr) + 8, std::end(address.s6_addr),
            uint8_t{0});
  char prefix[INET6_ADDRSTRLEN] = "";
  inet_ntop(AF_INET6, &address, prefix, sizeof(prefix));
  return absl::StrCat("ipv6:[", prefix, "]/64");
}

}  // namespace quire
