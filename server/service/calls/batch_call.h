// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef QUIRE_SERVER_SERVICE_CALLS_BATCH_CALL_H_
#define QUIRE_SERVER_SERVICE_CALLS_BATCH_CALL_H_

#include "grpcpp/server_context.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/server_callback.h"

#include "server/service/calls/call_context.h"

namespace quire {

// The BatchRead method. Items wait in order of their place in the archive and
// are fetched in one circular sweep over all that wait, as far as the stream's
// window allows, so that the device sees ascending addresses whatever order
// they came in (the paper's BATCH mode, for a backlog that keeps growing).
// Memory: one window of answers and the waiting items; a client that does not
// read is not read from either.
// Deletes itself when the call is over.
grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* StartBatchCall(
    ServiceCore& core, grpc::CallbackServerContext& context);

}  // namespace quire

#endif  // QUIRE_SERVER_SERVICE_CALLS_BATCH_CALL_H_
