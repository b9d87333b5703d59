// SPDX-License-Identifier: GPL-3.0-or-later
//
// Arbitrary states of scrubbing: what is accepted is written and read again
// unchanged.
#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"

#include "codecs/base/check.h"
#include "server/service/scrub/scrub_state.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto state = quire::ParseScrubState(
      absl::string_view(reinterpret_cast<const char*>(data), size));
  if (state.ok()) {
    const auto again = quire::ParseScrubState(quire::EncodeScrubState(*state));
    QUIRE_CHECK(again.ok() && *again == *state, "a state survives its file");
  }
  return 0;
}
