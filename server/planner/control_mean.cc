// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/planner/control_mean.h"

#include <algorithm>

namespace quire {
namespace {

// Of fewer members a line through them says nothing.
constexpr uint64_t kCountMin = 16;
// A control that varies less than this is the same everywhere.
constexpr double kVarianceMin = 1e-9;

constexpr size_t kValue = ControlMean::kControlCount + 1;

}  // namespace

void ControlMean::Add(double value, const Controls& controls) {
  std::array<double, kControlCount + 2> row = {1};
  std::ranges::copy(controls, row.begin() + 1);
  row[kValue] = value;
  ++count_;
  for (size_t i = 0; i < row.size(); ++i) {
    for (size_t j = 0; j < row.size(); ++j) {
      sums_[i][j] += row[i] * row[j];
    }
  }
}

void ControlMean::Add(const ControlMean& other) {
  count_ += other.count_;
  for (size_t i = 0; i < sums_.size(); ++i) {
    for (size_t j = 0; j < sums_.size(); ++j) {
      sums_[i][j] += other.sums_[i][j];
    }
  }
}

ControlMean::Estimate ControlMean::EstimateFor(const Controls& means) const {
  const auto count = static_cast<double>(count_);
  const auto mean = [&](size_t i) { return sums_[0][i] / count; };
  Sums left;
  for (size_t i = 0; i < left.size(); ++i) {
    for (size_t j = 0; j < left.size(); ++j) {
      left[i][j] = sums_[i][j] / count - mean(i) * mean(j);
    }
  }
  std::array<double, kControlCount + 2> distance = {};
  for (size_t i = 0; i < kControlCount; ++i) {
    distance[i + 1] = means[i] - mean(i + 1);
  }
  // One control after the other; what each explains is taken off the rest.
  double corrected = mean(kValue);
  for (size_t i = 1; i <= kControlCount && count_ >= kCountMin; ++i) {
    if (left[i][i] < kVarianceMin) {
      continue;
    }
    const Sums before = left;
    const double at = distance[i];
    corrected += before[i][kValue] / before[i][i] * at;
    for (size_t j = 1; j < left.size(); ++j) {
      const double slope = before[i][j] / before[i][i];
      distance[j] -= slope * at;
      for (size_t k = 1; k < left.size(); ++k) {
        left[j][k] -= slope * before[i][k];
      }
    }
  }
  return {.mean = corrected, .variance = std::max(left[kValue][kValue], 0.0)};
}

}  // namespace quire
