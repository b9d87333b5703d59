// SPDX-License-Identifier: GPL-3.0-or-later
//
// The methods answered from memory: lists, descriptions, dictionaries.
#ifndef QUIRE_SERVER_SERVICE_CALLS_LIST_CALLS_H_
#define QUIRE_SERVER_SERVICE_CALLS_LIST_CALLS_H_

#include "absl/status/status.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/server_callback.h"

#include "proto/quire/v1/archive.pb.h"

#include "server/service/calls/call_context.h"

namespace quire {

// Each fills its response or returns the error to be sent; see the proto. Each
// takes at most the time of one page of results.
absl::Status ListArchives(const ServiceCore& core, CallAccess& access,
                          const v1::ListArchivesRequest& request,
                          v1::ListArchivesResponse& response);
absl::Status GetArchive(const ServiceCore& core, CallAccess& access,
                        const v1::GetArchiveRequest& request,
                        v1::GetArchiveResponse& response);
absl::Status GetSymbolTable(const ServiceCore& core, CallAccess& access,
                            const v1::GetSymbolTableRequest& request,
                            v1::GetSymbolTableResponse& response);
absl::Status ListDocuments(const ServiceCore& core, CallAccess& access,
                           const v1::ListDocumentsRequest& request,
                           v1::ListDocumentsResponse& response);

// Deletes itself when the call ends.
grpc::ServerWriteReactor<grpc::ByteBuffer>* StartGetDictionaryCall(
    ServiceCore& core, grpc::CallbackServerContext& context,
    const grpc::ByteBuffer& request);

}  // namespace quire

#endif  // QUIRE_SERVER_SERVICE_CALLS_LIST_CALLS_H_
