// SPDX-License-Identifier: Apache-2.0
//
// The block codec `fsst`, for short documents that are read one at a time
// without the rest of their block. A stored block is
//
//   one byte: 0, or 1 and then a symbol table in its published form
//       (symbol_table.h);
//   an FSST block (fsst_block.h). Its codes are those of that table, or after
//       0 those of the archive's, CodecContext::symbol_table.
//
// General-purpose codecs, even LZ4, make web pages half as large. Here a range
// costs time in proportion to its own size, and FSST answers on the wire are
// cut from blocks after 0.
#ifndef QUIRE_CODECS_FSST_BLOCK_FSST_CODEC_H_
#define QUIRE_CODECS_FSST_BLOCK_FSST_CODEC_H_

#include <memory>
#include <optional>

#include "absl/status/statusor.h"

#include "codecs/base/bytes.h"
#include "codecs/block_codec.h"

namespace quire {

enum class FsstCodecLevel {
  // The archive's table for all blocks; without one, like kOwnTables. Blocks
  // need no memory of their own.
  kArchiveTable = 1,
  // A table for each block that becomes smaller by 1/32 or more with it. Mixed
  // text saves a fifth, lines of one kind nothing. A range of such a block
  // takes about two microseconds longer, to read the table.
  kOwnTables = 2,
  // Like kOwnTables, with the shortest codes that these tables allow.
  kMax = 3,
};

// `info` is the codec's entry in the registry. `context` may be null and its
// table empty: then each block has its own table. Encoding needs about 5 bytes
// of scratch per byte of the largest block.
// Errors: InvalidArgument  the context's symbol table is malformed.
absl::StatusOr<std::unique_ptr<BlockCodec>> MakeFsstCodec(
    const CodecInfo& info, FsstCodecLevel level,
    const std::shared_ptr<const CodecContext>& context, CodecUse use);

// Returns the FSST block inside `stored` if it uses the archive's table. Does
// not check it further. Borrows `stored`.
std::optional<ByteView> FindArchiveTableBlock(ByteView stored);

}  // namespace quire

#endif  // QUIRE_CODECS_FSST_BLOCK_FSST_CODEC_H_
