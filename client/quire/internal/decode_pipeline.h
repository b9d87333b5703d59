// SPDX-License-Identifier: Apache-2.0
//
// Decodes the messages of a stream while the next ones are received: what makes
// one scan in FSST or in stored blocks use all of a client's cores. Internal to
// the client library; stream_call.h uses it, and only from the second encoded
// message of a stream on, so that short answers start no threads.
//
// Messages go through in order at both ends and in any order between them:
//
//   receive, accept     one thread, in order of the stream
//   decode              `thread_count` threads, each the next undecoded message
//   take                the caller of Run(), in order of the stream
//
// Memory is bounded by the number of slots, thread_count + 2 messages with a
// buffer each: while the taker is slow, nothing is received, and HTTP/2's flow
// control holds the server back.
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

// What happens to each message of a stream. What a step returns, if not OK, is
// the end of it: messages before that one are taken, none from there on. So a
// fault looks as it would without threads.
// Does not own the functions, which must outlive whatever runs the steps.
template <typename Message>
struct DecodeSteps {
  // In the order of the stream, by whichever thread receives, one call at a
  // time: whether this message is one that may come here. For checks that need
  // the message before it, such as that offsets follow each other.
  absl::FunctionRef<absl::Status(const Message&)> accept;
  // In any order, by several threads at once, of accepted messages: must be
  // thread-safe. The text that it returns lies in the message or in the buffer,
  // and is valid until `take` of this message has returned; the buffer keeps
  // its memory for a later message.
  absl::FunctionRef<absl::StatusOr<absl::string_view>(const Message&,
                                                      std::string&)>
      decode;
  // In the order of the stream, on the thread that runs the stream: what the
  // library's caller is given, who so sees one thread, their own. May block.
  absl::FunctionRef<absl::Status(const Message&, absl::string_view)> take;
};

// All steps for one message, on this thread; the text is in `buffer` or in the
// message. Errors: those of the steps.
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
// all of them end within Run(). Messages and buffers are reused: no allocations
// per message once they have grown. Thread-compatible: for one stream, run
// once.
template <typename Message>
class DecodePipeline {
 public:
  // `receive` fills in the next message, blocking, or returns false at the end,
  // whatever its reason: the caller finds that out. `cancel`, which Run() calls
  // from its own thread if a step failed, makes it return soon. None is owned;
  // all must outlive Run().
  // REQUIRES: thread_count > 0.
  DecodePipeline(const DecodeSteps<Message>& steps, int thread_count,
                 absl::FunctionRef<bool(Message&)> receive,
                 absl::FunctionRef<void()> cancel)
      : steps_(steps),
        receive_(receive),
        cancel_(cancel),
        thread_count_(static_cast<size_t>(thread_count)),
        slots_(thread_count_ + 2) {}

  // `first` was received already. Blocks until all is taken, or a step failed
  // and `receive` has returned. Once only.
  // Errors: that of the first message, in order of the stream, whose step
  // failed; ResourceExhausted, if the system starts no more threads. What
  // `take` throws is passed on, once all threads have ended; no other step may
  // throw.
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
    // Also where `take` throws, which is the caller's own.
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
  // the one that claimed it until it is decoded, then to the taker.
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

  // The receiving thread, until the end, a refused message, or stop_.
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

  // A decoding thread: claims messages in order until none will come. What was
  // refused is passed on as it is, for the taker to meet at its turn.
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
  // Apart, so that no thread wakes for what concerns another: the receiver
  // waits for a free slot, decoders for a message, the taker for the next text.
  CondVar may_receive_;
  CondVar may_decode_;
  CondVar may_take_;
  // Messages of the stream so far; message i lies in slot i modulo their
  // number.
  uint64_t received_count_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t claimed_count_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t taken_count_ ABSL_GUARDED_BY(mutex_) = 0;
  // No more will be received.
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace quire

#endif  // QUIRE_CLIENT_QUIRE_INTERNAL_DECODE_PIPELINE_H_
