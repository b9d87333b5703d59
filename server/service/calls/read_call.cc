// SPDX-License-Identifier: GPL-3.0-or-later
#include <array>
#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "google/protobuf/arena.h"

#include "codecs/base/memory/free_memory.h"
#include "codecs/base/status_macros.h"
#include "server/service/base/service_error.h"
#include "server/service/calls/methods.h"
#include "server/service/calls/request_parser.h"
#include "server/service/read/answer_bytes.h"
#include "server/service/read/answer_plan.h"
#include "server/service/read/answer_read.h"
#include "server/service/read/read_planner.h"

namespace quire {
namespace {

// Size in protobuf's layout of a request or an answer without text and
// description, unless ids are long.
constexpr size_t kMessageSizeBytes = 768;

// Memory of a waiting call without its request, description and plan.
constexpr uint64_t kWaitingCallBytes = 2 << 10;

class ReadCall : public grpc::ServerUnaryReactor {
 public:
  ReadCall(ServiceCore& core, grpc::CallbackServerContext& context,
           grpc::ByteBuffer& response)
      : core_(core),
        response_(response),
        booking_(core, Method::kRead, context) {}

  void Start(const grpc::ByteBuffer& request) {
    const absl::Status status = Begin(request);
    if (!status.ok()) {
      Refuse(status);
    }
  }

  void OnCancel() override {
    std::shared_ptr<AnswerRead> read;
    std::optional<Admission::TurnId> turn;
    {
      MutexLock lock(&mutex_);
      cancelled_ = true;
      read = read_;
      turn = turn_;
    }
    if (turn.has_value()) {
      core_.admission.Withdraw(*turn);
    }
    if (read != nullptr) {
      read->Cancel();
    }
  }

  void OnDone() override { delete this; }

  // True: OnDone() and OnCancel() do not wait, so they need no thread of their
  // own. Otherwise gRPC wakes its executor for each call.
  bool InternalInlineable() override { return true; }

