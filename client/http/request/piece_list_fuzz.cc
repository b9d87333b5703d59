// SPDX-License-Identifier: Apache-2.0
//
// Descriptions of pieces: bytes are refused, or give a list within its limits.
#include <cstddef>
#include <cstdint>

#include "client/http/bodies/file_directory.h"
#include "client/http/request/piece_list.h"
#include "client/http/request/request_target.h"
#include "codecs/base/archive_name.h"
#include "codecs/base/check.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::StatusOr<quire::PieceList> list =
      quire::ParsePieceList({reinterpret_cast<const char*>(data), size});
  if (!list.ok()) {
    QUIRE_CHECK(absl::IsFailedPrecondition(list.status()));
    return 0;
  }
  QUIRE_CHECK(
      quire::IsArchiveName({list->archive.data(), list->archive.size()}));
  QUIRE_CHECK(quire::IsArchiveUuid({list->uuid.data(), list->uuid.size()}));
  QUIRE_CHECK(!list->pieces.empty() && list->pieces.size() <= 64);
  for (const quire::Piece& piece : list->pieces) {
    QUIRE_CHECK(piece.size_bytes <= uint64_t{1} << 53);
    QUIRE_CHECK(piece.file.empty() ||
                quire::IsFileName({piece.file.data(), piece.file.size()}));
  }
  return 0;
}
