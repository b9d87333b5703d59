// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/service/limits/client_name.h"

#include <cstddef>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"

namespace quire {

std::string ClientNameOf(std::string peer) {
  const size_t colon = peer.rfind(':');
  const absl::string_view address = absl::string_view(peer).substr(0, colon);
  // An IPv6 address has colons of its own, within brackets.
  const bool has_port = absl::StartsWith(address, "ipv4:") ||
                        (absl::StartsWith(address, "ipv6:") &&
                         (absl::EndsWith(address, "]") ||
                          absl::EndsWithIgnoreCase(address, "%5D")));
  if (has_port) {
    peer.resize(colon);
  }
  return peer;
}

}  // namespace quire
