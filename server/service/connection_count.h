// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef QUIRE_SERVER_SERVICE_CONNECTION_COUNT_H_
#define QUIRE_SERVER_SERVICE_CONNECTION_COUNT_H_

#include <cstdint>
#include <optional>
#include <string>

namespace quire {

// Connections that this process has accepted on `address`, HOST:PORT or
// unix:PATH, and that are open; those that have not said anything yet, too.
// gRPC does not tell. Costs three system calls for each open file. Nothing if
// the system does not say which files are open. Thread-safe.
std::optional<uint64_t> CountConnections(const std::string& address);

}  // namespace quire

#endif  // QUIRE_SERVER_SERVICE_CONNECTION_COUNT_H_
