// SPDX-License-Identifier: GPL-3.0-or-later
//
// Long ranges in order: the ReadStream and Scan methods.
#ifndef QUIRE_SERVER_SERVICE_CALLS_CHUNK_STREAM_H_
#define QUIRE_SERVER_SERVICE_CALLS_CHUNK_STREAM_H_

#include "grpcpp/server_context.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/server_callback.h"

#include "server/service/calls/call_context.h"

namespace quire {

// Both read ahead of the client by at most their StreamWindow, fetch and decode
// the chunks of the window in parallel, and send them in order. A window has
// space for at least one block; a wider window also means longer messages. A
// slow client holds one window of memory at most.
// They delete themselves when the call ends.
grpc::ServerWriteReactor<grpc::ByteBuffer>* StartReadStreamCall(
    ServiceCore& core, grpc::CallbackServerContext& context,
    const grpc::ByteBuffer& request);
grpc::ServerWriteReactor<grpc::ByteBuffer>* StartScanCall(
    ServiceCore& core, grpc::CallbackServerContext& context,
    const grpc::ByteBuffer& request);

}  // namespace quire

#endif  // QUIRE_SERVER_SERVICE_CALLS_CHUNK_STREAM_H_
