// SPDX-License-Identifier: Apache-2.0
#ifndef QUIRE_LOADTEST_REPORT_LOAD_TIMELINE_H_
#define QUIRE_LOADTEST_REPORT_LOAD_TIMELINE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "loadtest/report/latency_histogram.h"

namespace quire {

// Answers in each part of a run, in bounded memory. Parts are 0.1 seconds long
// at first. Whenever there would be more than 300, all become ten times as
// long: 0.1 s up to half a minute, 1 s up to five minutes.
// Thread-compatible.
class LoadTimeline {
 public:
  struct Part {
    uint64_t request_count = 0;
    uint64_t text_bytes = 0;
    LatencyHistogram latency;
  };

  static constexpr size_t kPartsMax = 300;

  // Adds a right answer, `elapsed_ns` after the beginning.
  void Add(uint64_t elapsed_ns, uint64_t latency_us, uint64_t text_bytes);

  // Adds `count` waits of `latency_us` each that were abandoned `elapsed_ns`
  // after the beginning. They count only in the latencies.
  void AddUnanswered(uint64_t elapsed_ns, uint64_t latency_us, uint64_t count);

  // Appends parts without answers up to the end of a run of `elapsed_ns`.
  void ExtendTo(uint64_t elapsed_ns);

  double part_seconds() const { return static_cast<double>(part_ns_) / 1e9; }

  const std::vector<Part>& parts() const { return parts_; }

 private:
  // Returns the part of that time, creating it if necessary.
  Part& PartAt(uint64_t elapsed_ns);

  uint64_t part_ns_ = 100'000'000;
  std::vector<Part> parts_;
};

}  // namespace quire

#endif  // QUIRE_LOADTEST_REPORT_LOAD_TIMELINE_H_
