// SPDX-License-Identifier: Apache-2.0
#include "loadtest/raw_tally.h"

#include <sys/resource.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"

namespace quire {
namespace {

// User and system time of a process; 0 if it is not there.
double CpuSeconds(int pid) {
  std::ifstream file(absl::StrCat("/proc/", pid, "/stat"));
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  const size_t name_end = text.rfind(')');
  if (pid == 0 || name_end == std::string::npos) {
    return 0;
  }
  // From the third field of proc(5) on; utime and stime are 14 and 15.
  const std::vector<std::string> fields =
      absl::StrSplit(text.substr(name_end + 2), ' ');
  uint64_t user = 0;
  uint64_t system = 0;
  if (fields.size() < 13 || !absl::SimpleAtoi(fields[11], &user) ||
      !absl::SimpleAtoi(fields[12], &system)) {
    return 0;
  }
  return static_cast<double>(user + system) /
         static_cast<double>(sysconf(_SC_CLK_TCK));
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
