// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef QUIRE_SERVER_SERVICE_CALLS_READ_CALL_H_
#define QUIRE_SERVER_SERVICE_CALLS_READ_CALL_H_

#include "grpcpp/server_context.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/server_callback.h"

#include "server/service/calls/call_context.h"

namespace quire {

// The Read method: one range or document in one message. A range whose blocks
// are all cached is answered on the calling thread, unless it takes long to
// encode; otherwise the thread that decoded the last block answers. Deletes
// itself when the call is over.
grpc::ServerUnaryReactor* StartReadCall(ServiceCore& core,
                                        grpc::CallbackServerContext& context,
                                        const grpc::ByteBuffer& request,
                                        grpc::ByteBuffer& response);

}  // namespace quire

#endif  // QUIRE_SERVER_SERVICE_CALLS_READ_CALL_H_
