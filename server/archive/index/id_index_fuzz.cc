// SPDX-License-Identifier: GPL-3.0-or-later
//
// Arbitrary bytes as the three sections of ids. An accepted index must find its
// own ids.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "codecs/base/bytes.h"
#include "codecs/base/check.h"
#include "codecs/base/endian.h"
#include "server/archive/index/id_index.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace quire;  // NOLINT(google-build-using-namespace)
  constexpr size_t kHeadSize = 8;
  if (size < kHeadSize) {
    return 0;
  }
  IdIndex::Counts counts;
  counts.document_count = LoadLittleEndian<uint16_t>(data);
  counts.derived_id_count = std::min<uint64_t>(
      LoadLittleEndian<uint16_t>(data + 2), counts.document_count);
  counts.id_size_bytes = LoadLittleEndian<uint16_t>(data + 4);
  ByteView rest(data + kHeadSize, size - kHeadSize);
  const auto take = [&rest](size_t wanted) {
    const ByteView taken = rest.first(std::min(wanted, rest.size()));
    rest = rest.subspan(taken.size());
    return taken;
  };
  IdIndex::Sections sections;
  sections.runs = take(data[6] & 0x7Fu);
  if (data[6] >= 0x80) {
    sections.order = take(data[7]);
  }
  sections.ids = rest;
  std::vector<bool> repeats;
  const auto index = IdIndex::Parse(sections, counts, repeats);
  if (!index.ok()) {
    return 0;
  }
  std::string previous;
  uint64_t previous_ordinal = 0;
  IdIndex::Cursor cursor(*index, 0);
  for (uint64_t rank = 0; rank < counts.document_count; ++rank, cursor.Next()) {
    const std::string id = index->Get(rank);
    const uint64_t ordinal = index->OrdinalAt(rank);
    const IdIndex::Ranks ranks = index->Find(id);
    QUIRE_CHECK(cursor.id() == id && ranks.begin <= rank && rank < ranks.end &&
                id.size() <= index->id_size_bytes_max() &&
                ordinal < counts.document_count &&
                index->RankOf(ordinal) == rank &&
                (rank == 0 || previous < id ||
                 (previous == id && previous_ordinal < ordinal)));
    previous = id;
    previous_ordinal = ordinal;
  }
  QUIRE_CHECK(cursor.at_end());
  return 0;
}
