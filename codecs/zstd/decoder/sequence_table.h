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

// Fields of a sequence, each with its own codes (RFC 8878, section
// 3.1.1.3.2.1.1).
enum class SequenceField { kLiteralSize, kDistance, kMatchSize };

// Meaning of a decoder state: a value of base + the next extra_bits bits, then
// the state of next_base + the next bit_count bits. Distances are numbered by
// the format: 1 to 3 are recent ones, others are 3 too large.
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

  // Sets the table by compression mode `mode` (0 to 3), one of which keeps the
  // table; returns the bytes used at the front of `section`. Nothing if it is
  // malformed.
  std::optional<size_t> Read(unsigned mode, ByteView section);

  // Drops the table.
  void Reset() { cells_ = nullptr; }

  // 1 << log() cells. REQUIRES: Read() succeeded since Reset().
  const SequenceCell* cells() const { return cells_; }

  unsigned log() const { return log_; }

 private:
  void Build(const FseCounts& counts);

  // The tables that the format defines.
  static const SequenceTable& Predefined(SequenceField field);

  const SequenceField field_;
  unsigned log_ = 0;
  // Points to own_ or a predefined table, or is null.
  const SequenceCell* cells_ = nullptr;
  std::array<SequenceCell, size_t{1} << kFseLogMax> own_;
};

}  // namespace quire

#endif  // QUIRE_CODECS_ZSTD_DECODER_SEQUENCE_TABLE_H_
