// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/service/calls/archive_service.h"

#include <utility>

#include "proto/quire/v1/archive.grpc.pb.h"

#include "codecs/base/status_macros.h"
#include "server/service/base/service_error.h"
#include "server/service/calls/methods.h"
#include "server/service/calls/request_parser.h"
#include "server/service/read/answer_bytes.h"

namespace quire {
namespace {

// Raw methods: gRPC would parse a request without a bound and keep the message
// until the call ends.
using ReadMethods = v1::Archive::WithRawCallbackMethod_Read<
    v1::Archive::WithRawCallbackMethod_ReadStream<
        v1::Archive::WithRawCallbackMethod_BatchRead<
            v1::Archive::WithRawCallbackMethod_Scan<
                v1::Archive::WithRawCallbackMethod_ReadFile<
                    v1::Archive::WithRawCallbackMethod_ListFiles<
                        v1::Archive::Service>>>>>>;
using AllMethods = v1::Archive::WithRawCallbackMethod_ListArchives<
    v1::Archive::WithRawCallbackMethod_GetArchive<
        v1::Archive::WithRawCallbackMethod_ListDocuments<
            v1::Archive::WithRawCallbackMethod_ListCaptures<
                v1::Archive::WithRawCallbackMethod_GetDictionary<
                    v1::Archive::WithRawCallbackMethod_GetSymbolTable<
                        ReadMethods>>>>>>;

// A call that is answered at once from memory.
class ImmediateCall : public grpc::ServerUnaryReactor {
 public:
  ImmediateCall(ServiceCore& core, Method method,
                grpc::CallbackServerContext& context)
      : booking_(core, method, context) {}

  // Holds `ticket` until gRPC has released the answer.
  void Hold(Admission::Ticket ticket) { ticket_ = std::move(ticket); }

  void End(const absl::Status& status) { booking_.Finish(*this, status); }

  CallBooking& booking() { return booking_; }

  void OnDone() override { delete this; }

 private:
  CallBooking booking_;
  Admission::Ticket ticket_;
};

class ArchiveService : public AllMethods {
 public:
  explicit ArchiveService(ServiceCore& core) : core_(core) {}

  grpc::ServerUnaryReactor* ListArchives(grpc::CallbackServerContext* context,
                                         const grpc::ByteBuffer* request,
                                         grpc::ByteBuffer* response) override {
    return Answer(Method::kListArchives, quire::ListArchives, *context,
                  *request, *response);
  }

  grpc::ServerUnaryReactor* GetArchive(grpc::CallbackServerContext* context,
                                       const grpc::ByteBuffer* request,
                                       grpc::ByteBuffer* response) override {
    return Answer(Method::kGetArchive, quire::GetArchive, *context, *request,
                  *response);
  }

  grpc::ServerUnaryReactor* ListDocuments(grpc::CallbackServerContext* context,
                                          const grpc::ByteBuffer* request,
                                          grpc::ByteBuffer* response) override {
    return StartListDocumentsCall(core_, *context, *request, *response);
  }

  grpc::ServerUnaryReactor* ListCaptures(grpc::CallbackServerContext* context,
                                         const grpc::ByteBuffer* request,
                                         grpc::ByteBuffer* response) override {
    return StartListCapturesCall(core_, *context, *request, *response);
  }

  grpc::ServerUnaryReactor* ListFiles(grpc::CallbackServerContext* context,
                                      const grpc::ByteBuffer* request,
                                      grpc::ByteBuffer* response) override {
    return Answer(Method::kListFiles, quire::ListFiles, *context, *request,
                  *response);
  }

  grpc::ServerWriteReactor<grpc::ByteBuffer>* ReadFile(
      grpc::CallbackServerContext* context,
      const grpc::ByteBuffer* request) override {
    return StartReadFileCall(core_, *context, *request);
  }

  grpc::ServerUnaryReactor* GetSymbolTable(
      grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
      grpc::ByteBuffer* response) override {
    return Answer(Method::kGetSymbolTable, quire::GetSymbolTable, *context,
                  *request, *response);
  }

  grpc::ServerWriteReactor<grpc::ByteBuffer>* GetDictionary(
      grpc::CallbackServerContext* context,
      const grpc::ByteBuffer* request) override {
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
  using Handler = absl::Status (*)(const ServiceCore&, CallAccess&,
                                   const Request&, Response&);

  template <typename Request, typename Response>
  grpc::ServerUnaryReactor* Answer(Method method,
                                   Handler<Request, Response> handler,
                                   grpc::CallbackServerContext& context,
                                   const grpc::ByteBuffer& request,
                                   grpc::ByteBuffer& response) {
    auto* call = new ImmediateCall(core_, method, context);
    absl::StatusOr<Admission::Ticket> ticket =
        Respond(handler, call->booking(), request, response);
    const absl::Status status = ticket.status();
    if (status.ok()) {
      call->Hold(*std::move(ticket));
    }
    call->End(status);
    return call;
  }

  // Returns the ticket that the call holds until gRPC has sent its answer.
  template <typename Request, typename Response>
  absl::StatusOr<Admission::Ticket> Respond(Handler<Request, Response> handler,
                                            CallBooking& booking,
                                            const grpc::ByteBuffer& buffer,
                                            grpc::ByteBuffer& answer) {
    QUIRE_RETURN_IF_ERROR(booking.access().status());
    Request request;
    QUIRE_RETURN_IF_ERROR(ParseRequest(buffer, request));
    Response response;
    QUIRE_RETURN_IF_ERROR(handler(core_, booking.access(), request, response));
    const uint64_t size_bytes = response.ByteSizeLong();
    QUIRE_ASSIGN_OR_RETURN(
        Admission::Ticket ticket,
        core_.admission.Admit(booking.Client(), size_bytes + buffer.Length(),
                              Admission::Use::kSingleAnswer));
    AnswerBytes bytes;
    bytes.AppendFields(response);
    answer = bytes.Take();
    booking.Sending(size_bytes);
    return ticket;
  }

  ServiceCore& core_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeArchiveService(ServiceCore& core) {
  return std::make_unique<ArchiveService>(core);
}

}  // namespace quire
