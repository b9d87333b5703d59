// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/service/calls/listed_page.h"

#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "codecs/base/status_macros.h"
#include "codecs/filter/filter.h"
#include "server/service/calls/column_page.h"

namespace quire {
namespace {

// Memory of a value in a message, and of the message.
constexpr uint64_t kFieldValueBytes = 64;
// Memory of a string without its text.
constexpr uint64_t kStringBytes = 64;

void FillField(const FieldView& value, v1::FieldValue& field) {
  switch (TypeOf(value)) {
    case FieldType::kNull:
      break;
    case FieldType::kString: {
      const auto text = std::get<absl::string_view>(value);
      field.set_string_value(text.data(), text.size());
      break;
    }
    case FieldType::kInteger:
      field.set_integer_value(std::get<int64_t>(value));
      break;
    case FieldType::kFloat:
      field.set_float_value(std::get<double>(value));
      break;
    case FieldType::kBoolean:
      field.set_boolean_value(std::get<bool>(value));
      break;
    case FieldType::kTime:
      field.set_time_us(std::get<FieldTime>(value).us);
      break;
  }
}

// A message for each document.
class RowPage final : public ListedPage {
 public:
  RowPage(const ServedContents& contents,
          const v1::ListDocumentsRequest& request, uint32_t page_size)
      : contents_(contents), request_(request), page_size_(page_size) {}

  absl::Status Select(ExcludedUntil excluded_until) override {
    // Clear() would keep its memory.
    response_ = v1::ListDocumentsResponse();
    matches_.clear();
    fields_bytes_ = 0;
    QUIRE_RETURN_IF_ERROR(FillDocumentPage(contents_, request_, page_size_,
                                           excluded_until, response_));
    memory_bytes_ = response_.next_page_token().size();
    for (const v1::Document& document : response_.documents()) {
      memory_bytes_ += kListedEntryBytes + document.id().size() +
                       document.media_type().size() +
                       document.record_type().size();
    }
    for (const std::string& prefix : response_.common_prefixes()) {
      memory_bytes_ += kListedEntryBytes + prefix.size();
    }
    return absl::OkStatus();
  }

  size_t count() const override {
    return static_cast<size_t>(response_.documents_size());
  }

  size_t done_count() const override { return matches_.size(); }

  DocumentOrdinal OrdinalAt(size_t index) const override {
    return {response_.documents(static_cast<int>(index)).ordinal()};
  }

  FieldView Attribute(absl::string_view name) override {
    const v1::Document& document =
        response_.documents(static_cast<int>(matches_.size()));
    DocumentAttributeValues values = {
        .id = document.id(),
        .ordinal = document.ordinal(),
        .size_bytes = document.range().size_bytes()};
    if (document.has_capture_time_ms()) {
      values.time_ms = document.capture_time_ms();
    }
    if (document.has_media_type()) {
      values.type = document.media_type();
    }
    if (document.has_record_type()) {
      values.record_type = document.record_type();
    }
    return AttributeOf(values, name);
  }

  void Take(absl::Span<const FieldView> fields) override {
    v1::Document& document =
        *response_.mutable_documents(static_cast<int>(matches_.size()));
    for (const FieldView& value : fields) {
      v1::FieldValue& field = *document.add_fields();
      FillField(value, field);
      fields_bytes_ += field.ByteSizeLong();
    }
    memory_bytes_ += FieldsMemoryBytes(fields);
    matches_.push_back(true);
  }

  void LeaveOut() override { matches_.push_back(false); }

  uint64_t taken_bytes() const override { return fields_bytes_; }

  uint64_t memory_bytes() const override { return memory_bytes_; }

  uint64_t selected_bytes_max() const override {
    return kPageSizeBytesMax + page_size_ * kListedEntryBytes;
  }

  void Truncate() override {
    if (matches_.size() < count()) {
      TruncateDocumentPage(contents_, request_,
                           static_cast<int>(matches_.size()), response_);
    }
  }

  v1::ListDocumentsResponse Finish(bool is_filtered) override {
    int kept = 0;
    auto& documents = *response_.mutable_documents();
    for (int i = 0; i < documents.size(); ++i) {
      if (matches_[static_cast<size_t>(i)]) {
        documents.SwapElements(i, kept++);
      }
    }
    documents.DeleteSubrange(kept, documents.size() - kept);
    response_.set_is_filtered(is_filtered);
    return std::move(response_);
  }

 private:
  const ServedContents& contents_;
  const v1::ListDocumentsRequest& request_;
  const uint32_t page_size_;
  v1::ListDocumentsResponse response_;
  // For each document that is done: true if it was taken.
  std::vector<bool> matches_;
  uint64_t fields_bytes_ = 0;
  uint64_t memory_bytes_ = 0;
};

}  // namespace

uint64_t FieldsMemoryBytes(absl::Span<const FieldView> fields) {
  uint64_t size_bytes = 0;
  for (const FieldView& value : fields) {
    size_bytes += kFieldValueBytes;
    if (const auto* text = std::get_if<absl::string_view>(&value)) {
      size_bytes += kStringBytes + text->size();
    }
  }
  return size_bytes;
}

std::unique_ptr<ListedPage> MakeListedPage(
    const ServedContents& contents, const v1::ListDocumentsRequest& request,
    uint32_t page_size) {
  if (request.has_columns()) {
    return std::make_unique<ColumnPage>(contents, request, page_size);
  }
  return std::make_unique<RowPage>(contents, request, page_size);
}

}  // namespace quire
