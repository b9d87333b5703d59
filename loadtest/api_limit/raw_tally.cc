// SPDX-License-Identifier: Apache-2.0
#include "loadtest/api_limit/raw_tally.h"

#include <sys/resource.h>

#include <ctime>

#include "absl/time/clock.h"

namespace quire {
namespace {

// User and system time of a process; 0 if it is not there.
double CpuSeconds(int pid) {
  clockid_t clock = 0;
  timespec time = {};
  if (pid == 0 || clock_getcpuclockid(pid, &clock) != 0 ||
      clock_gettime(clock, &time) != 0) {
    return 0;
  }
  return absl::ToDoubleSeconds(absl::DurationFromTimespec(time));
}

double OwnCpuSeconds() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return absl::ToDoubleSeconds(absl::DurationFromTimeval(usage.ru_utime) +
                               absl::DurationFromTimeval(usage.ru_stime));
}

}  // namespace

void RawTally::Begin() {
  MutexLock lock(&mutex_);
  ++open_count_;
}

void RawTally::End() {
  MutexLock lock(&mutex_);
  --open_count_;
  all_ended_.NotifyAll();
}

void RawTally::Fault(const std::string& fault) {
  MutexLock lock(&mutex_);
  stop_ = true;
  if (++fault_count_ == 1) {
    fault_ = fault;
  }
}

RawLoadReport RawTally::Count() {
  absl::SleepFor(options_.warm_up);
  RawLoadReport report;
  const uint64_t count_before = answer_count_;
  const uint64_t size_bytes_before = size_bytes_;
  const double server_cpu_before = CpuSeconds(options_.server_pid);
  const double own_cpu_before = OwnCpuSeconds();
  const absl::Time started = absl::Now();
  // On a machine that is busy elsewhere no answer may come within the time.
  do {
    absl::SleepFor(options_.duration);
  } while (answer_count_ == count_before && !stopped());
  report.answer_count = answer_count_ - count_before;
  report.size_bytes = size_bytes_ - size_bytes_before;
  report.server_cpu_seconds =
      CpuSeconds(options_.server_pid) - server_cpu_before;
  report.client_cpu_seconds = OwnCpuSeconds() - own_cpu_before;
  report.seconds = absl::ToDoubleSeconds(absl::Now() - started);
  stop_ = true;
  return report;
}

RawLoadReport RawTally::WaitForEnd(RawLoadReport report) {
  MutexLock lock(&mutex_);
  while (open_count_ > 0) {
    all_ended_.Wait(&mutex_);
  }
  report.fault_count = fault_count_;
  report.fault = fault_;
  return report;
}

}  // namespace quire
