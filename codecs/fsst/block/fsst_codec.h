// SPDX-License-Identifier: Apache-2.0
//
// The block codec `fsst`: documents that are short, and read one at a time
// without the rest of their block. What it stores is
//
//   one byte: 0, or 1 and then a symbol table in its published form
//       (symbol_table.h);
//   an FSST block (fsst_block.h), whose codes are those of that table, or after
//       0 those of the archive's, CodecContext::symbol_table.
//
// Of general-purpose codecs even LZ4 makes web pages half as large as this; but
// a range costs time in proportion to the range alone, and blocks after 0 are
// what answers on the wire in FSST are cut from.
#ifndef QUIRE_CODECS_FSST_BLOCK_FSST_CODEC_H_
#define QUIRE_CODECS_FSST_BLOCK_FSST_CODEC_H_

#include <memory>
#include <optional>

#include "absl/status/statusor.h"

#include "codecs/base/bytes.h"
#include "codecs/block_codec.h"

namespace quire {

enum class FsstCodecLevel {
  // The archive's table for all blocks; where there is none, as kOwnTables.
  // Blocks take no memory that is not there already.
  kArchiveTable = 1,
  // A table of its own for each block that this makes smaller by a 32nd or
  // more: mixed text gains a fifth, lines of one kind nothing. A range of such
  // a block costs some two microseconds more, for reading the table.
  kOwnTables = 2,
  // As kOwnTables, with the shortest codes that the same tables allow.
  kMax = 3,
};

// `info` is the codec's entry in the registry. `context` may be null, and its
// table empty: then each block has its own.
// Scratch for encoding takes some 5 bytes for each byte of the largest block.
// Errors: InvalidArgument  the context's symbol table is malformed.
absl::StatusOr<std::unique_ptr<BlockCodec>> MakeFsstCodec(
    const CodecInfo& info, FsstCodecLevel level,
    const std::shared_ptr<const CodecContext>& context, CodecUse use);

// The FSST block in what the codec stored, if its codes are those of the
// archive's table; not checked further, borrows `stored`.
std::optional<ByteView> FindArchiveTableBlock(ByteView stored);

}  // namespace quire

#endif  // QUIRE_CODECS_FSST_BLOCK_FSST_CODEC_H_