 private:
  // OK: the call has been finished or will be. gRPC does not destroy it before
  // Start() has returned.
  absl::Status Begin(const grpc::ByteBuffer& buffer) {
    QUIRE_RETURN_IF_ERROR(RefuseIfDraining(core_));
    // Usually avoids the heap: allocations slow short answers.
    alignas(8) std::array<char, kMessageSizeBytes> memory;
    google::protobuf::Arena arena(memory.data(), memory.size());
    auto& request =
        *google::protobuf::Arena::CreateMessage<v1::ReadRequest>(&arena);
    QUIRE_RETURN_IF_ERROR(ParseRequest(buffer, request));
    booking_.NoteRequest(request);
    QUIRE_ASSIGN_OR_RETURN(contents_, booking_.access().FindContents(request));
    is_uuid_sent_ = !request.has_archive_uuid();
    QUIRE_ASSIGN_OR_RETURN(
        target_, ResolveTarget(contents_, request,
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
    plan_ = PlanAnswer(contents_, target_.range,
                       ChooseEncoding(request.accepted_encodings(), contents_));
    if (target_.document.has_value()) {
      description_ =
          DescribeDocument(*contents_.view.archive, *target_.document);
    } else {
      zeros_hash_ = ZerosHash(contents_);
    }
    contents_.FreeWithdrawal();
    return Admit(buffer.Length() + description_.size());
  }

  // `head_bytes`: memory of the request and of the description.
  absl::Status Admit(uint64_t head_bytes) {
    Admission::TurnId turn = 0;
    std::optional<absl::StatusOr<Admission::Ticket>> ticket =
        core_.admission.AdmitInTurn(
            booking_.Client(),
            plan_.memory_bytes() + kAnswerFramingSizeBytesMax + head_bytes,
            kWaitingCallBytes + head_bytes +
                plan_.slices.size() * sizeof(PlannedSlice),
            [this](absl::StatusOr<Admission::Ticket> given) {
              turn_ended_with_ = given.status();
              if (given.ok()) {
                ticket_ = *std::move(given);
              }
              // This thread is inside another call.
              core_.store.decode_pool().Add(
                  {.run =
                       [this] {
                         if (turn_ended_with_.ok()) {
                           Read();
                         } else {
                           Refuse(turn_ended_with_);
                         }
                       },
                   .client_id = ClientIdOf(booking_.Client()),
                   .cost = target_.range.size_bytes});
            },
            turn);
    if (ticket.has_value()) {
      QUIRE_ASSIGN_OR_RETURN(ticket_, *std::move(ticket));
      Read();
      return absl::OkStatus();
    }
    bool was_cancelled = false;
    {
      MutexLock lock(&mutex_);
      was_cancelled = cancelled_;
      turn_ = turn;
    }
    // The cancellation came before there was a turn to withdraw.
    if (was_cancelled) {
      core_.admission.Withdraw(turn);
    }
    return absl::OkStatus();
  }

  void Refuse(const absl::Status& status) {
    // Nothing is admitted that counts them, and a client may leave the status
    // unread.
    FreeMemory(description_);
    plan_ = AnswerPlan();
    booking_.Finish(*this, status);
  }

  void Read() {
    booking_.ReadBegins();
    std::shared_ptr<AnswerRead> read = AnswerRead::Start(
        core_.store, contents_.archive, std::move(plan_),
        {FetchClass::kInteractive, ClientIdOf(booking_.Client()),
         booking_.fetch_times()},
        [this](const absl::StatusOr<Answer>& answer) {
          booking_.ReadEnds();
          absl::Status status = answer.status();
          // The call may have waited for memory.
          if (status.ok()) {
            status = CheckStillThere(*contents_.archive, target_,
                                     contents_.withdrawal.generation);
          }
          if (status.ok()) {
            Respond(*answer);
          }
          StepEnds(std::move(status));
        });
    if (read != nullptr) {
      bool was_cancelled = false;
      {
        MutexLock lock(&mutex_);
        was_cancelled = cancelled_;
        read_ = read;
      }
      // The cancellation came before there was a read to cancel.
      if (was_cancelled) {
        read->Cancel();
      }
    }
    StepEnds(absl::OkStatus());
  }

  // Ends the start of the read or its answer. The call ends after both.
  void StepEnds(absl::Status status) {
    if (!status.ok()) {
      read_ended_with_ = std::move(status);
    }
    if (steps_left_.fetch_sub(1, std::memory_order_acq_rel) == 1) {
      booking_.Finish(*this, read_ended_with_);
    }
  }

  void Respond(const Answer& answer) {
    alignas(8) std::array<char, kMessageSizeBytes> memory;
    google::protobuf::Arena arena(memory.data(), memory.size());
    auto& head =
        *google::protobuf::Arena::CreateMessage<v1::ReadResponse>(&arena);
    head.mutable_range()->set_offset(target_.range.offset.value);
    head.mutable_range()->set_size_bytes(target_.range.size_bytes);
    DescribeData(answer, head);
    if (zeros_hash_ != 0) {
      head.set_zeros_hash(zeros_hash_);
    }
    AnswerBytes bytes;
    bytes.AppendFields(head);
    if (is_uuid_sent_) {
      bytes.AppendField(
          {v1::ReadResponse::kArchiveUuidFieldNumber, contents_.view.uuid});
    }
    if (!description_.empty()) {
      bytes.AppendField({v1::ReadResponse::kDocumentFieldNumber, description_});
      // Otherwise it would stay next to its copy until the answer is sent.
      FreeMemory(description_);
    }
    bytes.AppendBytesField(v1::ReadResponse::kDataFieldNumber, answer.pieces);
    response_ = bytes.Take();
    booking_.SendingAnswer(target_.range.size_bytes, answer);
  }

  ServiceCore& core_;
  grpc::ByteBuffer& response_;
  CallBooking booking_;
  ServedContents contents_;
  ResolvedTarget target_;
  // The answer has the uuid of the contents, as the request has none.
  bool is_uuid_sent_ = false;
  // Hash of the withdrawn ranges of the contents; 0: none, or no range is read.
  uint64_t zeros_hash_ = 0;
  // Moved to the read when that starts.
  AnswerPlan plan_;
  // Description of the requested document; empty once it is in the answer.
  std::string description_;
  // Held until gRPC has released the answer.
  Admission::Ticket ticket_;

  absl::Status turn_ended_with_;
  // Steps of Read(): its own end and that of its answer.
  std::atomic<int> steps_left_{2};
  absl::Status read_ended_with_;

  Mutex mutex_;
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  std::optional<Admission::TurnId> turn_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<AnswerRead> read_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

grpc::ServerUnaryReactor* StartReadCall(ServiceCore& core,
                                        grpc::CallbackServerContext& context,
                                        const grpc::ByteBuffer& request,
                                        grpc::ByteBuffer& response) {
  auto* call = new ReadCall(core, context, response);
  call->Start(request);
  return call;
}

}  // namespace quire
