// SPDX-License-Identifier: GPL-3.0-or-later
//
// Which calls belong to one client, for all that is divided among clients.
#ifndef QUIRE_SERVER_SERVICE_LIMITS_CLIENT_NAME_H_
#define QUIRE_SERVER_SERVICE_LIMITS_CLIENT_NAME_H_

#include <string>

namespace quire {

// The client behind `peer`, which is what ServerContext::peer() says:
// "ipv4:ADDRESS:PORT", "ipv6:[ADDRESS]:PORT" with the brackets escaped, or
// "unix:PATH". The port is left out, because a client that opens ten
// connections is still one client. So are all clients behind one proxy or
// address translation.
std::string ClientNameOf(std::string peer);

// Whose share of what is divided among clients `name`, as above, counts for:
// that of all addresses with the same first 64 bits where it is one of IPv6
// that can be routed, for one machine or site has them all; else its own.
std::string ClientShareOf(std::string name);

}  // namespace quire

#endif  // QUIRE_SERVER_SERVICE_LIMITS_CLIENT_NAME_H_
