// SPDX-License-Identifier: Apache-2.0
#include "client/cli/damaged_scan.h"

#include <algorithm>
#include <optional>

#include "client/quire/client_status.h"
#include "codecs/base/status_macros.h"

namespace quire {

absl::Status ScanPastDamage(
    Client& client, absl::string_view archive, const ScanOptions& options,
    absl::FunctionRef<absl::Status(const ScanPiece& piece)> take,
    absl::FunctionRef<absl::Status(const LostText& lost)> lose) {
  ScanOptions part = options;
  // Set while the text before the next known damage is being read.
  std::optional<LostText> lost;
  while (true) {
    bool has_places = false;
    const bool is_empty = part.size_bytes == uint64_t{0};
    const uint64_t start = part.offset;
    const absl::Status status =
        is_empty ? absl::OkStatus()
                 : client.Scan(archive, part, [&](const ScanPiece& piece) {
                     has_places |= !piece.places.empty();
                     QUIRE_RETURN_IF_ERROR(take(piece));
                     part.offset = piece.offset + piece.data.size();
                     return absl::OkStatus();
                   });
    if (!status.ok()) {
      const std::optional<DamagedText> damage = DamagedTextOf(status);
      if (!damage.has_value() || has_places) {
        return status;
      }
      if (part.stored_order && part.offset == start) {
        // The damage may have a location in logical order.
        part.stored_order = false;
        continue;
      }
      const uint64_t offset = part.offset + damage->before_size_bytes;
      if (lost.has_value() && offset >= lost->offset) {
        return status;
      }
      lost = {offset, damage->size_bytes, status};
    } else if (!lost.has_value()) {
      return absl::OkStatus();
    } else {
      QUIRE_RETURN_IF_ERROR(lose(*lost));
      part.offset = lost->offset + lost->size_bytes;
      lost.reset();
    }
    part.stored_order = false;
    if (lost.has_value()) {
      part.size_bytes = lost->offset - part.offset;
    } else if (options.size_bytes.has_value()) {
      const uint64_t end = options.offset + *options.size_bytes;
      part.size_bytes = end - std::min(end, part.offset);
    } else {
      part.size_bytes.reset();
    }
  }
}

}  // namespace quire
