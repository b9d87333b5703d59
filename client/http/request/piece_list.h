// SPDX-License-Identifier: Apache-2.0
//
// NAME.pieces.json: how a file of `quire-http --files` is made of the logical
// space of an archive and other files. docs/http.md documents it.
#ifndef QUIRE_CLIENT_HTTP_REQUEST_PIECE_LIST_H_
#define QUIRE_CLIENT_HTTP_REQUEST_PIECE_LIST_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace quire {

inline constexpr size_t kPieceListSizeBytesMax = size_t{64} << 10;

struct Piece {
  // Name of a file; empty: the whole logical space of the archive.
  std::string file = {};
  // At most 2^53.
  uint64_t size_bytes = 0;

  bool operator==(const Piece&) const = default;
};

struct PieceList {
  std::string archive;
  // Uuid of the contents that the space must have.
  std::string uuid;
  // 1 to 64.
  std::vector<Piece> pieces;
};

// Thread-safe.
// Errors: FailedPrecondition  names the member that is wrong.
absl::StatusOr<PieceList> ParsePieceList(absl::string_view json);

}  // namespace quire

#endif  // QUIRE_CLIENT_HTTP_REQUEST_PIECE_LIST_H_
