// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/redaction/field_strings.h"

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "codecs/base/bytes.h"
#include "codecs/base/status_macros.h"
#include "codecs/filter/field_value.h"
#include "codecs/filter/filter.h"
#include "server/archive/archive_part.h"
#include "server/archive/field_reader.h"
#include "server/archive/fields/field_block.h"
#include "server/archive/fields/field_directory.h"
#include "server/archive/fields/segment_field_reader.h"
#include "server/archive/segment_reader.h"

namespace quire {
namespace {

// Counts what it adds.
class StringAdder {
 public:
  explicit StringAdder(TextSink& sink) : sink_(sink) {}

  void Add(ByteView string) {
    if (!string.empty()) {
      sink_.Add(string);
      sink_.Break();
      ++count_;
    }
  }

  void Add(const FieldValue& value) {
    if (const auto* const string = std::get_if<std::string>(&value)) {
      Add(AsBytes(*string));
    }
  }

  uint64_t count() const { return count_; }

 private:
  TextSink& sink_;
  uint64_t count_ = 0;
};

}  // namespace

absl::Status AddFieldStrings(
    const Archive& archive, absl::FunctionRef<bool(uint64_t ordinal)> is_wanted,
    TextSink& sink) {
  std::vector<uint32_t> columns;
  for (uint32_t i = 0; i < archive.fields().size(); ++i) {
    if (archive.fields()[i].type == FieldType::kString) {
      columns.push_back(i);
    }
  }
  if (columns.empty()) {
    return absl::OkStatus();
  }
  std::vector<std::string> last(columns.size());
  DocumentFieldReader reader(archive, std::move(columns),
                             BlockingPartLoader(archive));
  StringAdder adder(sink);
  std::vector<FieldView> values;
  for (uint64_t i = 0; i < archive.info().document_count; ++i) {
    if (!is_wanted(i)) {
      continue;
    }
    QUIRE_RETURN_IF_ERROR(reader.Read(DocumentOrdinal{i}, values).status());
    for (size_t k = 0; k < values.size(); ++k) {
      const auto* const string = std::get_if<absl::string_view>(&values[k]);
      if (string != nullptr && *string != last[k]) {
        last[k] = std::string(*string);
        adder.Add(AsBytes(last[k]));
      }
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<uint64_t> AddStoredFieldStrings(const Archive& archive,
                                               uint32_t segment_index,
                                               TextSink& sink) {
  const SegmentFields& fields = archive.ReaderOf(segment_index).fields();
  StringAdder adder(sink);
  for (size_t i = 0; i < fields.pages().size(); ++i) {
    const SegmentFields::Page& page = fields.pages()[i];
    QUIRE_ASSIGN_OR_RETURN(const PartBytes bytes,
                           archive.ReaderOf(segment_index).ReadPart(page.part));
    QUIRE_ASSIGN_OR_RETURN(
        const FieldPage parsed,
        FieldPage::Parse(bytes.bytes, fields.columns(), fields.StartOf(i),
                         page.end, fields.data_size_bytes()));
    for (const FieldPage::Group& group : parsed.groups()) {
      for (size_t column = 0; column < group.blocks.size(); ++column) {
        const FieldPage::Block& block = group.blocks[column];
        adder.Add(block.least);
        adder.Add(block.greatest);
        if (!block.part.has_value()) {
          continue;
        }
        QUIRE_ASSIGN_OR_RETURN(
            const PartBytes values,
            archive.ReaderOf(segment_index).ReadPart(*block.part));
        QUIRE_ASSIGN_OR_RETURN(
            const FieldBlock strings,
            FieldBlock::Parse(values.bytes, fields.columns()[column].type,
                              block.has_nulls,
                              static_cast<uint32_t>(group.end - group.first)));
        strings.VisitStrings([&](ByteView string) { adder.Add(string); });
      }
    }
  }
  return adder.count();
}

}  // namespace quire
