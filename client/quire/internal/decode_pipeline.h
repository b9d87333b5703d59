// SPDX-License-Identifier: Apache-2.0
//
// Decodes the messages of a stream while the next ones are received, so that
// one scan in FSST or stored blocks uses all cores of a client. Internal to the
// client library. stream_call.h uses it from the second encoded message of a
// stream on, so that short answers start no threads.
//
// Messages enter and leave in order, and are decoded in any order:
//
//   receive, accept     one thread, in order of the stream
//   decode              `thread_count` threads, each the next undecoded message
//   take                the caller of Run(), in order of the stream
//
// Memory is bounded by the number of slots, thread_count + 2 messages with a
// buffer each. While the taker is slow, nothing is received, and HTTP/2's flow
// control slows the server down.
#ifndef QUIRE_CLIENT_QUIRE_INTERNAL_DECODE_PIPELINE_H_
#define QUIRE_CLIENT_QUIRE_INTERNAL_DECODE_PIPELINE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/cleanup/cleanup.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "client/quire/internal/started_thread.h"
#include "codecs/base/mutex.h"

namespace quire {

// Steps for each message of a stream. The first error of a step ends the
// stream: earlier messages are taken, later ones are not, as without threads.
// Does not own the functions, which must outlive whatever runs the steps.
template <typename Message>
struct DecodeSteps {
  // Runs in order of the stream, on the receiving thread, one call at a time.
  // Checks the message against the previous ones, for example that offsets
  // follow each other.
  absl::FunctionRef<absl::Status(const Message&)> accept;
  // Runs in any order, on several threads at once, for accepted messages: must
  // be thread-safe. The returned text is in the message or the buffer and valid
  // until `take` of this message has returned. The buffer keeps its memory for
  // a later message.
  absl::FunctionRef<absl::StatusOr<absl::string_view>(const Message&,
                                                      std::string&)>
      decode;
  // Runs in order of the stream, on the thread that runs the stream. Passes
  // text to the library's caller, whose sink so runs on the caller's thread.
  // May block.
  absl::FunctionRef<absl::Status(const Message&, absl::string_view)> take;
};

// Runs all steps for one message on this thread; the text is in `buffer` or in
// the message. Errors: those of the steps.
template <typename Message>
absl::Status DecodeOne(const DecodeSteps<Message>& steps,
                       const Message& message, std::string& buffer) {
  absl::Status status = steps.accept(message);
  if (!status.ok()) {
    return status;
  }
  const absl::StatusOr<absl::string_view> text = steps.decode(message, buffer);
  return text.ok() ? steps.take(message, *text) : text.status();
}

// One thread receives, `thread_count` decode, and the caller of Run() takes;
// all of them end within Run(). Messages and buffers are reused, without
// allocations per message once they have grown. Thread-compatible; for one
// stream, run once.
template <typename Message>
class DecodePipeline {
 public:
  // `receive` fills in the next message, blocking, or returns false at the end;
  // the caller determines the reason. `cancel` makes it return soon; Run()
  // calls it from its own thread if a step failed. None is owned; all must
  // outlive Run(). REQUIRES: thread_count > 0.
  DecodePipeline(const DecodeSteps<Message>& steps, int thread_count,
                 absl::FunctionRef<bool(Message&)> receive,
                 absl::FunctionRef<void()> cancel)
      : steps_(steps),
        receive_(receive),
        cancel_(cancel),
        thread_count_(static_cast<size_t>(thread_count)),
        slots_(thread_count_ + 2) {}

  // `first` was received already. Blocks until all messages are taken, or a
  // step failed and `receive` has returned. Called once. Errors: that of the
  // first message, in order of the stream, whose step failed;
  // ResourceExhausted, if the system cannot start another thread. Exceptions of
  // `take` are passed on once all threads have ended; no other step may throw.
  absl::Status Run(Message first) {
    slots_[0].message = std::move(first);
    slots_[0].status = steps_.accept(slots_[0].message);
    const bool goes_on = slots_[0].status.ok();
    {
      MutexLock lock(&mutex_);
      received_count_ = 1;
      ended_ = !goes_on;
    }
    std::vector<std::thread> threads;
    bool is_complete = false;
    // Also if `take`, the caller's own function, throws.
    const absl::Cleanup end = [&] {
      if (!is_complete) {
        Stop();
      }
      for (std::thread& thread : threads) {
        thread.join();
      }
    };
    absl::Status status = Start(goes_on, threads);
    if (status.ok()) {
      status = TakeAll();
    }
    is_complete = status.ok();
    return status;
  }

 private:
  // Belongs to the receiving thread until it is counted as received, then to
  // the thread that claimed it until it is decoded, then to the taker.
  struct Slot {
    Message message;
    std::string buffer;
    absl::Status status;
    absl::string_view text;
    // Guarded by mutex_.
    bool is_decoded = false;
  };

