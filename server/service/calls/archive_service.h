// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef QUIRE_SERVER_SERVICE_CALLS_ARCHIVE_SERVICE_H_
#define QUIRE_SERVER_SERVICE_CALLS_ARCHIVE_SERVICE_H_

#include <memory>

#include "grpcpp/impl/codegen/service_type.h"

#include "server/service/calls/call_context.h"

namespace quire {

// Returns quire.v1.Archive over `core`, which must outlive it, for registration
// with a grpc::ServerBuilder. The methods that carry text are raw: they take
// and return serialised messages, so that decoded blocks reach the wire without
// a copy.
std::unique_ptr<grpc::Service> MakeArchiveService(ServiceCore& core);

}  // namespace quire

#endif  // QUIRE_SERVER_SERVICE_CALLS_ARCHIVE_SERVICE_H_
