// SPDX-License-Identifier: GPL-3.0-or-later
#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

#include "codecs/base/checksum.h"
#include "codecs/base/status_macros.h"
#include "server/service/base/service_error.h"
#include "server/service/calls/methods.h"
#include "server/service/calls/request_parser.h"
#include "server/service/calls/resume_token.h"
#include "server/service/read/answer_bytes.h"
#include "server/service/read/read_planner.h"

namespace quire {
namespace {

constexpr uint32_t kPageSizeDefault = 100;
// Ids and media types may be long: a page ends before the entry that would
// exceed this size. The token comes on top.
constexpr uint64_t kPageSizeBytesMax = uint64_t{1} << 20;
// Searches in segments, and ids read, to pass withdrawn documents: some ten
// milliseconds. In many segments one pass takes more; those for each segment
// suffice to find an entry in the present state.
constexpr uint64_t kPassingWorkMax = 4000;
constexpr uint64_t kPassingWorkPerSegmentMax = 8;
// Bounds the comparisons for each byte of an id.
constexpr size_t kDelimiterSizeBytesMax = 256;

absl::StatusOr<uint32_t> PageSize(const ServiceCore& core, bool is_set,
                                  uint32_t page_size) {
  if (!is_set) {
    return kPageSizeDefault;
  }
  if (page_size == 0) {
    return ServiceError(absl::StatusCode::kInvalidArgument,
                        v1::MALFORMED_REQUEST,
                        "page_size is 0; leave it out or set 1 or more");
  }
  return std::min(page_size, core.limits.page_size_max());
}

absl::Status Withheld() {
  return ServiceError(
      absl::StatusCode::kPermissionDenied, v1::DOCUMENT_WITHDRAWN,
      "an archive that has it, or may have it and is not open, has withdrawn "
      "documents, whose text it may contain; read in WIRE_ENCODING_IDENTITY");
}

}  // namespace

absl::Status ListArchives(const ServiceCore& core, CallAccess& access,
                          const v1::ListArchivesRequest& request,
                          v1::ListArchivesResponse& response) {
  QUIRE_RETURN_IF_ERROR(RefuseIfDraining(core));
  QUIRE_ASSIGN_OR_RETURN(
      const uint32_t page_size,
      PageSize(core, request.has_page_size(), request.page_size()));
  *response.mutable_limits() = core.limits;
  // The token holds the last name sent, so listing resumes correctly even if
  // archives were replaced.
  std::optional<std::string> last_name;
  if (request.has_page_token()) {
    QUIRE_ASSIGN_OR_RETURN(last_name,
                           ParseArchivesPageToken(request.page_token()));
  }
  return access.Visit(
      Right::kList, [&](const v1::ArchiveDescription& archive, const auto&) {
        if (last_name.has_value() && archive.name() <= *last_name) {
          return;
        }
        const int count = response.archives_size();
        if (count < static_cast<int>(page_size)) {
          *response.add_archives() = archive;
        } else if (response.next_page_token().empty()) {
          response.set_next_page_token(
              MakeArchivesPageToken(response.archives(count - 1).name()));
        }
      });
}

absl::Status GetArchive(const ServiceCore& core, CallAccess& access,
                        const v1::GetArchiveRequest& request,
                        v1::GetArchiveResponse& response) {
  QUIRE_RETURN_IF_ERROR(RefuseIfDraining(core));
  QUIRE_ASSIGN_OR_RETURN(*response.mutable_archive(),
                         access.DescribeFully(request.archive()));
  *response.mutable_limits() = core.limits;
  return absl::OkStatus();
}

absl::Status GetSymbolTable(const ServiceCore& core, CallAccess& access,
                            const v1::GetSymbolTableRequest& request,
                            v1::GetSymbolTableResponse& response) {
  QUIRE_RETURN_IF_ERROR(RefuseIfDraining(core));
  // A table is derived from the archive's text.
  std::string opening;
  bool is_found = false;
  QUIRE_RETURN_IF_ERROR(access.Visit(
      Right::kRead, [&](const v1::ArchiveDescription& archive,
                        const std::shared_ptr<const ServedArchive>& served) {
        if (is_found || !archive.has_symbol_table_hash() ||
            archive.symbol_table_hash() != request.hash()) {
          return;
        }
        if (served == nullptr) {
          opening = archive.name();
        } else if (served->wire_table != nullptr) {
          response.set_table(served->wire_table->serialised);
          response.set_checksum(served->wire_table->hash);
          access.Reading(*served);
          is_found = true;
        }
      }));
  if (is_found &&
      access.MayHaveWithdrawn(SharedPart::kSymbolTable, request.hash())) {
    response.Clear();
    return Withheld();
  }
  if (is_found) {
    return absl::OkStatus();
  }
  if (!opening.empty()) {
    return access.Await(opening);
  }
  return ServiceError(absl::StatusCode::kNotFound, v1::SYMBOL_TABLE_NOT_FOUND,
                      "no archive here has a symbol table of that hash");
}

namespace {

absl::Status CheckSelection(const v1::ListDocumentsRequest& request) {
  if (request.has_first_ordinal() &&
      (!request.prefix().empty() || request.has_delimiter())) {
    return ServiceError(
        absl::StatusCode::kInvalidArgument, v1::MALFORMED_REQUEST,
        "first_ordinal is set together with prefix or delimiter; a list is "
        "ordered either by id, with these, or as the archive");
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

// Entries of one page. Borrows all.
class ListPage {
 public:
  ListPage(const ArchiveView& view, const v1::ListDocumentsRequest& request,
           uint32_t size_max, v1::ListDocumentsResponse& response)
      : view_(view),
        request_(request),
        size_max_(size_max),
        response_(response) {}

  // False: the page ends before this entry, and has its token.
  bool Add(const Document& document) {
    if (!HasRoom(document.id.size() + document.media_type.size() +
                 document.record_type.size())) {
      return false;
    }
    FillDocument(document, *response_.add_documents());
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
    bytes_ += entry_bytes + kDocumentFramingSizeBytesMax;
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
  const uint32_t size_max_;
  v1::ListDocumentsResponse& response_;
  uint64_t bytes_ = 0;
  bool ends_with_prefix_ = false;
};

// Adds entries in order of id. Runs of withdrawn documents are passed by one
// search each. In the present state an entry follows each run, so that the page
// bounds their number. In an earlier one the next document may be withdrawn,
// too: then the page ends once this is much work.
void ListById(const ArchiveView& view, const WithdrawnDocuments* withdrawn,
              const v1::ListDocumentsRequest& request,
              std::optional<Archive::IdCursor> after, ListPage& page) {
  const uint64_t work_max =
      kPassingWorkMax +
      kPassingWorkPerSegmentMax * view.archive->info().segment_count;
  uint64_t work = 0;
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
          if (withdrawn == nullptr ||
              !withdrawn->Find(document.ordinal).has_value()) {
            return page.Add(document);
          }
          passed = withdrawn->Pass(document.id);
          return false;
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

}  // namespace

absl::Status ListDocuments(const ServiceCore& core, CallAccess& access,
                           const v1::ListDocumentsRequest& request,
                           v1::ListDocumentsResponse& response) {
  QUIRE_RETURN_IF_ERROR(RefuseIfDraining(core));
  QUIRE_ASSIGN_OR_RETURN(const ServedContents found,
                         access.FindContents(request));
  QUIRE_ASSIGN_OR_RETURN(
      const uint32_t page_size,
      PageSize(core, request.has_page_size(), request.page_size()));
  QUIRE_RETURN_IF_ERROR(CheckSelection(request));
  QUIRE_ASSIGN_OR_RETURN(const ArchiveView view,
                         StateOfList(found.view, request));
  const Archive& archive = *view.archive;
  std::optional<Archive::IdCursor> after;
  if (request.has_page_token()) {
    QUIRE_ASSIGN_OR_RETURN(after, ParsePageToken(request));
  }
  ListPage page(view, request, page_size, response);
  const WithdrawnDocuments* const withdrawn = found.withdrawal.documents.get();
  if (!request.has_first_ordinal()) {
    ListById(view, withdrawn, request, std::move(after), page);
    return absl::OkStatus();
  }
  const auto next_listed = [&](uint64_t ordinal) {
    return withdrawn == nullptr ? ordinal : withdrawn->NextListed(ordinal);
  };
  for (uint64_t ordinal = next_listed(
           after.has_value() ? after->ordinal + 1 : request.first_ordinal());
       ordinal < view.document_count; ordinal = next_listed(ordinal + 1)) {
    QUIRE_ASSIGN_OR_RETURN(const Document document,
                           archive.GetDocument(DocumentOrdinal{ordinal}));
    if (!page.Add(document)) {
      break;
    }
  }
  return absl::OkStatus();
}

namespace {

// A message in preparation is gathered, then handed over as one slice.
constexpr uint64_t kCopiesOfAMessage = 2;

// Sends a dictionary from memory, one chunk at a time.
class GetDictionaryCall : public grpc::ServerWriteReactor<grpc::ByteBuffer> {
 public:
  GetDictionaryCall(ServiceCore& core, grpc::CallbackServerContext& context)
      : core_(core), booking_(core, Method::kGetDictionary, context) {}

  void Start(const grpc::ByteBuffer& buffer) {
    const absl::Status status = Begin(buffer);
    status.ok() ? WriteNext() : booking_.Finish(*this, status);
  }

  void OnWriteDone(bool ok) override {
    booking_.ClientTookIt();
    absl::Status allowed = booking_.CheckAgain();
    if (allowed.ok() && IsWithheld()) {
      allowed = Withheld();
    }
    if (!ok) {
      booking_.Finish(*this, absl::CancelledError());
    } else if (!allowed.ok()) {
      booking_.Finish(*this, allowed);
    } else if (offset_ < dictionary_.size()) {
      WriteNext();
    } else {
      booking_.Finish(*this, absl::OkStatus());
    }
  }

  void OnDone() override { delete this; }

 private:
  bool IsWithheld() {
    // A replaced archive is not among those of the server.
    return archive_->withdrawal->Get().has_documents() ||
           booking_.access().MayHaveWithdrawn(SharedPart::kDictionary, hash_);
  }

  absl::Status Begin(const grpc::ByteBuffer& buffer) {
    QUIRE_RETURN_IF_ERROR(RefuseIfDraining(core_));
    v1::GetDictionaryRequest request;
    QUIRE_RETURN_IF_ERROR(ParseRequest(buffer, request));
    hash_ = request.hash();
    // A dictionary is text of its archive.
    std::string opening;
    QUIRE_RETURN_IF_ERROR(booking_.access().Visit(
        Right::kRead, [&](const v1::ArchiveDescription& archive,
                          const std::shared_ptr<const ServedArchive>& served) {
          if (archive_ != nullptr || !archive.has_dictionary_hash() ||
              archive.dictionary_hash() != request.hash()) {
            return;
          }
          if (served == nullptr) {
            opening = archive.name();
          } else {
            archive_ = served;
            booking_.access().Reading(*served);
          }
        }));
    if (archive_ == nullptr) {
      if (!opening.empty()) {
        return booking_.access().Await(opening);
      }
      return ServiceError(absl::StatusCode::kNotFound, v1::DICTIONARY_NOT_FOUND,
                          "no archive here uses a dictionary of that hash");
    }
    if (IsWithheld()) {
      return Withheld();
    }
    dictionary_ = archive_->archive->dictionary();
    offset_ = request.offset();
    if (offset_ > dictionary_.size()) {
      return ServiceError(absl::StatusCode::kOutOfRange, v1::RANGE_PAST_END,
                          absl::StrCat("offset ", offset_, " is past the end ",
                                       "of the dictionary, which has ",
                                       dictionary_.size(), " bytes"));
    }
    QUIRE_ASSIGN_OR_RETURN(
        ticket_, core_.admission.Admit(
                     booking_.Client(),
                     // gRPC keeps the request as long as the call.
                     kCopiesOfAMessage * NextSizeBytes() + buffer.Length(),
                     Admission::Use::kStream));
    return absl::OkStatus();
  }

  // Returns the size of the next chunk. The first one is the largest.
  uint64_t NextSizeBytes() const {
    return std::min<uint64_t>(core_.limits.chunk_size_bytes_max(),
                              dictionary_.size() - offset_);
  }

  void WriteNext() {
    MakeNext();
    booking_.WaitForClient();
    StartWrite(&message_);
  }

  void MakeNext() {
    const ByteView chunk = dictionary_.subspan(offset_, NextSizeBytes());
    v1::GetDictionaryResponse head;
    head.set_size_bytes(dictionary_.size());
    head.set_offset(offset_);
    head.set_checksum(Checksum64(chunk));
    AnswerBytes bytes;
    bytes.AppendFields(head);
    bytes.AppendField(
        {v1::GetDictionaryResponse::kDataFieldNumber,
         {reinterpret_cast<const char*>(chunk.data()), chunk.size()}});
    message_ = bytes.Take();
    offset_ += chunk.size();
    booking_.Sending(chunk.size());
  }

  ServiceCore& core_;
  CallBooking booking_;
  std::string hash_;
  std::shared_ptr<const ServedArchive> archive_;
  ByteView dictionary_;
  uint64_t offset_ = 0;
  Admission::Ticket ticket_;
  // Message being written.
  grpc::ByteBuffer message_;
};

}  // namespace

grpc::ServerWriteReactor<grpc::ByteBuffer>* StartGetDictionaryCall(
    ServiceCore& core, grpc::CallbackServerContext& context,
    const grpc::ByteBuffer& request) {
  auto* call = new GetDictionaryCall(core, context);
  call->Start(request);
  return call;
}

}  // namespace quire
