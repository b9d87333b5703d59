// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/service/read/answer.h"

#include "codecs/base/checksum.h"

namespace quire {

uint64_t SizeBytesOf(const std::vector<BlockPiece>& pieces) {
  uint64_t size_bytes = 0;
  for (const BlockPiece& piece : pieces) {
    size_bytes += piece.size_bytes;
  }
  return size_bytes;
}

uint64_t ChecksumOf(const std::vector<BlockPiece>& pieces) {
  if (pieces.size() == 1) {
    return Checksum64(pieces.front().bytes());
  }
  Checksummer64 checksummer;
  for (const BlockPiece& piece : pieces) {
    checksummer.Add(piece.bytes());
  }
  return checksummer.Get();
}

}  // namespace quire
