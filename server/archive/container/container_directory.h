// SPDX-License-Identifier: GPL-3.0-or-later
//
// The directory of a segment's container (FORMAT.md, "Container"): its
// sub-sections, each with a head that an opened segment holds.
#ifndef QUIRE_SERVER_ARCHIVE_CONTAINER_CONTAINER_DIRECTORY_H_
#define QUIRE_SERVER_ARCHIVE_CONTAINER_CONTAINER_DIRECTORY_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "codecs/base/bytes.h"

namespace quire {

// Sub-sections of a container. Never renumbered.
enum class SubsectionId : uint64_t {
  kFields = 1,
  kCaptures = 2,
  kDeposits = 3,
};

// A sub-section as the directory has it. Borrows its head.
struct ContainerEntry {
  // A SubsectionId, or one of a later program.
  uint64_t id = 0;
  ByteView head;
};

// Parses the section "container directory", untrusted. The ids ascend.
// Errors: DataLoss.
absl::StatusOr<std::vector<ContainerEntry>> ParseContainerDirectory(
    ByteView section);

// REQUIRES: 1 to 16 entries, whose ids ascend.
std::string EncodeContainerDirectory(std::span<const ContainerEntry> entries);

}  // namespace quire

#endif  // QUIRE_SERVER_ARCHIVE_CONTAINER_CONTAINER_DIRECTORY_H_
