// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/service/calls/document_page.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

#include "codecs/base/status_macros.h"
#include "server/archive/document_cursor.h"
#include "server/service/base/service_error.h"
#include "server/service/calls/resume_token.h"
#include "server/service/read/read_planner.h"

namespace quire {
namespace {

constexpr uint32_t kPageSizeDefault = 100;
// Searches in segments, and ids read, to pass withdrawn documents: some ten
// milliseconds. In many segments one pass takes more; those for each segment
// suffice to find an entry in the present state.
constexpr uint64_t kPassingWorkMax = 4000;
constexpr uint64_t kPassingWorkPerSegmentMax = 8;
// Tag and value of Document.occurrence.
constexpr uint64_t kOccurrenceSizeBytesMax = 11;
// Memory of a parsed filter for each byte of its text.
constexpr uint64_t kFilterBytesPerByte = 48;
// Bounds the comparisons for each byte of an id.
constexpr size_t kDelimiterSizeBytesMax = 256;

// Entries of one page. Borrows all.
class ListPage {
 public:
  // With `numbers_ids` documents get the number among those with their id.
  ListPage(const ArchiveView& view, const v1::ListDocumentsRequest& request,
           bool numbers_ids, uint32_t size_max,
           v1::ListDocumentsResponse& response)
      : view_(view),
        request_(request),
        numbers_ids_(numbers_ids),
        size_max_(size_max),
        response_(response) {}

  // False: the page ends before this entry, and has its token.
  bool Add(Document document) {
    if (!HasRoom(document.id.size() + document.media_type.size() +
                 document.record_type.size())) {
      return false;
    }
    v1::Document& listed = *response_.add_documents();
    if (numbers_ids_) {
      const Archive::Occurrence occurrence = view_.archive->OccurrenceOf(
          document.ordinal, document.id, view_.document_count);
      if (occurrence.count > 1) {
        listed.set_occurrence(occurrence.number);
      }
    }
    FillDocument(std::move(document), listed);
    ends_with_prefix_ = false;
    return true;
  }

  bool AddPrefix(absl::string_view common_prefix) {
    if (!HasRoom(common_prefix.size())) {
      return false;
    }
    response_.add_common_prefixes(common_prefix.data(), common_prefix.size());
    ends_with_prefix_ = true;
    return true;
  }

  // Ends the page, which may be empty: the listing continues after `cursor`, of
  // a document that is not withdrawn.
  void EndAfter(const Archive::IdCursor& cursor) {
    response_.set_next_page_token(MakePageToken(view_, request_, cursor));
  }

  // Ends the page, which may be empty: the listing continues after `passed`.
  void EndAt(const Archive::IdCursor& passed) {
    // The token of a page with entries names no withdrawn document.
    if (response_.documents().empty() && response_.common_prefixes().empty()) {
      response_.set_next_page_token(MakePageToken(view_, request_, passed));
    } else {
      EndAfterLast();
    }
  }

 private:
  bool HasRoom(uint64_t entry_bytes) {
    bytes_ +=
        entry_bytes + kDocumentFramingSizeBytesMax + kOccurrenceSizeBytesMax;
    const int count =
        response_.documents_size() + response_.common_prefixes_size();
    // One in any case, or the listing would not end.
    if (count == 0 ||
        (count < static_cast<int>(size_max_) && bytes_ <= kPageSizeBytesMax)) {
      return true;
    }
    EndAfterLast();
    return false;
  }

  void EndAfterLast() {
    Archive::IdCursor last;
    if (ends_with_prefix_) {
      last.id = *response_.common_prefixes().rbegin();
      last.is_common_prefix = true;
    } else {
      last.id = response_.documents().rbegin()->id();
      last.ordinal = response_.documents().rbegin()->ordinal();
    }
    response_.set_next_page_token(MakePageToken(view_, request_, last));
  }

