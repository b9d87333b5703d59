// SPDX-License-Identifier: GPL-3.0-or-later
//
// A page of a ListDocuments as columns, in the order of the archive.
#ifndef QUIRE_SERVER_SERVICE_CALLS_COLUMN_PAGE_H_
#define QUIRE_SERVER_SERVICE_CALLS_COLUMN_PAGE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

#include "proto/quire/v1/archive.pb.h"

#include "codecs/base/positions.h"
#include "codecs/filter/field_value.h"
#include "server/archive/document_cursor.h"
#include "server/service/calls/document_page.h"
#include "server/service/calls/listed_page.h"
#include "server/service/calls/value_column_builder.h"
#include "server/service/catalog/served_archive.h"

namespace quire {

// A page of columns, one value for each document (archive.proto,
// ListDocumentsRequest.columns). Reads only the attributes that the request
// wants, or its filter needs. Memory: 16 bytes for each document of the page,
// and twice the columns. Thread-compatible.
class ColumnPage final : public ListedPage {
 public:
  // See MakeListedPage(). REQUIRES: the request has columns.
  ColumnPage(const ServedContents& contents,
             const v1::ListDocumentsRequest& request, uint32_t page_size);

  absl::Status Select(ExcludedUntil excluded_until) override;

  size_t count() const override { return ordinals_.size(); }

  size_t done_count() const override { return done_count_; }

  DocumentOrdinal OrdinalAt(size_t index) const override {
    return {ordinals_[index]};
  }

  FieldView Attribute(absl::string_view name) override;
  void Take(absl::Span<const FieldView> fields) override;

  void LeaveOut() override { ++done_count_; }

  uint64_t taken_bytes() const override;

  uint64_t memory_bytes() const override {
    // Columns grow by doubling.
    return ordinals_.capacity() * sizeof(uint64_t) + 2 * taken_bytes();
  }

  uint64_t selected_bytes_max() const override {
    return sizeof(uint64_t) * 2 * page_size_;
  }

  void Truncate() override;
  v1::ListDocumentsResponse Finish(bool is_filtered) override;

 private:
  // Attributes of the documents that were taken.
  struct Columns {
    Columns(const ServedContents& contents,
            const v1::ListDocumentsRequest& request);

    size_t document_count = 0;
    ValueColumnBuilder ordinals;
    ValueColumnBuilder ids;
    ValueColumnBuilder offsets;
    ValueColumnBuilder sizes_bytes;
    ValueColumnBuilder capture_times_ms;
    ValueColumnBuilder media_types;
    ValueColumnBuilder record_types;
    std::vector<ValueColumnBuilder> fields;
  };

  const ServedContents& contents_;
  const v1::ListDocumentsRequest& request_;
  const uint32_t page_size_;
  DocumentCursor cursor_;
  std::vector<uint64_t> ordinals_;
  size_t done_count_ = 0;
  // Ordinal after which the list continues; unset on the last page.
  std::optional<uint64_t> last_ordinal_;
  std::optional<Columns> columns_;
};

}  // namespace quire

#endif  // QUIRE_SERVER_SERVICE_CALLS_COLUMN_PAGE_H_
