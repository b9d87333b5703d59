// SPDX-License-Identifier: GPL-3.0-or-later
//
// Groups calls by client, for all resources that are divided among clients.
#ifndef QUIRE_SERVER_SERVICE_LIMITS_CLIENT_NAME_H_
#define QUIRE_SERVER_SERVICE_LIMITS_CLIENT_NAME_H_

#include <string>

namespace quire {

// Returns the client at `peer`, the value of ServerContext::peer():
// "ipv4:ADDRESS:PORT", "ipv6:[ADDRESS]:PORT" with the brackets escaped, or
// "unix:PATH". The port is removed, as a client with ten connections is one
// client. All clients behind one proxy or address translation are one client,
// too.
std::string ClientNameOf(std::string peer);

// Returns the name that `name`, as above, shares its quota with. Routable IPv6
// addresses share by their first 64 bits, as one machine or site has them all;
// other names have a share of their own.
std::string ClientShareOf(std::string name);

}  // namespace quire

#endif  // QUIRE_SERVER_SERVICE_LIMITS_CLIENT_NAME_H_
