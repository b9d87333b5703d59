// SPDX-License-Identifier: GPL-3.0-or-later
//
// Any bytes as a plan.
#include <cstddef>
#include <cstdint>

#include "codecs/base/bytes.h"
#include "codecs/base/check.h"
#include "codecs/block_codec.h"
#include "server/planner/plan_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace quire;  // NOLINT(google-build-using-namespace)
  const auto planned = ParsePlan(AsText(ByteView(data, size)));
  if (planned.ok()) {
    QUIRE_CHECK(ParseCodecSpec(planned->codec).ok());
    CheckPlanFits(*planned, size).IgnoreError();
    for (const AutoObjective objective : kAutoObjectives) {
      if (!planned->auto_speeds.has_value()) {
        break;
      }
      for (const AutoSpeed& speed :
           SpeedsOf(*planned->auto_speeds, objective)) {
        TimeCost(speed, objective, kBlockSizeBytesMax);
      }
    }
  }
  return 0;
}
