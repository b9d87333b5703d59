// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/service/archive_service.h"

#include <utility>

#include "proto/quire/v1/archive.grpc.pb.h"

#include "server/service/batch_call.h"
#include "server/service/chunk_stream.h"
#include "server/service/list_calls.h"
#include "server/service/read_call.h"
#include "server/service/service_error.h"

namespace quire {
namespace {

using RawMethods = v1::Archive::WithRawCallbackMethod_Read<
    v1::Archive::WithRawCallbackMethod_ReadStream<
        v1::Archive::WithRawCallbackMethod_BatchRead<
            v1::Archive::WithRawCallbackMethod_Scan<v1::Archive::Service>>>>;
using AllMethods = v1::Archive::WithCallbackMethod_ListArchives<
    v1::Archive::WithCallbackMethod_GetArchive<
        v1::Archive::WithCallbackMethod_ListDocuments<
            v1::Archive::WithCallbackMethod_GetDictionary<
                v1::Archive::WithCallbackMethod_GetSymbolTable<RawMethods>>>>>;

// A call that is answered at once, from RAM.
class ImmediateCall : public grpc::ServerUnaryReactor {
 public:
  ImmediateCall(ServiceCore& core, Method method,
                grpc::CallbackServerContext& context)
      : booking_(core, method, context) {}

  // Counted until gRPC has let go of the answer.
  void Hold(Admission::Ticket ticket) { ticket_ = std::move(ticket); }

  void End(const absl::Status& status) {
    const grpc::Status outgoing = ToGrpcStatus(status);
    booking_.Ended(outgoing.error_code());
    booking_.WaitForClient();
    Finish(outgoing);
  }

  void OnDone() override { delete this; }

 private:
  CallBooking booking_;
  Admission::Ticket ticket_;
};

class ArchiveService : public AllMethods {
 public:
  explicit ArchiveService(ServiceCore& core) : core_(core) {}

  grpc::ServerUnaryReactor* ListArchives(
      grpc::CallbackServerContext* context,
      const v1::ListArchivesRequest* request,
      v1::ListArchivesResponse* response) override {
    return Answer(Method::kListArchives, quire::ListArchives, context, request,
                  response);
  }

  grpc::ServerUnaryReactor* GetArchive(
      grpc::CallbackServerContext* context,
      const v1::GetArchiveRequest* request,
      v1::GetArchiveResponse* response) override {
    return Answer(Method::kGetArchive, quire::GetArchive, context, request,
                  response);
  }

  grpc::ServerUnaryReactor* ListDocuments(
      grpc::CallbackServerContext* context,
      const v1::ListDocumentsRequest* request,
      v1::ListDocumentsResponse* response) override {
    return Answer(Method::kListDocuments, quire::ListDocuments, context,
                  request, response);
  }

  grpc::ServerUnaryReactor* GetSymbolTable(
      grpc::CallbackServerContext* context,
      const v1::GetSymbolTableRequest* request,
      v1::GetSymbolTableResponse* response) override {
    return Answer(Method::kGetSymbolTable, quire::GetSymbolTable, context,
                  request, response);
  }

  grpc::ServerWriteReactor<v1::GetDictionaryResponse>* GetDictionary(
      grpc::CallbackServerContext* context,
      const v1::GetDictionaryRequest* request) override {
    return StartGetDictionaryCall(core_, *context, *request);
  }

  grpc::ServerUnaryReactor* Read(grpc::CallbackServerContext* context,
                                 const grpc::ByteBuffer* request,
                                 grpc::ByteBuffer* response) override {
    return StartReadCall(core_, *context, *request, *response);
  }

  grpc::ServerWriteReactor<grpc::ByteBuffer>* ReadStream(
      grpc::CallbackServerContext* context,
      const grpc::ByteBuffer* request) override {
    return StartReadStreamCall(core_, *context, *request);
  }

  grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* BatchRead(
      grpc::CallbackServerContext* context) override {
    return StartBatchCall(core_, *context);
  }

  grpc::ServerWriteReactor<grpc::ByteBuffer>* Scan(
      grpc::CallbackServerContext* context,
      const grpc::ByteBuffer* request) override {
    return StartScanCall(core_, *context, *request);
  }

 private:
  template <typename Request, typename Response>
  grpc::ServerUnaryReactor* Answer(Method method,
                                   absl::Status (*handler)(const ServiceCore&,
                                                           const Request&,
                                                           Response&),
                                   grpc::CallbackServerContext* context,
                                   const Request* request, Response* response) {
    auto* call = new ImmediateCall(core_, method, *context);
    absl::Status status = handler(core_, *request, *response);
    if (status.ok()) {
      // The message and its serialised form.
      absl::StatusOr<Admission::Ticket> ticket =
          core_.admission.Admit(context->peer(), 2 * response->ByteSizeLong(),
                                Admission::Use::kSingleAnswer);
      if (ticket.ok()) {
        call->Hold(*std::move(ticket));
      } else {
        response->Clear();
        status = ticket.status();
      }
    }
    call->End(status);
    return call;
  }

  ServiceCore& core_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeArchiveService(ServiceCore& core) {
  return std::make_unique<ArchiveService>(core);
}

}  // namespace quire
