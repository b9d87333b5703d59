// SPDX-License-Identifier: Apache-2.0
//
// One thread for asynchronous calls. gRPC's own callback threads hand the
// connection to each other with every answer, which costs more than the answer
// does. Internal to the client library.
#ifndef QUIRE_CLIENT_QUIRE_INTERNAL_CALL_QUEUE_H_
#define QUIRE_CLIENT_QUIRE_INTERNAL_CALL_QUEUE_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>

#include "absl/status/statusor.h"
#include "grpcpp/completion_queue.h"

namespace quire {

// A call whose end is its tag in the queue.
class QueuedCall {
 public:
  virtual ~QueuedCall() = default;

  // Called once, on the thread of the queue, which deletes the call afterwards.
  virtual void End() = 0;
};

// Thread-safe.
class CallQueue {
 public:
  // Errors: ResourceExhausted  the system gives no thread.
  static absl::StatusOr<std::unique_ptr<CallQueue>> Start();

  // Blocks until all calls have ended. REQUIRES: no call is started meanwhile.
  ~CallQueue();
  CallQueue(const CallQueue&) = delete;
  CallQueue& operator=(const CallQueue&) = delete;

  // For calls with tags of TagOf().
  grpc::CompletionQueue* queue() { return &queue_; }

  // Returns the tag of a call, which the queue then owns. Everything written
  // before is visible to End(): gRPC's queue does that too, but with atomics
  // that ThreadSanitizer does not see.
  void* TagOf(QueuedCall* call) {
    handed_over_count_.fetch_add(1, std::memory_order_release);
    return call;
  }

 private:
  CallQueue() = default;

  void Run();

  std::atomic<uint64_t> handed_over_count_ = 0;
  grpc::CompletionQueue queue_;
  std::thread thread_;
};

}  // namespace quire

#endif  // QUIRE_CLIENT_QUIRE_INTERNAL_CALL_QUEUE_H_
