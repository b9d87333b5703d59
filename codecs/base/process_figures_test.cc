// SPDX-License-Identifier: Apache-2.0
#include "codecs/base/process_figures.h"

#include <map>
#include <string>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

namespace quire {
namespace {

TEST(ProcessFiguresTest, AreInBytesAndSeconds) {
  std::map<std::string, double> values;
  for (const ProcessFigure& figure : ReadProcessFigures()) {
    values[figure.name] = figure.value;
  }
  const double resident = values.at("process_resident_memory_bytes");
  // The program takes megabytes, but not that many pages.
  EXPECT_GT(resident, 1 << 20);
  EXPECT_LT(resident, values.at("process_virtual_memory_bytes"));
  const double start = values.at("process_start_time_seconds");
  const auto now = static_cast<double>(absl::ToUnixSeconds(absl::Now()));
  EXPECT_GT(start, now - 86'400);
  EXPECT_LE(start, now + 2);
  EXPECT_GE(values.at("process_open_fds"), 3);
  EXPECT_LE(values.at("process_open_fds"), values.at("process_max_fds"));
}

}  // namespace
}  // namespace quire
