// SPDX-License-Identifier: GPL-3.0-or-later
//
// Arbitrary bytes as a section of ids. An accepted table must find its own ids.
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "codecs/base/bytes.h"
#include "codecs/base/check.h"
#include "codecs/base/endian.h"
#include "server/archive/index/id_section.h"
#include "server/archive/index/id_table.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace quire;  // NOLINT(google-build-using-namespace)
  if (size < 4) {
    return 0;
  }
  const uint64_t count = data[0];
  const uint64_t id_size_bytes = LoadLittleEndian<uint16_t>(data + 1);
  const ByteView section(data + 3, size - 3);
  std::vector<bool> repeats;
  const auto table = IdTable::Parse(section, count, id_size_bytes, &repeats);
  if (!table.ok()) {
    return 0;
  }
  IdSectionBuilder again;
  std::string previous;
  IdTable::Cursor cursor(*table, 0);
  for (uint64_t rank = 0; rank < count; ++rank, cursor.Next()) {
    const std::string id = table->Get(rank);
    const uint64_t lower = table->LowerBound(id);
    const uint64_t upper = table->UpperBound(id);
    const IdTable::Ranks ranks = table->Find(id);
    const bool repeats_previous = rank > 0 && id == previous;
    QUIRE_CHECK(cursor.id() == id && ranks.begin == lower &&
                ranks.end == upper && lower <= rank && upper > rank &&
                (rank <= 0 || previous <= id) &&
                repeats[rank] == repeats_previous &&
                (lower == rank) != repeats_previous);
    again.Add(id);
    previous = id;
  }
  // The encoding is unique.
  QUIRE_CHECK(again.id_size_bytes() == id_size_bytes &&
              std::move(again).Build() == AsText(section));
  return 0;
}
