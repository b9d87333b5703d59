// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef QUIRE_SERVER_SERVICE_REFLECTION_REFLECTED_TYPES_H_
#define QUIRE_SERVER_SERVICE_REFLECTION_REFLECTED_TYPES_H_

namespace quire {

// Makes gRPC's reflection describe everything that this server speaks: our own
// protos, the health service and the error details. Call before a server with
// reflection starts. Thread-safe.
void DescribeStandardTypes();

}  // namespace quire

#endif  // QUIRE_SERVER_SERVICE_REFLECTION_REFLECTED_TYPES_H_
