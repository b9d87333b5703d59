// SPDX-License-Identifier: Apache-2.0
#include "client/quire/internal/call_queue.h"

#include "absl/memory/memory.h"

#include "client/quire/internal/started_thread.h"
#include "codecs/base/status_macros.h"

namespace quire {

absl::StatusOr<std::unique_ptr<CallQueue>> CallQueue::Start() {
  auto queue = absl::WrapUnique(new CallQueue());
  QUIRE_ASSIGN_OR_RETURN(queue->thread_,
                         StartThread([calls = queue.get()] { calls->Run(); }));
  return queue;
}

CallQueue::~CallQueue() {
  queue_.Shutdown();
  if (thread_.joinable()) {
    thread_.join();
  }
}

void CallQueue::Run() {
  void* tag = nullptr;
  bool is_ok = false;
  while (queue_.Next(&tag, &is_ok)) {
    (void)handed_over_count_.load(std::memory_order_acquire);
    const std::unique_ptr<QueuedCall> call(static_cast<QueuedCall*>(tag));
    call->End();
  }
}

}  // namespace quire
