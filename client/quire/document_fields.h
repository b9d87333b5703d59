// SPDX-License-Identifier: Apache-2.0
//
// Fields of listed documents as values of filters.
#ifndef QUIRE_CLIENT_QUIRE_DOCUMENT_FIELDS_H_
#define QUIRE_CLIENT_QUIRE_DOCUMENT_FIELDS_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/types/span.h"

#include "proto/quire/v1/archive.pb.h"

#include "codecs/filter/field_value.h"
#include "codecs/filter/filter.h"

namespace quire {

// Returns the value of a field, which borrows its string. Thread-safe.
FieldView ViewOf(const v1::FieldValue& value);

// Returns the fields of an archive, for Filter::Check(); those of types that
// this client does not know are left out. Thread-safe.
std::vector<FieldColumn> ColumnsOf(const v1::ArchiveDescription& archive);

// Evaluates a filter for listed documents. Immutable; thread-safe.
class DocumentMatcher {
 public:
  // `fields`: names of Document.fields, in their order. A name of the filter
  // that is neither there nor an attribute is null.
  DocumentMatcher(Filter filter, absl::Span<const std::string> fields);

  bool Matches(const v1::Document& document) const;

  const Filter& filter() const { return filter_; }

 private:
  Filter filter_;
  // For each name of the filter: its index in Document.fields. SIZE_MAX: an
  // attribute.
  std::vector<size_t> indexes_;
};

}  // namespace quire

#endif  // QUIRE_CLIENT_QUIRE_DOCUMENT_FIELDS_H_
