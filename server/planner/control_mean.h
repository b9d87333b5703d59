// SPDX-License-Identifier: GPL-3.0-or-later
//
// The mean of something that is known of a sample only, from what is known of
// all: the method of control variates.
#ifndef QUIRE_SERVER_PLANNER_CONTROL_MEAN_H_
#define QUIRE_SERVER_PLANNER_CONTROL_MEAN_H_

#include <array>
#include <cstddef>
#include <cstdint>

namespace quire {

// Thread-compatible.
class ControlMean {
 public:
  static constexpr size_t kControlCount = 2;
  using Controls = std::array<double, kControlCount>;

  struct Estimate {
    double mean = 0;
    // Of one value, once what the controls explain is taken off.
    double variance = 0;
  };

  // `value` is that of one member of the sample, which has these controls.
  void Add(double value, const Controls& controls);
  void Add(const ControlMean& other);

  uint64_t count() const { return count_; }

  // By linear regression on the controls, whose means are known of all; of few
  // members, or controls that are the same everywhere, the mean of the sample.
  // REQUIRES: count() > 0.
  Estimate EstimateFor(const Controls& means) const;

 private:
  // Of the products of the i-th and the j-th of: 1, the controls, the value.
  using Sums =
      std::array<std::array<double, kControlCount + 2>, kControlCount + 2>;

  uint64_t count_ = 0;
  Sums sums_ = {};
};

}  // namespace quire

#endif  // QUIRE_SERVER_PLANNER_CONTROL_MEAN_H_
