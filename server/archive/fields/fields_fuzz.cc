// SPDX-License-Identifier: GPL-3.0-or-later
//
// Arbitrary bytes as the directory of a container, as a page of its index and
// as a block of values. Whatever is accepted must be readable, and must be the
// same after it is written again.
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "codecs/base/bytes.h"
#include "codecs/base/check.h"
#include "server/archive/container/container_directory.h"
#include "server/archive/fields/field_block.h"
#include "server/archive/fields/field_directory.h"

namespace quire {
namespace {

constexpr uint64_t kDataSizeBytes = 1 << 20;

void ParseDirectory(ByteView bytes, uint64_t document_count) {
  const auto entries = ParseContainerDirectory(bytes);
  if (!entries.ok()) {
    return;
  }
  QUIRE_CHECK(EncodeContainerDirectory(*entries) == AsText(bytes));
  for (const ContainerEntry& entry : *entries) {
    const auto fields =
        SegmentFields::Parse(entry.head, document_count, kDataSizeBytes);
    if (!fields.ok()) {
      continue;
    }
    for (uint64_t i = 0; i < document_count; ++i) {
      const size_t page = fields->PageOf(i);
      QUIRE_CHECK(fields->StartOf(page) <= i && i < fields->pages()[page].end);
    }
    QUIRE_CHECK(SegmentFields::EstimateBytes(bytes.size()) >=
                2 * fields->MemoryBytes());
    QUIRE_CHECK(fields->Encode() == AsText(entry.head));
  }
}

void ParsePage(ByteView bytes, uint64_t document_count) {
  const std::vector<FieldColumn> columns = {{"a", FieldType::kString},
                                            {"b", FieldType::kFloat},
                                            {"c", FieldType::kBoolean}};
  const auto page =
      FieldPage::Parse(bytes, columns, 5, 5 + document_count, kDataSizeBytes);
  if (!page.ok()) {
    return;
  }
  for (uint64_t i = 5; i < 5 + document_count; ++i) {
    const FieldPage::Group& group = page->GroupOf(i);
    QUIRE_CHECK(group.first <= i && i < group.end &&
                group.blocks.size() == columns.size());
  }
  QUIRE_CHECK(FieldPage::Encode(page->groups()) == AsText(bytes));
}

void ParseBlock(ByteView bytes, FieldType type, bool has_nulls,
                uint32_t count) {
  const auto block = FieldBlock::Parse(bytes, type, has_nulls, count);
  if (!block.ok()) {
    return;
  }
  size_t size_bytes = 0;
  for (uint32_t i = 0; i < count; ++i) {
    const FieldView value = (*block)[i];
    QUIRE_CHECK(TypeOf(value) == type ||
                (has_nulls && TypeOf(value) == FieldType::kNull));
    if (const auto* const text = std::get_if<absl::string_view>(&value)) {
      for (const char byte : *text) {
        size_bytes += byte == 'x' ? 1 : 0;
      }
    }
  }
  QUIRE_CHECK(size_bytes <= bytes.size() * uint64_t{count});
}

}  // namespace
}  // namespace quire

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace quire;  // NOLINT(google-build-using-namespace)
  if (size < 2) {
    return 0;
  }
  const ByteView bytes(data + 2, size - 2);
  const uint64_t count = uint64_t{data[1]} + 1;
  switch (data[0] % 12) {
    case 0:
      ParseDirectory(bytes, count);
      break;
    case 1:
      ParsePage(bytes, count);
      break;
    default:
      ParseBlock(bytes, static_cast<FieldType>(data[0] % 12 / 2),
                 data[0] % 2 == 1, static_cast<uint32_t>(count));
  }
  return 0;
}
