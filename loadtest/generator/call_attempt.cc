// SPDX-License-Identifier: Apache-2.0
#include "loadtest/generator/call_attempt.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "grpcpp/alarm.h"

#include "client/quire/internal/connection.h"

namespace quire {

void OpenCalls::Add(CallAttempt* call) {
  bool is_cancelled = false;
  {
    MutexLock lock(&mutex_);
    calls_.insert(call);
    is_cancelled = is_cancelled_;
  }
  if (is_cancelled) {
    call->context().TryCancel();
  }
}

void OpenCalls::Remove(CallAttempt* call) {
  MutexLock lock(&mutex_);
  calls_.erase(call);
}

void OpenCalls::CancelAll() {
  MutexLock lock(&mutex_);
  is_cancelled_ = true;
  // Under the lock, as a call may be destroyed afterwards.
  for (CallAttempt* call : calls_) {
    call->context().TryCancel();
  }
}

void OpenCalls::CancelSilent(uint64_t since_ns) {
  MutexLock lock(&mutex_);
  for (CallAttempt* call : calls_) {
    call->CancelIfSilent(since_ns);
  }
}

bool OpenCalls::is_cancelled() const {
  MutexLock lock(&mutex_);
  return is_cancelled_;
}

void CallAttempt::NoteMessage() {
  waiting_since_ns_ = UINT64_MAX;
  load_.heard_ns = load_.NowNs();
}

void CallAttempt::WaitForMessage() {
  waiting_since_ns_ = load_.NowNs();
}

void CallAttempt::CancelIfSilent(uint64_t since_ns) {
  if (waiting_since_ns_ <= since_ns && !is_silent_.exchange(true)) {
    context_.TryCancel();
  }
}

CallEnd CallAttempt::EndOf(const grpc::Status& status) {
  CallEnd end{.status = {static_cast<absl::StatusCode>(status.error_code()),
                         status.error_message()}};
  if (!status.ok()) {
    const std::optional<ErrorDetails> details =
        ParseErrorDetails(status.error_details());
    if (details.has_value()) {
      end.reason = details->reason;
      end.retry_delay = details->retry_delay;
    }
  }
  const bool was_cancelled = absl::IsCancelled(end.status);
  if (was_cancelled && is_silent_ && !load_.open_calls.is_cancelled()) {
    end.status = absl::DeadlineExceededError(absl::StrCat(
        "the server sent nothing for ",
        absl::FormatDuration(absl::FromChrono(load_.options.deadline))));
  }
  // A status with a reason comes from the server. Another call may have had an
  // answer meanwhile.
  if (absl::IsDeadlineExceeded(end.status) && end.reason.empty()) {
    if (load_.heard_ns <= waiting_since_ns_) {
      load_.is_silent = true;
    }
  } else if (!was_cancelled) {
    load_.heard_ns = load_.NowNs();
  }
  return end;
}

void After(absl::Duration delay, absl::AnyInvocable<void()> again) {
  // A shared_ptr, as the alarm's function must be copyable.
  auto alarm = std::make_shared<grpc::Alarm>();
  auto action = std::make_shared<absl::AnyInvocable<void()>>(std::move(again));
  grpc::Alarm* const setter = alarm.get();
  setter->Set(
      std::chrono::system_clock::now() + absl::ToChronoNanoseconds(delay),
      [alarm, action](bool /*not_cancelled*/) mutable {
        alarm.reset();
        (*action)();
      });
}

CallAttempt::CallAttempt(LoadContext& load, bool is_unary)
    : load_(load),
      wire_(load.tables == nullptr ? nullptr : load.tables->StartCall()) {
  if (is_unary) {
    context_.set_deadline(std::chrono::system_clock::now() +
                          load.options.deadline);
  }
  WaitForMessage();
  AddArchiveHeader(load_.options.archive, context_);
  load_.open_calls.Add(this);
}

CallAttempt::~CallAttempt() {
  load_.open_calls.Remove(this);
}

std::optional<absl::Duration> CallAttempt::RetryDelay(const CallEnd& end,
                                                      uint64_t due_ns) const {
  const uint64_t now_ns = load_.NowNs();
  const auto waited =
      std::chrono::nanoseconds(now_ns - std::min(now_ns, due_ns));
  if (!end.retry_delay.has_value() || waited >= load_.options.deadline ||
      load_.open_calls.is_cancelled()) {
    return std::nullopt;
  }
  load_.recorder.CountRetry();
  return std::min(*end.retry_delay,
                  absl::FromChrono(load_.options.deadline - waited));
}

}  // namespace quire
