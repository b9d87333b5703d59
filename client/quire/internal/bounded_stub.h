// SPDX-License-Identifier: Apache-2.0
//
// The service's methods, whose answers are counted before they are parsed: what
// a server sends must not take many times its size in memory. Internal to the
// client library.
#ifndef QUIRE_CLIENT_QUIRE_INTERNAL_BOUNDED_STUB_H_
#define QUIRE_CLIENT_QUIRE_INTERNAL_BOUNDED_STUB_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "google/protobuf/message.h"
#include "grpcpp/channel.h"
#include "grpcpp/client_context.h"
#include "grpcpp/impl/codegen/proto_utils.h"
#include "grpcpp/impl/codegen/rpc_method.h"
#include "grpcpp/impl/codegen/serialization_traits.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/sync_stream.h"

#include "proto/quire/v1/archive.pb.h"

namespace quire {

// Fields and values that a message of answers may have: some 32 MiB of memory
// besides its text. A server closes batch messages at 512 KiB and pages at a
// mebibyte, and a field has two bytes.
inline constexpr uint64_t kAnswerFieldsMax = uint64_t{1} << 19;

// Where gRPC is to put a message, which must outlive this, and what came of it.
template <typename Message>
struct BoundedMessage {
  Message* message = nullptr;
  // Not OK: a message came that cannot be taken. Errors: Internal, if it is not
  // of its type or has too many fields; ResourceExhausted, without memory.
  absl::Status status = {};
};

// Thread-safe. Errors: as BoundedMessage::status; `message` may then only be
// destroyed.
absl::Status ParseAnswer(const grpc::ByteBuffer& buffer,
                         google::protobuf::Message& message);

// As v1::Archive::Stub, for all that this library calls; unary methods return
// what StatusFromGrpc() makes of their status. Thread-safe.
class BoundedStub {
 public:
  template <typename Message>
  using Reader = std::unique_ptr<grpc::ClientReader<BoundedMessage<Message>>>;
  using Batch = std::unique_ptr<grpc::ClientReaderWriter<
      v1::BatchReadRequest, BoundedMessage<v1::BatchReadResponse>>>;

  // `trace_parent`: as ClientOptions::trace_parent.
  explicit BoundedStub(const std::shared_ptr<grpc::Channel>& channel,
                       std::function<std::string()> trace_parent = nullptr);

  absl::Status ListArchives(grpc::ClientContext* context,
                            const v1::ListArchivesRequest& request,
                            v1::ListArchivesResponse* response) const;
  absl::Status GetArchive(grpc::ClientContext* context,
                          const v1::GetArchiveRequest& request,
                          v1::GetArchiveResponse* response) const;
  absl::Status Read(grpc::ClientContext* context,
                    const v1::ReadRequest& request,
                    v1::ReadResponse* response) const;
  absl::Status ListDocuments(grpc::ClientContext* context,
                             const v1::ListDocumentsRequest& request,
                             v1::ListDocumentsResponse* response) const;
  absl::Status GetSymbolTable(grpc::ClientContext* context,
                              const v1::GetSymbolTableRequest& request,
                              v1::GetSymbolTableResponse* response) const;

  // The caller owns the stream, which must not outlive its context.
  Reader<v1::ReadStreamResponse> ReadStream(
      grpc::ClientContext* context, const v1::ReadRequest& request) const;
  Reader<v1::ScanResponse> Scan(grpc::ClientContext* context,
                                const v1::ScanRequest& request) const;
  Reader<v1::GetDictionaryResponse> GetDictionary(
      grpc::ClientContext* context,
      const v1::GetDictionaryRequest& request) const;
  Batch BatchRead(grpc::ClientContext* context) const;

 private:
  // Puts into `context`, which it returns, what goes with every call.
  grpc::ClientContext* Traced(grpc::ClientContext* context) const;

  const std::shared_ptr<grpc::Channel> channel_;
  const std::function<std::string()> trace_parent_;
  const grpc::internal::RpcMethod list_archives_;
  const grpc::internal::RpcMethod get_archive_;
  const grpc::internal::RpcMethod read_;
  const grpc::internal::RpcMethod list_documents_;
  const grpc::internal::RpcMethod get_symbol_table_;
  const grpc::internal::RpcMethod read_stream_;
  const grpc::internal::RpcMethod scan_;
  const grpc::internal::RpcMethod get_dictionary_;
  const grpc::internal::RpcMethod batch_read_;
};

}  // namespace quire

namespace grpc {

// Always OK: the fault is in `to`, so that it ends the call at once, and is not
// taken for the end of the stream.
template <typename Message>
class SerializationTraits<quire::BoundedMessage<Message>> {
 public:
  static Status Deserialize(ByteBuffer* buffer,
                            quire::BoundedMessage<Message>* to) {
    to->status = quire::ParseAnswer(*buffer, *to->message);
    buffer->Clear();
    return Status::OK;
  }
};

}  // namespace grpc

#endif  // QUIRE_CLIENT_QUIRE_INTERNAL_BOUNDED_STUB_H_
