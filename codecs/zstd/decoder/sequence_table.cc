// SPDX-License-Identifier: Apache-2.0
#include "codecs/zstd/decoder/sequence_table.h"

#include <algorithm>
#include <span>

namespace quire {
namespace {

// Codes as cells without a next state: each begins where the one before ends.
// Those without extra bits are their values.
template <size_t kCount>
constexpr std::array<SequenceCell, kCount> MakeCodes(
    uint32_t first, const std::array<uint8_t, kCount>& extra_bits) {
  std::array<SequenceCell, kCount> codes = {};
  for (size_t i = 0; i < kCount; ++i) {
    codes[i] = {.base = first, .extra_bits = extra_bits[i]};
    first += uint32_t{1} << extra_bits[i];
  }
  return codes;
}

constexpr auto kLiteralSizeCodes = MakeCodes<36>(
    0, {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,  0,  0,  0,  0,  1,  1,
        1, 1, 2, 2, 3, 3, 4, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16});
constexpr auto kMatchSizeCodes = MakeCodes<53>(
    3, {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,  0,  0,  0,  0,  0,  0, 0,
        0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,  0,  0,  0,  1,  1,  1, 1,
        2, 2, 3, 3, 4, 4, 5, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16});
constexpr auto kDistanceCodes = [] {
  std::array<SequenceCell, 32> codes = {};
  for (size_t i = 0; i < codes.size(); ++i) {
    codes[i] = {.base = uint32_t{1} << i,
                .extra_bits = static_cast<uint8_t>(i)};
  }
  return codes;
}();
static_assert(kLiteralSizeCodes.back().base == 65536 &&
              kMatchSizeCodes.back().base == 65539);

constexpr int16_t kLiteralSizeCounts[] = {
    4, 3, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 1, 1,  1,  2,  2,
    2, 2, 2, 2, 2, 2, 2, 3, 2, 1, 1, 1, 1, 1, -1, -1, -1, -1};
constexpr int16_t kMatchSizeCounts[] = {
    1, 4, 3, 2, 2, 2, 2, 2, 2, 1, 1,  1,  1,  1,  1,  1,  1, 1,
    1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,  1,  1,  1,  1,  1,  1, 1,
    1, 1, 1, 1, 1, 1, 1, 1, 1, 1, -1, -1, -1, -1, -1, -1, -1};
constexpr int16_t kDistanceCounts[] = {1, 1, 1, 1, 1,  1,  2,  2,  2, 1,
                                       1, 1, 1, 1, 1,  1,  1,  1,  1, 1,
                                       1, 1, 1, 1, -1, -1, -1, -1, -1};

struct FieldFormat {
  std::span<const SequenceCell> codes;
  unsigned log_max;
  std::span<const int16_t> predefined_counts;
  unsigned predefined_log;
};

const FieldFormat& FormatOf(SequenceField field) {
  // In enumeration order.
  static constexpr FieldFormat kFormats[] = {
      {kLiteralSizeCodes, 9, kLiteralSizeCounts, 6},
      {kDistanceCodes, 8, kDistanceCounts, 5},
      {kMatchSizeCodes, 9, kMatchSizeCounts, 6},
  };
  return kFormats[static_cast<size_t>(field)];
}

enum Mode : unsigned { kPredefined, kOneCode, kCompressed, kRepeated };

}  // namespace

std::optional<size_t> SequenceTable::Read(unsigned mode, ByteView section) {
  const FieldFormat& format = FormatOf(field_);
  switch (mode) {
    case kPredefined: {
      const SequenceTable& predefined = Predefined(field_);
      log_ = predefined.log_;
      cells_ = predefined.cells_;
      return 0;
    }
    case kOneCode: {
      if (section.empty() || section.front() >= format.codes.size()) {
        return std::nullopt;
      }
      own_[0] = format.codes[section.front()];
      log_ = 0;
      cells_ = own_.data();
      return 1;
    }
    case kCompressed: {
      FseCounts counts;
      const size_t size =
          ReadFseCounts(section, format.log_max,
                        static_cast<unsigned>(format.codes.size()) - 1, counts);
      if (size == 0) {
        return std::nullopt;
      }
      Build(counts);
      return size;
    }
    case kRepeated:
      break;
  }
  return cells_ == nullptr ? std::nullopt : std::optional<size_t>(0);
}

void SequenceTable::Build(const FseCounts& counts) {
  const SequenceCell* const codes = FormatOf(field_).codes.data();
  BuildFseTable(counts, [&](size_t state, const FseStep& step) {
    SequenceCell cell = codes[step.symbol];
    cell.next_base = static_cast<uint16_t>(step.next_base);
    cell.bit_count = static_cast<uint8_t>(step.bit_count);
    own_[state] = cell;
  });
  log_ = counts.log;
  cells_ = own_.data();
}

const SequenceTable& SequenceTable::Predefined(SequenceField field) {
  struct All {
    All() {
      for (SequenceTable& table : tables) {
        const FieldFormat& format = FormatOf(table.field_);
        FseCounts counts;
        std::ranges::copy(format.predefined_counts, counts.counts.begin());
        counts.symbol_count =
            static_cast<unsigned>(format.predefined_counts.size());
        counts.log = format.predefined_log;
        table.Build(counts);
      }
    }

    SequenceTable tables[3] = {SequenceTable(SequenceField::kLiteralSize),
                               SequenceTable(SequenceField::kDistance),
                               SequenceTable(SequenceField::kMatchSize)};
  };

  static const auto* const all = new All;
  return all->tables[static_cast<size_t>(field)];
}

}  // namespace quire
