// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef QUIRE_SERVER_SERVICE_REFLECTION_REFLECTED_TYPES_H_
#define QUIRE_SERVER_SERVICE_REFLECTION_REFLECTED_TYPES_H_

namespace quire {

// Makes gRPC's reflection describe all that this server speaks: besides our own
// protos the health service that it lists, and the error details that it sends.
// To be called before a server with reflection starts. Thread-safe.
void DescribeStandardTypes();

}  // namespace quire

#endif  // QUIRE_SERVER_SERVICE_REFLECTION_REFLECTED_TYPES_H_
