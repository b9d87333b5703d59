// SPDX-License-Identifier: Apache-2.0
#include "loadtest/report/load_recorder.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace quire {
namespace {

constexpr size_t kFaultsKeptMax = 5;

// True if the request failed because its time was up: its full duration is only
// known to be longer. A busy server was retried until then.
bool WasGivenUp(const LoadOutcome& outcome) {
  return absl::IsDeadlineExceeded(outcome.status) ||
         outcome.reason == "SERVER_BUSY";
}

// Returns the difference; 0 if another thread's `then_ns` is later.
uint64_t Since(uint64_t now_ns, uint64_t then_ns) {
  return now_ns - std::min(now_ns, then_ns);
}

}  // namespace

void LoadRecorder::BeginWindow(uint64_t now_ns) {
  MutexLock lock(&mutex_);
  window_ns_ = now_ns;
}

void LoadRecorder::Record(const LoadOutcome& outcome) {
  MutexLock lock(&mutex_);
  if (!window_ns_.has_value() || outcome.due_ns < *window_ns_) {
    ++report_.warmup_count;
    return;
  }
  ++report_.request_count;
  std::string fault;
  if (!outcome.status.ok()) {
    ++report_.errors[absl::StrCat(
        absl::StatusCodeToString(outcome.status.code()),
        outcome.reason.empty() ? "" : " ", outcome.reason)];
    fault = absl::StrCat(DescribeTarget(outcome.target), ": ",
                         outcome.status.ToString());
    if (WasGivenUp(outcome)) {
      AddWait(outcome.due_ns, outcome.ended_ns, 1);
    }
  } else if (outcome.fault.has_value()) {
    ++report_.wrong_count;
    fault = *outcome.fault;
  } else {
    ++report_.right_count;
    report_.text_bytes += outcome.cost.text_bytes;
    report_.wire_bytes += outcome.cost.wire_bytes;
    report_.message_bytes += outcome.cost.message_bytes;
    report_.latency.Add(
        (Since(outcome.ended_ns, outcome.due_ns) + outcome.cost.decode_ns) /
        1000);
  }
  if (!fault.empty() && report_.faults.size() < kFaultsKeptMax) {
    report_.faults.push_back(std::move(fault));
  }
}

void LoadRecorder::CountRetry() {
  MutexLock lock(&mutex_);
  ++report_.retry_count;
}

void LoadRecorder::CountUnanswered(uint64_t due_ns, uint64_t now_ns,
                                   uint64_t count) {
  MutexLock lock(&mutex_);
  report_.unanswered_count += count;
  AddWait(due_ns, now_ns, count);
}

void LoadRecorder::AddLowerBound(uint64_t due_ns, uint64_t now_ns) {
  MutexLock lock(&mutex_);
  AddWait(due_ns, now_ns, 1);
}

void LoadRecorder::AddWait(uint64_t due_ns, uint64_t now_ns, uint64_t count) {
  if (count == 0 || !window_ns_.has_value() || due_ns < *window_ns_) {
    return;
  }
  const uint64_t latency_us = Since(now_ns, due_ns) / 1000;
  report_.latency.Add(latency_us, count);
  report_.lower_bound_count += count;
  report_.lower_bound_max_us = std::max(report_.lower_bound_max_us, latency_us);
}

LoadReport LoadRecorder::Finish(uint64_t now_ns) {
  MutexLock lock(&mutex_);
  LoadReport report = report_;
  if (window_ns_.has_value()) {
    report.elapsed_seconds =
        static_cast<double>(Since(now_ns, *window_ns_)) / 1e9;
  }
  return report;
}

}  // namespace quire