  void Stop() ABSL_LOCKS_EXCLUDED(mutex_) {
    {
      MutexLock lock(&mutex_);
      stop_ = true;
    }
    may_receive_.NotifyAll();
    may_decode_.NotifyAll();
    cancel_();
  }

  absl::Status Start(bool receives, std::vector<std::thread>& threads) {
    threads.reserve(thread_count_ + 1);
    for (size_t i = 0; i <= thread_count_; ++i) {
      const bool is_receiver = i == 0;
      if (is_receiver && !receives) {
        continue;
      }
      absl::StatusOr<std::thread> thread = StartThread(
          [this, is_receiver] { is_receiver ? ReceiveAll() : DecodeAll(); });
      if (!thread.ok()) {
        return thread.status();
      }
      threads.push_back(*std::move(thread));
    }
    return absl::OkStatus();
  }

  Slot& SlotOf(uint64_t index) { return slots_[index % slots_.size()]; }

  // The receiving thread: runs until the end, a rejected message, or stop_.
  void ReceiveAll() ABSL_LOCKS_EXCLUDED(mutex_) {
    for (uint64_t index = 1;; ++index) {
      {
        MutexLock lock(&mutex_);
        while (!stop_ && index - taken_count_ >= slots_.size()) {
          may_receive_.Wait(&mutex_);
        }
        if (stop_) {
          return;
        }
      }
      Slot& slot = SlotOf(index);
      const bool received = receive_(slot.message);
      slot.status = received ? steps_.accept(slot.message) : absl::OkStatus();
      const bool goes_on = received && slot.status.ok();
      {
        MutexLock lock(&mutex_);
        received_count_ += received ? 1 : 0;
        ended_ = !goes_on;
      }
      if (goes_on) {
        may_decode_.NotifyOne();
        continue;
      }
      may_decode_.NotifyAll();
      may_take_.NotifyOne();
      return;
    }
  }

  // A decoding thread: claims messages in order until none will follow.
  // Rejected messages are passed on unchanged, for the taker to report in
  // order.
  void DecodeAll() ABSL_LOCKS_EXCLUDED(mutex_) {
    for (;;) {
      uint64_t index = 0;
      {
        MutexLock lock(&mutex_);
        while (!stop_ && !ended_ && claimed_count_ == received_count_) {
          may_decode_.Wait(&mutex_);
        }
        if (stop_ || claimed_count_ == received_count_) {
          return;
        }
        index = claimed_count_++;
      }
      Slot& slot = SlotOf(index);
      if (slot.status.ok()) {
        const absl::StatusOr<absl::string_view> text =
            steps_.decode(slot.message, slot.buffer);
        slot.status = text.status();
        slot.text = text.ok() ? *text : absl::string_view();
      }
      bool is_next = false;
      {
        MutexLock lock(&mutex_);
        slot.is_decoded = true;
        is_next = index == taken_count_;
      }
      if (is_next) {
        may_take_.NotifyOne();
      }
    }
  }

  // The caller of Run(): waits for each message in order.
  absl::Status TakeAll() ABSL_LOCKS_EXCLUDED(mutex_) {
    for (uint64_t index = 0;; ++index) {
      Slot& slot = SlotOf(index);
      {
        MutexLock lock(&mutex_);
        while (!slot.is_decoded && !(ended_ && index == received_count_)) {
          may_take_.Wait(&mutex_);
        }
        if (!slot.is_decoded) {
          return absl::OkStatus();
        }
      }
      absl::Status status = slot.status;
      if (status.ok()) {
        status = steps_.take(slot.message, slot.text);
      }
      if (!status.ok()) {
        return status;
      }
      {
        MutexLock lock(&mutex_);
        slot.is_decoded = false;
        ++taken_count_;
      }
      may_receive_.NotifyOne();
    }
  }

  const DecodeSteps<Message> steps_;
  const absl::FunctionRef<bool(Message&)> receive_;
  const absl::FunctionRef<void()> cancel_;
  const size_t thread_count_;
  std::vector<Slot> slots_;
  Mutex mutex_;
  // Separate variables, so that threads wake only for their own event: the
  // receiver waits for a free slot, decoders for a message, the taker for the
  // next text.
  CondVar may_receive_;
  CondVar may_decode_;
  CondVar may_take_;
  // Number of messages so far; message i is in slot i modulo the number of
  // slots.
  uint64_t received_count_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t claimed_count_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t taken_count_ ABSL_GUARDED_BY(mutex_) = 0;
  // True if nothing more will be received.
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace quire

#endif  // QUIRE_CLIENT_QUIRE_INTERNAL_DECODE_PIPELINE_H_
