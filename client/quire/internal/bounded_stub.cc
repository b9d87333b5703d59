// SPDX-License-Identifier: Apache-2.0
#include "client/quire/internal/bounded_stub.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "grpcpp/impl/codegen/client_unary_call.h"
#include "grpcpp/support/proto_buffer_reader.h"

#include "proto/message_bounds.h"

#include "client/quire/client_status.h"
#include "codecs/base/memory_guard.h"
#include "codecs/base/trace_parent.h"

namespace quire {
namespace {

using grpc::internal::RpcMethod;

// A field takes two bytes at least, so shorter messages need no counting.
constexpr uint64_t kCountedSizeBytesMin = 2 * kAnswerFieldsMax;

absl::Status CheckAnswer(const grpc::ByteBuffer& buffer,
                         const google::protobuf::Descriptor& type) {
  if (buffer.Length() < kCountedSizeBytesMin) {
    return absl::OkStatus();
  }
  grpc::ByteBuffer readable(buffer);
  grpc::ProtoBufferReader reader(&readable);
  if (reader.status().ok() &&
      CheckBounds(reader, {.fields_max = kAnswerFieldsMax}, type) ==
          BoundsCheck::kTooManyFields) {
    return absl::InternalError(
        absl::StrCat("the server sent a message of more than ",
                     kAnswerFieldsMax, " fields, more than any answer needs"));
  }
  return absl::OkStatus();
}

template <typename Request, typename Response>
absl::Status Call(grpc::Channel* channel, const RpcMethod& method,
                  grpc::ClientContext* context, const Request& request,
                  Response* response) {
  BoundedMessage<Response> answer{response};
  absl::Status status = StatusFromGrpc(
      grpc::internal::BlockingUnaryCall<Request, BoundedMessage<Response>,
                                        grpc::protobuf::MessageLite,
                                        BoundedMessage<Response>>(
          channel, method, context, request, &answer));
  status.Update(answer.status);
  return status;
}

template <typename Response, typename Request>
BoundedStub::Reader<Response> Stream(grpc::Channel* channel,
                                     const RpcMethod& method,
                                     grpc::ClientContext* context,
                                     const Request& request) {
  return BoundedStub::Reader<Response>(
      grpc::internal::ClientReaderFactory<BoundedMessage<Response>>::Create(
          channel, method, context, request));
}

}  // namespace

absl::Status ParseAnswer(const grpc::ByteBuffer& buffer,
                         google::protobuf::Message& message) {
  // gRPC must see no exception on its way.
  return OrNoMemory("receive an answer", [&]() -> absl::Status {
    absl::Status checked = CheckAnswer(buffer, *message.GetDescriptor());
    if (!checked.ok()) {
      return checked;
    }
    grpc::ByteBuffer readable(buffer);
    grpc::ProtoBufferReader reader(&readable);
    return reader.status().ok() && message.ParseFromZeroCopyStream(&reader)
               ? absl::OkStatus()
               : absl::InternalError(
                     "the server sent bytes that are not a message of its "
                     "method's type");
  });
}

BoundedStub::BoundedStub(const std::shared_ptr<grpc::Channel>& channel,
                         std::function<std::string()> trace_parent)
    : channel_(channel),
      trace_parent_(std::move(trace_parent)),
      list_archives_("/quire.v1.Archive/ListArchives", RpcMethod::NORMAL_RPC,
                     channel),
      get_archive_("/quire.v1.Archive/GetArchive", RpcMethod::NORMAL_RPC,
                   channel),
      read_("/quire.v1.Archive/Read", RpcMethod::NORMAL_RPC, channel),
      list_documents_("/quire.v1.Archive/ListDocuments", RpcMethod::NORMAL_RPC,
                      channel),
      get_symbol_table_("/quire.v1.Archive/GetSymbolTable",
                        RpcMethod::NORMAL_RPC, channel),
      read_stream_("/quire.v1.Archive/ReadStream", RpcMethod::SERVER_STREAMING,
                   channel),
      scan_("/quire.v1.Archive/Scan", RpcMethod::SERVER_STREAMING, channel),
      get_dictionary_("/quire.v1.Archive/GetDictionary",
                      RpcMethod::SERVER_STREAMING, channel),
      batch_read_("/quire.v1.Archive/BatchRead", RpcMethod::BIDI_STREAMING,
                  channel) {}

grpc::ClientContext* BoundedStub::Traced(grpc::ClientContext* context) const {
  if (trace_parent_ != nullptr) {
    const std::string header = trace_parent_();
    if (IsTraceParent({header.data(), header.size()})) {
      context->AddMetadata("traceparent", header);
    }
  }
  return context;
}

absl::Status BoundedStub::ListArchives(
    grpc::ClientContext* context, const v1::ListArchivesRequest& request,
    v1::ListArchivesResponse* response) const {
  return Call(channel_.get(), list_archives_, Traced(context), request,
              response);
}

absl::Status BoundedStub::GetArchive(grpc::ClientContext* context,
                                     const v1::GetArchiveRequest& request,
                                     v1::GetArchiveResponse* response) const {
  return Call(channel_.get(), get_archive_, Traced(context), request, response);
}

absl::Status BoundedStub::Read(grpc::ClientContext* context,
                               const v1::ReadRequest& request,
                               v1::ReadResponse* response) const {
  return Call(channel_.get(), read_, Traced(context), request, response);
}

absl::Status BoundedStub::ListDocuments(
    grpc::ClientContext* context, const v1::ListDocumentsRequest& request,
    v1::ListDocumentsResponse* response) const {
  return Call(channel_.get(), list_documents_, Traced(context), request,
              response);
}

absl::Status BoundedStub::GetSymbolTable(
    grpc::ClientContext* context, const v1::GetSymbolTableRequest& request,
    v1::GetSymbolTableResponse* response) const {
  return Call(channel_.get(), get_symbol_table_, Traced(context), request,
              response);
}

BoundedStub::Reader<v1::ReadStreamResponse> BoundedStub::ReadStream(
    grpc::ClientContext* context, const v1::ReadRequest& request) const {
  return Stream<v1::ReadStreamResponse>(channel_.get(), read_stream_,
                                        Traced(context), request);
}

BoundedStub::Reader<v1::ScanResponse> BoundedStub::Scan(
    grpc::ClientContext* context, const v1::ScanRequest& request) const {
  return Stream<v1::ScanResponse>(channel_.get(), scan_, Traced(context),
                                  request);
}

BoundedStub::Reader<v1::GetDictionaryResponse> BoundedStub::GetDictionary(
    grpc::ClientContext* context,
    const v1::GetDictionaryRequest& request) const {
  return Stream<v1::GetDictionaryResponse>(channel_.get(), get_dictionary_,
                                           Traced(context), request);
}

BoundedStub::Batch BoundedStub::BatchRead(grpc::ClientContext* context) const {
  return Batch(grpc::internal::ClientReaderWriterFactory<
               v1::BatchReadRequest,
               BoundedMessage<v1::BatchReadResponse>>::Create(channel_.get(),
                                                              batch_read_,
                                                              Traced(context)));
}

}  // namespace quire
