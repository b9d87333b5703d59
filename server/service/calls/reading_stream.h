// SPDX-License-Identifier: GPL-3.0-or-later
//
// Common base of the streaming calls that read blocks: how they end.
#ifndef QUIRE_SERVER_SERVICE_CALLS_READING_STREAM_H_
#define QUIRE_SERVER_SERVICE_CALLS_READING_STREAM_H_

#include <memory>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "grpcpp/server_context.h"

#include "server/service/calls/call_context.h"
#include "server/service/calls/serial_call.h"
#include "server/service/read/answer_read.h"

namespace quire {

// A call over `Reactor`, one of gRPC's. Its first error ends it; cancellation
// by the client is one. Nothing new starts then, and reads that have not
// reached a device are withdrawn. The call finishes after its remaining reads.
// Deletes itself.
template <typename Reactor>
class ReadingStream : public Reactor, protected SerialCall {
 public:
  ReadingStream(ServiceCore& core, Method method,
                grpc::CallbackServerContext& context)
      : core_(core), booking_(core, method, context) {}

  void OnCancel() override {
    Update([&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      End(absl::CancelledError());
    });
  }

  void OnDone() override { delete this; }

 protected:
  using Reads = std::vector<std::shared_ptr<AnswerRead>>;

  // True if everything requested has been sent.
  virtual bool IsComplete() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) = 0;
  // True if some reads have no answer yet.
  virtual bool IsFetching() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) = 0;
  // Returns these reads.
  virtual Reads ActiveReads() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) = 0;

  // Records the first error; ignores later ones.
  void End(absl::Status status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (ended_with_.ok()) {
      ended_with_ = std::move(status);
    }
  }

  // Call before a complete message is handed to gRPC.
  void BeginWriting() ABSL_LOCKS_EXCLUDED(mutex_) {
    {
      MutexLock lock(&mutex_);
      writing_ = true;
    }
    booking_.WaitForClient();
  }

  // Last step of Act().
  bool CancelReadsIfEnded() ABSL_LOCKS_EXCLUDED(mutex_) {
    Reads reads;
    {
      MutexLock lock(&mutex_);
      if (ended_with_.ok()) {
        return !writing_ && IsComplete();
      }
      if (!IsFetching()) {
        return !writing_;
      }
      reads = ActiveReads();
    }
    // Without the lock: a withdrawn read ends at once.
    for (const std::shared_ptr<AnswerRead>& read : reads) {
      read->Cancel();
    }
    return false;
  }

  void FinishCall() override {
    absl::Status status;
    {
      MutexLock lock(&mutex_);
      status = ended_with_;
    }
    booking_.Finish(*this, status);
  }

  ServiceCore& core_;
  CallBooking booking_;
  // If not OK, nothing new starts.
  absl::Status ended_with_ ABSL_GUARDED_BY(mutex_);
  // True while gRPC holds a message.
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace quire

#endif  // QUIRE_SERVER_SERVICE_CALLS_READING_STREAM_H_
