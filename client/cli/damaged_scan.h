// SPDX-License-Identifier: Apache-2.0
//
// Scans that continue after damaged blocks.
#ifndef QUIRE_CLIENT_CLI_DAMAGED_SCAN_H_
#define QUIRE_CLIENT_CLI_DAMAGED_SCAN_H_

#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"

#include "client/quire/client.h"

namespace quire {

// Text that cannot be read, and the reason.
struct LostText {
  uint64_t offset = 0;
  // At least 1.
  uint64_t size_bytes = 0;
  absl::Status status;
};

// Client::Scan() that continues after damage. Before a damaged block it passes
// on all text, then calls `lose` for the block's part of the range; if that
// returns OK, the scan continues after it. Text and lost text come in order.
// For text in stored order damage is not located: the scan fails.
//
// Blocks. Thread-safe. REQUIRES: `options` has no resume token. Without
// its archive_uuid, text after damage may be of other contents.
// Errors: as Client::Scan(), but for a damaged block only if the server does
// not report its location; and those of `take` and `lose`.
absl::Status ScanPastDamage(
    Client& client, absl::string_view archive, const ScanOptions& options,
    absl::FunctionRef<absl::Status(const ScanPiece& piece)> take,
    absl::FunctionRef<absl::Status(const LostText& lost)> lose);

}  // namespace quire

#endif  // QUIRE_CLIENT_CLI_DAMAGED_SCAN_H_
