// SPDX-License-Identifier: GPL-3.0-or-later
//
// The documents of one page of a ListDocuments, and the answer that is made of
// them.
#ifndef QUIRE_SERVER_SERVICE_CALLS_LISTED_PAGE_H_
#define QUIRE_SERVER_SERVICE_CALLS_LISTED_PAGE_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

#include "proto/quire/v1/archive.pb.h"

#include "codecs/base/positions.h"
#include "codecs/filter/field_value.h"
#include "server/service/calls/document_page.h"
#include "server/service/catalog/served_archive.h"

namespace quire {

// A page is selected from memory; then each of its documents is taken, with its
// fields, or left out, in order. Thread-compatible.
class ListedPage {
 public:
  virtual ~ListedPage() = default;

  // Chooses the documents after the request's page token; forgets those of
  // before. See FillDocumentPage().
  // Errors: InvalidArgument  MALFORMED_REQUEST: of the page token.
  virtual absl::Status Select(ExcludedUntil excluded_until) = 0;

  // Documents that are chosen; and those that were taken or left out.
  virtual size_t count() const = 0;
  virtual size_t done_count() const = 0;

  // REQUIRES for the following: done_count() < count().

  // REQUIRES: index < count().
  virtual DocumentOrdinal OrdinalAt(size_t index) const = 0;
  // Attribute of the next document, null for other names and without a value.
  // Valid until that document is done.
  virtual FieldView Attribute(absl::string_view name) = 0;
  // Takes the next document, with values of the request's fields.
  virtual void Take(absl::Span<const FieldView> fields) = 0;
  virtual void LeaveOut() = 0;

  // Size of what was taken, which Select() did not bound.
  virtual uint64_t taken_bytes() const = 0;

  // Memory of the page, in bytes; and an upper bound on it after Select().
  virtual uint64_t memory_bytes() const = 0;
  virtual uint64_t selected_bytes_max() const = 0;

  // Ends the page after the documents that are done. REQUIRES: one is.
  virtual void Truncate() = 0;

  // Returns the answer. REQUIRES: all documents are done. The page is unusable
  // afterwards.
  virtual v1::ListDocumentsResponse Finish(bool is_filtered) = 0;
};

// Upper bound on the memory, in bytes, that `fields` add to a page.
uint64_t FieldsMemoryBytes(absl::Span<const FieldView> fields);

// Returns a page of documents, or of columns if the request has them. All
// arguments must outlive it; contents.view is StateOfList() of the request.
std::unique_ptr<ListedPage> MakeListedPage(
    const ServedContents& contents, const v1::ListDocumentsRequest& request,
    uint32_t page_size);

}  // namespace quire

#endif  // QUIRE_SERVER_SERVICE_CALLS_LISTED_PAGE_H_
