// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/service/calls/read_call.h"

#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "google/protobuf/arena.h"

#include "codecs/base/memory_guard.h"
#include "codecs/base/status_macros.h"
#include "server/service/base/service_error.h"
#include "server/service/calls/refused_call.h"
#include "server/service/calls/request_parser.h"
#include "server/service/read/answer_bytes.h"
#include "server/service/read/answer_read.h"
#include "server/service/read/read_planner.h"

namespace quire {
namespace {

// A request or an answer without text and description, as protobuf lays it out,
// unless ids are long.
constexpr size_t kMessageSizeBytes = 768;

class ReadCall : public grpc::ServerUnaryReactor {
 public:
  ReadCall(ServiceCore& core, grpc::CallbackServerContext& context,
           grpc::ByteBuffer& response)
      : core_(core),
        response_(response),
        booking_(core, Method::kRead, context) {}

  void Start(const grpc::ByteBuffer& request) {
    const absl::Status status =
        OrNoMemory("answer a read", [&] { return Begin(request); });
    if (!status.ok()) {
      booking_.Finish(*this, status);
    }
  }

  void OnCancel() override {
    std::shared_ptr<RangeRead> read;
    {
      MutexLock lock(&mutex_);
      cancelled_ = true;
      read = read_;
    }
    if (read != nullptr) {
      read->Cancel();
    }
  }

  void OnDone() override { delete this; }

 private:
  // OK: Finish() has been or will be called by OnAnswer(). Does not throw after
  // that is so.
  absl::Status Begin(const grpc::ByteBuffer& buffer) {
    QUIRE_RETURN_IF_ERROR(RefuseIfDraining(core_));
    // On the stack as a rule: of a short answer each allocation counts.
    alignas(8) std::array<char, kMessageSizeBytes> memory;
    google::protobuf::Arena arena(memory.data(), memory.size());
    auto& request =
        *google::protobuf::Arena::CreateMessage<v1::ReadRequest>(&arena);
    QUIRE_RETURN_IF_ERROR(ParseRequest(buffer, request));
    booking_.NoteRequest(request);
    QUIRE_ASSIGN_OR_RETURN(archive_,
                           booking_.access().FindToRead(request.archive()));
    const Archive& archive = *archive_->archive;
    QUIRE_ASSIGN_OR_RETURN(
        target_, ResolveTarget(archive, request,
                               core_.limits.document_id_size_bytes_max()));
    if (target_.range.size_bytes > core_.limits.read_size_bytes_max()) {
      return ServiceError(
          absl::StatusCode::kResourceExhausted, v1::LIMIT_EXCEEDED,
          absl::StrCat("the answer has ", target_.range.size_bytes,
                       " bytes, over read_size_bytes_max, ",
                       core_.limits.read_size_bytes_max(),
                       "; use ReadStream, or ask for ranges"),
          {{"limit", "read_size_bytes_max"}});
    }
    std::vector<BlockSlice> slices = PlanBlocks(archive, target_.range);
    const v1::WireEncoding encoding =
        ChooseEncoding(request.accepted_encodings(), *archive_);
    if (target_.document.has_value()) {
      description_ = DescribeDocument(archive, *target_.document);
    }
    const std::string& client = booking_.Client();
    QUIRE_ASSIGN_OR_RETURN(
        ticket_,
        core_.admission.Admit(client,
                              AnswerMemoryBytes(*archive_, slices, encoding) +
                                  kAnswerFramingSizeBytesMax +
                                  description_.size() + buffer.Length(),
                              Admission::Use::kSingleAnswer));
    booking_.ReadBegins();
    std::shared_ptr<RangeRead> read = StartAnswer(
        core_.store, archive_, std::move(slices), encoding,
        {FetchClass::kInteractive, ClientIdOf(client), booking_.fetch_times()},
        [this](absl::StatusOr<Answer> answer) { OnAnswer(std::move(answer)); });
    if (read == nullptr) {
      return absl::OkStatus();
    }
    bool was_cancelled = false;
    {
      MutexLock lock(&mutex_);
      was_cancelled = cancelled_;
      read_ = read;
    }
    // Before it was known what to cancel.
    if (was_cancelled) {
      read->Cancel();
    }
    return absl::OkStatus();
  }

  void OnAnswer(absl::StatusOr<Answer> answer) {
    booking_.ReadEnds();
    absl::Status status = answer.status();
    if (status.ok()) {
      status = OrNoMemory("answer a read", [&] {
        Respond(*answer);
        return absl::OkStatus();
      });
    }
    booking_.Finish(*this, status);
  }

  void Respond(const Answer& answer) {
    alignas(8) std::array<char, kMessageSizeBytes> memory;
    google::protobuf::Arena arena(memory.data(), memory.size());
    auto& head =
        *google::protobuf::Arena::CreateMessage<v1::ReadResponse>(&arena);
    head.mutable_range()->set_offset(target_.range.offset.value);
    head.mutable_range()->set_size_bytes(target_.range.size_bytes);
    DescribeData(answer, head);
    AnswerBytes bytes;
    bytes.AppendFields(head);
    if (!description_.empty()) {
      bytes.AppendField({v1::ReadResponse::kDocumentFieldNumber, description_});
      // Or it would stay, next to its copy, until the answer is sent.
      description_ = std::string();
    }
    bytes.AppendBytesField(v1::ReadResponse::kDataFieldNumber, answer.pieces);
    response_ = bytes.Take();
    booking_.SendingAnswer(target_.range.size_bytes, answer);
  }

  ServiceCore& core_;
  grpc::ByteBuffer& response_;
  CallBooking booking_;
  std::shared_ptr<const ServedArchive> archive_;
  ResolvedTarget target_;
  // Of the document that was asked for; empty once it is in the answer.
  std::string description_;
  // Held until gRPC has let go of the answer.
  Admission::Ticket ticket_;

  Mutex mutex_;
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  std::shared_ptr<RangeRead> read_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

grpc::ServerUnaryReactor* StartReadCall(ServiceCore& core,
                                        grpc::CallbackServerContext& context,
                                        const grpc::ByteBuffer& request,
                                        grpc::ByteBuffer& response) {
  return StartOrRefuse<grpc::ServerUnaryReactor>([&] {
    auto* call = new ReadCall(core, context, response);
    call->Start(request);
    return call;
  });
}

}  // namespace quire
