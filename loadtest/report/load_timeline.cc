// SPDX-License-Identifier: Apache-2.0
#include "loadtest/report/load_timeline.h"

#include <algorithm>

namespace quire {
namespace {

constexpr size_t kWiden = 10;

}  // namespace

LoadTimeline::Part& LoadTimeline::PartAt(uint64_t elapsed_ns) {
  while (elapsed_ns / part_ns_ >= kPartsMax) {
    std::vector<Part> wide((parts_.size() + kWiden - 1) / kWiden);
    for (size_t i = 0; i < parts_.size(); ++i) {
      Part& part = wide[i / kWiden];
      part.request_count += parts_[i].request_count;
      part.text_bytes += parts_[i].text_bytes;
      part.latency.Merge(parts_[i].latency);
    }
    parts_ = std::move(wide);
    part_ns_ *= kWiden;
  }
  const auto index = static_cast<size_t>(elapsed_ns / part_ns_);
  parts_.resize(std::max(parts_.size(), index + 1));
  return parts_[index];
}

void LoadTimeline::Add(uint64_t elapsed_ns, uint64_t latency_us,
                       uint64_t text_bytes) {
  Part& part = PartAt(elapsed_ns);
  ++part.request_count;
  part.text_bytes += text_bytes;
  part.latency.Add(latency_us);
}

void LoadTimeline::AddUnanswered(uint64_t elapsed_ns, uint64_t latency_us,
                                 uint64_t count) {
  PartAt(elapsed_ns).latency.Add(latency_us, count);
}

void LoadTimeline::ExtendTo(uint64_t elapsed_ns) {
  if (elapsed_ns > 0) {
    PartAt(elapsed_ns - 1);
  }
}

}  // namespace quire
