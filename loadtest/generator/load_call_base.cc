// SPDX-License-Identifier: Apache-2.0
#include "loadtest/generator/load_call_base.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>

#include "grpcpp/alarm.h"

namespace quire {

void OpenCalls::Add(grpc::ClientContext* context) {
  bool is_cut = false;
  {
    MutexLock lock(&mutex_);
    contexts_.insert(context);
    is_cut = is_cut_;
  }
  if (is_cut) {
    context->TryCancel();
  }
}

void OpenCalls::Remove(grpc::ClientContext* context) {
  MutexLock lock(&mutex_);
  contexts_.erase(context);
}

void OpenCalls::CutAll() {
  MutexLock lock(&mutex_);
  is_cut_ = true;
  // Under the lock, as a context may be gone right after.
  for (grpc::ClientContext* context : contexts_) {
    context->TryCancel();
  }
}

bool OpenCalls::is_cut() const {
  MutexLock lock(&mutex_);
  return is_cut_;
}

CallEnd CallEndOf(const grpc::Status& status) {
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
  return end;
}

void After(absl::Duration delay, absl::AnyInvocable<void()> again) {
  // Of a shared_ptr, as the alarm's function must be copyable.
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

CallAttempt::CallAttempt(LoadContext& load, bool has_deadline)
    : load_(load),
      wire_(load.tables == nullptr ? nullptr : load.tables->StartCall()) {
  if (has_deadline) {
    context_.set_deadline(std::chrono::system_clock::now() +
                          load.options.deadline);
  }
  load_.open_calls.Add(&context_);
}

CallAttempt::~CallAttempt() {
  load_.open_calls.Remove(&context_);
}

std::optional<absl::Duration> CallAttempt::RetryDelay(const CallEnd& end,
                                                      uint64_t due_ns) const {
  const uint64_t now_ns = load_.NowNs();
  const auto waited =
      std::chrono::nanoseconds(now_ns - std::min(now_ns, due_ns));
  if (!end.retry_delay.has_value() || waited >= load_.options.deadline ||
      load_.open_calls.is_cut()) {
    return std::nullopt;
  }
  load_.recorder.CountRetry();
  return end.retry_delay;
}

bool CallAttempt::WasCut(const CallEnd& end) const {
  return !end.status.ok() && load_.open_calls.is_cut();
}

}  // namespace quire
