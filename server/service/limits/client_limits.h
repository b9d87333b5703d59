// SPDX-License-Identifier: GPL-3.0-or-later
//
// Limits of calls that follow from the memory of the server.
#ifndef QUIRE_SERVER_SERVICE_LIMITS_CLIENT_LIMITS_H_
#define QUIRE_SERVER_SERVICE_LIMITS_CLIENT_LIMITS_H_

#include <cstdint>

#include "proto/quire/v1/archive.pb.h"

#include "server/service/limits/memory_plan.h"

namespace quire {

// Returns the limits that clients can ask for. Every answer to a read within
// them fits the memory of one client and the default message size of gRPC's
// clients, in every encoding.
v1::Limits MakeClientLimits(const MemoryPlan& plan);

// Returns the memory, in bytes, of answers that one stream or batch prepares
// before its client takes them. A larger batch item is read alone.
uint64_t StreamWindowBytes(const v1::Limits& limits);

}  // namespace quire

#endif  // QUIRE_SERVER_SERVICE_LIMITS_CLIENT_LIMITS_H_
