// SPDX-License-Identifier: Apache-2.0
//
// Scans that come past damaged blocks.
#ifndef QUIRE_CLIENT_CLI_DAMAGED_SCAN_H_
#define QUIRE_CLIENT_CLI_DAMAGED_SCAN_H_

#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"

#include "client/quire/client.h"

namespace quire {

// Text that cannot be read, and why.
struct LostText {
  uint64_t offset = 0;
  // At least 1.
  uint64_t size_bytes = 0;
  absl::Status status;
};

// Client::Scan() that, where a block is damaged, hands out all text before it
// and calls `lose` for its part of the range; if that returns OK, the scan
// continues after it. Text and lost text come in their order. Text that comes
// in stored order is not searched for damage: then the scan fails as always.
// Blocks. Thread-safe. REQUIRES: `options` has no resume token. It needs an
// archive_uuid, or the text after damage may be of other contents.
// Errors: as Client::Scan(), of a damaged block only if the server does not say
// where it is; and what `take` and `lose` return.
absl::Status ScanPastDamage(
    Client& client, absl::string_view archive, const ScanOptions& options,
    absl::FunctionRef<absl::Status(const ScanPiece& piece)> take,
    absl::FunctionRef<absl::Status(const LostText& lost)> lose);

}  // namespace quire

#endif  // QUIRE_CLIENT_CLI_DAMAGED_SCAN_H_
