// SPDX-License-Identifier: Apache-2.0
#ifndef QUIRE_CODECS_ZSTD_DECODER_SEQUENCE_TABLE_H_
#define QUIRE_CODECS_ZSTD_DECODER_SEQUENCE_TABLE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "codecs/base/bytes.h"
#include "codecs/zstd/decoder/fse_table.h"

namespace quire {

// What a sequence says, each with codes of its own (RFC 8878, section
// 3.1.1.3.2.1.1).
enum class SequenceField { kLiteralSize, kDistance, kMatchSize };

// What a decoder's state stands for: a value of base + the next extra_bits
// bits, and later the state of next_base + the next bit_count bits. Distances
// are as the format numbers them: 1 to 3 are recent ones, others 3 too large.
struct SequenceCell {
  uint32_t base = 0;
  uint16_t next_base = 0;
  uint8_t bit_count = 0;
  uint8_t extra_bits = 0;
};

static_assert(sizeof(SequenceCell) == sizeof(uint64_t));

// The states of one field. Thread-compatible.
class SequenceTable {
 public:
  explicit SequenceTable(SequenceField field) : field_(field) {}

  SequenceTable(const SequenceTable&) = delete;
  SequenceTable& operator=(const SequenceTable&) = delete;

  // Sets the table as the compression mode `mode` (0 to 3) says, which may be
  // to leave it as it is; returns how many bytes from the front of `section`
  // it took. None if it is wrong.
  std::optional<size_t> Read(unsigned mode, ByteView section);

  // Forgets the table.
  void Reset() { cells_ = nullptr; }

  // 1 << log() of them. REQUIRES: Read() succeeded since Reset().
  const SequenceCell* cells() const { return cells_; }

  unsigned log() const { return log_; }

 private:
  void Build(const FseCounts& counts);

  // Those that the format defines.
  static const SequenceTable& Predefined(SequenceField field);

  const SequenceField field_;
  unsigned log_ = 0;
  // own_, those of a predefined table, or null.
  const SequenceCell* cells_ = nullptr;
  std::array<SequenceCell, size_t{1} << kFseLogMax> own_;
};

}  // namespace quire

#endif  // QUIRE_CODECS_ZSTD_DECODER_SEQUENCE_TABLE_H_
