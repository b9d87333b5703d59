// SPDX-License-Identifier: Apache-2.0
#ifndef QUIRE_LOADTEST_REPORT_LOAD_TIMELINE_H_
#define QUIRE_LOADTEST_REPORT_LOAD_TIMELINE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "loadtest/report/latency_histogram.h"

namespace quire {

// What came in each part of a run, in a bounded amount of memory: parts are 0.1
// seconds long at first and become ten times as long, all of them, whenever
// there would be more than 300: 0.1 s up to half a minute, 1 s up to five
// minutes.
// Thread-compatible.
class LoadTimeline {
 public:
  struct Part {
    uint64_t request_count = 0;
    uint64_t text_bytes = 0;
    LatencyHistogram latency;
  };

  static constexpr size_t kPartsMax = 300;

  // A right answer came `elapsed_ns` after the beginning.
  void Add(uint64_t elapsed_ns, uint64_t latency_us, uint64_t text_bytes);

  // `count` waits of `latency_us` each were given up `elapsed_ns` after the
  // beginning. They count in the latencies alone.
  void AddUnanswered(uint64_t elapsed_ns, uint64_t latency_us, uint64_t count);

  // Makes parts without any answer for what is left of a run that lasted
  // `elapsed_ns`.
  void ExtendTo(uint64_t elapsed_ns);

  double part_seconds() const { return static_cast<double>(part_ns_) / 1e9; }

  const std::vector<Part>& parts() const { return parts_; }

 private:
  // The part of that time, which exists from then on.
  Part& PartAt(uint64_t elapsed_ns);

  uint64_t part_ns_ = 100'000'000;
  std::vector<Part> parts_;
};

}  // namespace quire

#endif  // QUIRE_LOADTEST_REPORT_LOAD_TIMELINE_H_
