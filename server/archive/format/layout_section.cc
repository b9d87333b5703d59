// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/archive/format/layout_section.h"

#include "codecs/base/bytes.h"
#include "codecs/base/endian.h"
#include "codecs/base/varint.h"
#include "server/archive/format/column.h"

namespace quire {

std::string EncodeLayout(const LayoutSection& layout) {
  std::string section;
  AppendVarint(layout.stored_text_size_bytes, section);
  AppendVarint(layout.runs.size(), section);
  std::vector<uint64_t> column;
  column.reserve(layout.runs.size());
  // The kind of run: all are copies of stored text.
  section.push_back('\0');
  for (const StoredRun& run : layout.runs) {
    column.push_back(run.size_bytes);
  }
  AppendColumn(column, section);
  column.clear();
  uint64_t expected_offset = 0;
  for (const StoredRun& run : layout.runs) {
    column.push_back(
        ZigZag(static_cast<int64_t>(run.stored_offset - expected_offset)));
    expected_offset = run.stored_offset + run.size_bytes;
  }
  AppendColumn(column, section);
  for (const uint64_t sum : layout.sums) {
    uint8_t bytes[sizeof(sum)];
    StoreLittleEndian(sum, bytes);
    section.append(AsText(bytes).data(), sizeof(sum));
  }
  return section;
}

}  // namespace quire
