// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef QUIRE_SERVER_SERVICE_CALLS_READ_CALL_H_
#define QUIRE_SERVER_SERVICE_CALLS_READ_CALL_H_

#include "grpcpp/server_context.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/server_callback.h"

#include "server/service/calls/call_context.h"

namespace quire {

// The Read method: one range or document in one message. The calling thread
// answers if all blocks are cached and encoding is fast; otherwise the thread
// that decoded the last block answers. Deletes itself when the call ends.
grpc::ServerUnaryReactor* StartReadCall(ServiceCore& core,
                                        grpc::CallbackServerContext& context,
                                        const grpc::ByteBuffer& request,
                                        grpc::ByteBuffer& response);

}  // namespace quire

#endif  // QUIRE_SERVER_SERVICE_CALLS_READ_CALL_H_