  const ArchiveView view_;
  const v1::ListDocumentsRequest& request_;
  const bool numbers_ids_;
  const uint32_t size_max_;
  v1::ListDocumentsResponse& response_;
  uint64_t bytes_ = 0;
  bool ends_with_prefix_ = false;
};

// Adds entries in order of id. Runs of withdrawn ids are passed by one search
// each. In the present state an entry follows each run, so that the page bounds
// their number. In an earlier one the next document may be withdrawn, too: then
// the page ends once this is much work. Withdrawn documents whose ids are not
// withdrawn are passed one by one, as excluded ones are.
void ListById(const ArchiveView& view, const WithdrawnDocuments* withdrawn,
              const v1::ListDocumentsRequest& request,
              std::optional<Archive::IdCursor> after,
              ExcludedUntil excluded_until, ListPage& page) {
  const uint64_t work_max =
      kPassingWorkMax +
      kPassingWorkPerSegmentMax * view.archive->info().segment_count;
  uint64_t work = 0;
  uint64_t excluded_count = 0;
  bool is_passing = true;
  while (is_passing) {
    is_passing = false;
    std::optional<Archive::IdCursor> passed;
    const Archive::ListingCost cost = view.archive->VisitListing(
        {.prefix = request.prefix(),
         .delimiter = request.delimiter(),
         .after = after.has_value() ? &*after : nullptr,
         .end = view.document_count},
        [&](const Document& document) {
          const uint64_t ordinal = document.ordinal.value;
          const bool is_withdrawn =
              withdrawn != nullptr &&
              withdrawn->Find(document.ordinal).has_value();
          if (is_withdrawn && withdrawn->Match(document.id).has_value()) {
            passed = withdrawn->Pass(document.id);
            return false;
          }
          if (!is_withdrawn && excluded_until(ordinal) == ordinal) {
            return page.Add(document);
          }
          if (++excluded_count == kPassedMax) {
            const Archive::IdCursor cursor = {.id = document.id,
                                              .ordinal = ordinal};
            is_withdrawn ? page.EndAt(cursor) : page.EndAfter(cursor);
          }
          return excluded_count < kPassedMax;
        },
        [&](absl::string_view prefix) {
          if (withdrawn != nullptr) {
            passed = withdrawn->PassPrefix(
                view, prefix, after.has_value() ? &*after : nullptr, work_max,
                work);
          }
          return !passed.has_value() && page.AddPrefix(prefix);
        });
    if (passed.has_value()) {
      work += cost.search_count;
      is_passing = work < work_max;
      after = std::move(passed);
      if (!is_passing) {
        page.EndAt(*after);
      }
    }
  }
}

// Adds entries in order of the archive.
absl::Status ListByOrdinal(const ServedContents& contents,
                           const v1::ListDocumentsRequest& request,
                           ExcludedUntil excluded_until, ListPage& page) {
  DocumentCursor cursor(*contents.view.archive);
  std::optional<uint64_t> last_ordinal;
  QUIRE_RETURN_IF_ERROR(SelectByOrdinal(
      contents, request, excluded_until,
      [&](DocumentOrdinal ordinal) {
        cursor.MoveTo(ordinal);
        return page.Add({.ordinal = ordinal,
                         .id = std::string(cursor.Id()),
                         .range = cursor.Range(),
                         .capture_time_ms = cursor.CaptureTimeMs(),
                         .record_type = std::string(cursor.RecordType()),
                         .media_type = std::string(cursor.MediaType())});
      },
      last_ordinal));
  if (last_ordinal.has_value()) {
    page.EndAfter({.id = {}, .ordinal = *last_ordinal});
  }
  return absl::OkStatus();
}

}  // namespace

uint64_t ListRequestBytes(uint64_t size_bytes, absl::string_view filter) {
  return 2 * size_bytes + kFilterBytesPerByte * filter.size();
}

absl::StatusOr<uint32_t> PageSizeOf(std::optional<uint32_t> requested,
                                    uint32_t page_size_max) {
  if (requested == 0U) {
    return ServiceError(absl::StatusCode::kInvalidArgument,
                        v1::MALFORMED_REQUEST,
                        "page_size is 0; leave it out or set 1 or more");
  }
  return std::min(requested.value_or(kPageSizeDefault), page_size_max);
}

absl::Status CheckListedSelection(const v1::ListDocumentsRequest& request) {
  if (request.has_first_ordinal() &&
      (!request.prefix().empty() || request.has_delimiter())) {
    return ServiceError(
        absl::StatusCode::kInvalidArgument, v1::MALFORMED_REQUEST,
        "first_ordinal is set together with prefix or delimiter; a list is "
        "ordered either by id, with these, or as the archive");
  }
  if (request.has_columns() && !request.has_first_ordinal()) {
    return ServiceError(
        absl::StatusCode::kInvalidArgument, v1::MALFORMED_REQUEST,
        "columns is set without first_ordinal; set it to list columns in the "
        "order of the archive, or leave columns out");
  }
  const size_t delimiter_size = request.delimiter().size();
  if (request.has_delimiter() &&
      (delimiter_size == 0 || delimiter_size > kDelimiterSizeBytesMax)) {
    return ServiceError(
        absl::StatusCode::kInvalidArgument, v1::MALFORMED_REQUEST,
        absl::StrCat("delimiter has ", delimiter_size,
                     " bytes, must have 1 to ", kDelimiterSizeBytesMax,
                     "; leave it out to list all documents"));
  }
  return absl::OkStatus();
}

absl::Status SelectByOrdinal(
    const ServedContents& contents, const v1::ListDocumentsRequest& request,
    ExcludedUntil excluded_until,
    absl::FunctionRef<bool(DocumentOrdinal ordinal)> add,
    std::optional<uint64_t>& last_ordinal) {
  uint64_t first_ordinal = request.first_ordinal();
  if (request.has_page_token()) {
    QUIRE_ASSIGN_OR_RETURN(const Archive::IdCursor after,
                           ParsePageToken(request));
    first_ordinal = after.ordinal + 1;
  }
  const WithdrawnDocuments* const withdrawn =
      contents.withdrawal.documents.get();
  const auto next_listed = [&](uint64_t ordinal) {
    return withdrawn == nullptr ? ordinal : withdrawn->NextListed(ordinal);
  };
  const uint64_t end = contents.view.document_count;
  uint64_t excluded_count = 0;
  for (uint64_t ordinal = next_listed(first_ordinal); ordinal < end;) {
    const uint64_t candidate = excluded_until(ordinal);
    if (candidate > ordinal) {
      if (++excluded_count == kPassedMax && candidate < end) {
        last_ordinal = candidate - 1;
        break;
      }
      ordinal = next_listed(candidate);
      continue;
    }
    if (!add(DocumentOrdinal{ordinal})) {
      break;
    }
    ordinal = next_listed(ordinal + 1);
  }
  return absl::OkStatus();
}

absl::Status FillDocumentPage(const ServedContents& contents,
                              const v1::ListDocumentsRequest& request,
                              uint32_t page_size, ExcludedUntil excluded_until,
                              v1::ListDocumentsResponse& response) {
  const WithdrawnDocuments* const withdrawn =
      contents.withdrawal.documents.get();
  ListPage page(contents.view, request,
                withdrawn != nullptr && withdrawn->has_selected(), page_size,
                response);
  if (request.has_first_ordinal()) {
    return ListByOrdinal(contents, request, excluded_until, page);
  }
  std::optional<Archive::IdCursor> after;
  if (request.has_page_token()) {
    QUIRE_ASSIGN_OR_RETURN(after, ParsePageToken(request));
  }
  ListById(contents.view, withdrawn, request, std::move(after), excluded_until,
           page);
  return absl::OkStatus();
}

void TruncateDocumentPage(const ServedContents& contents,
                          const v1::ListDocumentsRequest& request,
                          int document_count,
                          v1::ListDocumentsResponse& response) {
  auto& documents = *response.mutable_documents();
  documents.DeleteSubrange(document_count, documents.size() - document_count);
  const v1::Document& last = documents[document_count - 1];
  auto& prefixes = *response.mutable_common_prefixes();
  while (!prefixes.empty() && *prefixes.rbegin() > last.id()) {
    prefixes.RemoveLast();
  }
  response.set_next_page_token(MakePageToken(
      contents.view, request, {.id = last.id(), .ordinal = last.ordinal()}));
}

}  // namespace quire
