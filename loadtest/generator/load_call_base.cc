// SPDX-License-Identifier: Apache-2.0
#include "loadtest/generator/load_call_base.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "grpcpp/alarm.h"

#include "client/quire/internal/connection.h"

namespace quire {

void OpenCalls::Add(OpenCall* call) {
  bool is_cancelled = false;
  {
    MutexLock lock(&mutex_);
    calls_.insert(call);
    is_cancelled = is_cancelled_;
  }
  if (is_cancelled) {
    call->context.TryCancel();
  }
}

void OpenCalls::Remove(OpenCall* call) {
  MutexLock lock(&mutex_);
  calls_.erase(call);
}

void OpenCalls::CancelAll() {
  MutexLock lock(&mutex_);
  is_cancelled_ = true;
  // Under the lock, as a call may be destroyed afterwards.
  for (OpenCall* call : calls_) {
    call->context.TryCancel();
  }
}

void OpenCalls::CancelSilent(uint64_t since_ns) {
  MutexLock lock(&mutex_);
  for (OpenCall* call : calls_) {
    if (call->waiting_since_ns <= since_ns && !call->is_silent) {
      call->is_silent = true;
      call->context.TryCancel();
    }
  }
}

bool OpenCalls::is_cancelled() const {
  MutexLock lock(&mutex_);
  return is_cancelled_;
}

void CallAttempt::NoteMessage() {
  call_.waiting_since_ns = UINT64_MAX;
  load_.heard_ns = load_.NowNs();
}

void CallAttempt::WaitForMessage() {
  call_.waiting_since_ns = load_.NowNs();
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
  if (was_cancelled && call_.is_silent && !load_.open_calls.is_cancelled()) {
    end.status = absl::DeadlineExceededError(absl::StrCat(
        "the server sent nothing for ",
        absl::FormatDuration(absl::FromChrono(load_.options.deadline))));
  }
  // A status with a reason comes from the server. Another call may have had an
  // answer meanwhile.
  if (absl::IsDeadlineExceeded(end.status) && end.reason.empty()) {
    if (load_.heard_ns <= call_.waiting_since_ns) {
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
    context().set_deadline(std::chrono::system_clock::now() +
                           load.options.deadline);
  }
  WaitForMessage();
  AddArchiveHeader(load_.options.archive, context());
  load_.open_calls.Add(&call_);
}

CallAttempt::~CallAttempt() {
  load_.open_calls.Remove(&call_);
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

bool CallAttempt::WasCancelled(const CallEnd& end) const {
  return !end.status.ok() && load_.open_calls.is_cancelled();
}

}  // namespace quire
