// SPDX-License-Identifier: Apache-2.0
//
// RLZ-ZZZ of "Access Time Tradeoffs in Archive Compression", section 5, "Three
// Streams": factors too short to be worth an offset are literals, and these
// have a stream of their own.
//
//   size in bytes of the tokens        varint, at least 1
//   size of the token stream as stored    varint
//   size of the offset stream as stored   varint
//   token stream     raw DEFLATE of varints: see TokenKind::kFactorsAndRuns
//   offset stream    raw DEFLATE of little-endian integers, each of as many
//                    bytes as the dictionary's last position has; nothing at
//                    all if there are none
//   literal stream   raw DEFLATE of bytes, to the end; nothing if there are
//   none
//
// Runs of literals share their token, and offsets have no bytes that are always
// 0: fewer symbols to decode, and a repeated offset is a match for zlib.
#ifndef QUIRE_CODECS_RLZ_PAPER_ZZZ_FORM_H_
#define QUIRE_CODECS_RLZ_PAPER_ZZZ_FORM_H_

#include <array>
#include <string>
#include <vector>

#include "codecs/rlz/paper/deflated_streams.h"
#include "codecs/rlz/paper/factor_form.h"
#include "codecs/zlib/zlib_stream.h"

namespace quire {

class ZzzForm final : public FactorForm {
 public:
  // `zlib_level` is 1 to 9.
  ZzzForm(int zlib_level, size_t dictionary_size);

  absl::StatusOr<ByteView> Write(ByteView raw,
                                 const FactorList& factors) override;
  absl::Status Read(ByteView stored, ByteView dictionary, size_t raw_size,
                    size_t offset, MutableByteView out) override;

 private:
  void Collect(ByteView raw, const FactorList& factors);
  void AddLiterals(ByteView literals);

  const size_t offset_size_;
  DeflateStream deflate_;
  // Tokens, offsets, literals; then as streams.
  std::array<std::string, 3> bytes_;
  std::array<std::vector<uint8_t>, 3> streams_;
  std::vector<uint8_t> stored_;

  DeflatedStream tokens_{"token"};
  DeflatedStream offsets_{"offset"};
  DeflatedStream literals_{"literal"};
};

}  // namespace quire

#endif  // QUIRE_CODECS_RLZ_PAPER_ZZZ_FORM_H_
