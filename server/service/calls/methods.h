// SPDX-License-Identifier: GPL-3.0-or-later
//
// The methods of the service, each in the source file that is named. Those that
// start a call return its reactor, which deletes itself when the call ends.
#ifndef QUIRE_SERVER_SERVICE_CALLS_METHODS_H_
#define QUIRE_SERVER_SERVICE_CALLS_METHODS_H_

#include "absl/status/status.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/server_callback.h"

#include "proto/quire/v1/archive.pb.h"

#include "server/service/calls/call_context.h"

namespace quire {

// --- read_call.cc: one range or document in one message.

// The Read method. The calling thread answers if all blocks are cached and
// encoding is fast; otherwise the thread that decoded the last block answers.
grpc::ServerUnaryReactor* StartReadCall(ServiceCore& core,
                                        grpc::CallbackServerContext& context,
                                        const grpc::ByteBuffer& request,
                                        grpc::ByteBuffer& response);

// --- chunk_stream.cc: long ranges in order.

// The ReadStream and Scan methods. Both read ahead of the client by at most
// their StreamWindow, fetch and decode the chunks of the window in parallel,
// and send them in order. A window has space for at least one block; a wider
// window also means longer messages. A slow client holds one window of memory
// at most.
grpc::ServerWriteReactor<grpc::ByteBuffer>* StartReadStreamCall(
    ServiceCore& core, grpc::CallbackServerContext& context,
    const grpc::ByteBuffer& request);
grpc::ServerWriteReactor<grpc::ByteBuffer>* StartScanCall(
    ServiceCore& core, grpc::CallbackServerContext& context,
    const grpc::ByteBuffer& request);

// --- batch_call.cc: many documents or ranges, in the order of the device.

// The BatchRead method. Items wait ordered by their offset in the archive. One
// circular sweep fetches them as far as the stream's window allows, so the
// device sees ascending addresses in whatever order items arrived (the paper's
// BATCH mode, for a growing backlog).
// Memory: one window of answers and the waiting items. While a client does not
// read answers, the server reads none of its items.
grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* StartBatchCall(
    ServiceCore& core, grpc::CallbackServerContext& context);

// --- list_documents_call.cc: documents of an archive.

// The ListDocuments method. Without fields and a filter the calling thread
// answers from memory. Otherwise a thread of the decode pool chooses the page,
// by the bounds of groups of documents, and reads the fields of its documents
// through the block store, like blocks.
grpc::ServerUnaryReactor* StartListDocumentsCall(
    ServiceCore& core, grpc::CallbackServerContext& context,
    const grpc::ByteBuffer& request, grpc::ByteBuffer& response);

// --- list_captures_call.cc: captures of a crawl by URL.

// The ListCaptures method. A thread of the decode pool walks over the index of
// captures, whose parts it reads through the block store, like blocks.
grpc::ServerUnaryReactor* StartListCapturesCall(
    ServiceCore& core, grpc::CallbackServerContext& context,
    const grpc::ByteBuffer& request, grpc::ByteBuffer& response);

// --- file_calls.cc: deposited files.

// The ReadFile method. Reproduces one piece of the file after the other, each
// on a thread of the decode pool, from text that it reads through the block
// store. Memory: one message, its text, and one member of the file.
grpc::ServerWriteReactor<grpc::ByteBuffer>* StartReadFileCall(
    ServiceCore& core, grpc::CallbackServerContext& context,
    const grpc::ByteBuffer& request);
// As the functions of list_calls.cc.
absl::Status ListFiles(const ServiceCore& core, CallAccess& access,
                       const v1::ListFilesRequest& request,
                       v1::ListFilesResponse& response);

// --- list_calls.cc: lists, descriptions and tables, answered from memory.

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

grpc::ServerWriteReactor<grpc::ByteBuffer>* StartGetDictionaryCall(
    ServiceCore& core, grpc::CallbackServerContext& context,
    const grpc::ByteBuffer& request);

}  // namespace quire

#endif  // QUIRE_SERVER_SERVICE_CALLS_METHODS_H_
