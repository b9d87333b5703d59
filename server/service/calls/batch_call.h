// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef QUIRE_SERVER_SERVICE_CALLS_BATCH_CALL_H_
#define QUIRE_SERVER_SERVICE_CALLS_BATCH_CALL_H_

#include "grpcpp/server_context.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/server_callback.h"

#include "server/service/calls/call_context.h"

namespace quire {

// The BatchRead method. Items wait ordered by their offset in the archive. One
// circular sweep fetches them as far as the stream's window allows, so the
// device sees ascending addresses in whatever order items arrived (the paper's
// BATCH mode, for a growing backlog).
// Memory: one window of answers and the waiting items. While a client does not
// read answers, the server reads none of its items.
// Deletes itself when the call ends.
grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* StartBatchCall(
    ServiceCore& core, grpc::CallbackServerContext& context);

}  // namespace quire

#endif  // QUIRE_SERVER_SERVICE_CALLS_BATCH_CALL_H_
