// SPDX-License-Identifier: GPL-3.0-or-later
#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"

#include "codecs/base/printable_text.h"
#include "codecs/base/status_macros.h"
#include "codecs/filter/filter.h"
#include "server/archive/field_reader.h"
#include "server/service/base/service_error.h"
#include "server/service/calls/container_parts.h"
#include "server/service/calls/document_page.h"
#include "server/service/calls/listed_page.h"
#include "server/service/calls/methods.h"
#include "server/service/calls/request_parser.h"
#include "server/service/calls/resume_token.h"
#include "server/service/read/answer_bytes.h"

namespace quire {
namespace {

// So that the fields of one document, with its description, fit into a message
// of 4 MiB.
constexpr int kRequestedFieldsMax = 32;
// Known fields that an error names.
constexpr size_t kNamedFieldsMax = 20;
// A page ends early above this, in bytes of memory: values that are short, or
// null, take far more of it than of the answer.
constexpr uint64_t kPageMemoryBytesMax = uint64_t{4} << 20;
// Fetches of bounds for one page. Groups whose bounds are unknown then are
// read.
constexpr int kSelectionsMax = 8;

absl::Status UnknownField(const v1::ListDocumentsRequest& request,
                          const std::string& name,
                          const std::vector<FieldColumn>& columns) {
  std::string known;
  for (size_t i = 0; i < std::min(columns.size(), kNamedFieldsMax); ++i) {
    absl::StrAppend(&known, i == 0 ? "" : ", ", columns[i].name);
  }
  if (columns.size() > kNamedFieldsMax) {
    absl::StrAppend(&known, " and ", columns.size() - kNamedFieldsMax,
                    " others");
  }
  return ServiceError(
      absl::StatusCode::kInvalidArgument, v1::FIELD_NOT_FOUND,
      absl::StrCat("fields has ", QuotedText(name), ", expected ",
                   known.empty() ? "none: the archive has no fields"
                                 : "fields of the archive: ",
                   known),
      {{"archive", request.archive()}});
}

absl::StatusOr<Filter> ParseFilter(const v1::ListDocumentsRequest& request,
                                   const std::vector<FieldColumn>& columns) {
  absl::StatusOr<Filter> filter = Filter::Parse(request.filter());
  const absl::Status status =
      filter.ok() ? filter->Check(columns) : filter.status();
  if (status.ok()) {
    return filter;
  }
  return ServiceError(
      absl::StatusCode::kInvalidArgument,
      absl::IsNotFound(status) ? v1::FIELD_NOT_FOUND : v1::MALFORMED_REQUEST,
      absl::StrCat("filter: ", status.message()),
      {{"archive", request.archive()}});
}

// Fields that a request asks for, and the columns that they and its filter
// need.
struct WantedFields {
  // Indexes in the archive's fields, each once. Those to be sent are first.
  std::vector<uint32_t> columns;
  size_t sent_count = 0;
  std::optional<Filter> filter;
  // For each name of the filter: its index in `columns`; unset: an attribute.
  std::vector<std::optional<size_t>> filter_columns;

  bool is_empty() const { return columns.empty() && !filter.has_value(); }
};

// Errors: InvalidArgument  FIELD_NOT_FOUND, MALFORMED_REQUEST.
absl::StatusOr<WantedFields> FieldsOf(const v1::ListDocumentsRequest& request,
                                      const std::vector<FieldColumn>& columns) {
  WantedFields wanted;
  const auto find = [&](const std::string& name) {
    return std::find_if(
        columns.begin(), columns.end(),
        [&](const FieldColumn& column) { return column.name == name; });
  };
  if (request.fields_size() > kRequestedFieldsMax) {
    return ServiceError(
        absl::StatusCode::kInvalidArgument, v1::MALFORMED_REQUEST,
        absl::StrCat("fields has ", request.fields_size(),
                     " names, must have at most ", kRequestedFieldsMax));
  }
  for (const std::string& name : request.fields()) {
    const auto found = find(name);
    if (found == columns.end()) {
      return UnknownField(request, name, columns);
    }
    const auto index = static_cast<uint32_t>(found - columns.begin());
    if (std::find(wanted.columns.begin(), wanted.columns.end(), index) !=
        wanted.columns.end()) {
      return ServiceError(
          absl::StatusCode::kInvalidArgument, v1::MALFORMED_REQUEST,
          absl::StrCat("fields has ", QuotedText(name), " twice"));
    }
    wanted.columns.push_back(index);
  }
  wanted.sent_count = wanted.columns.size();
  if (!request.has_filter()) {
    return wanted;
  }
  QUIRE_ASSIGN_OR_RETURN(wanted.filter, ParseFilter(request, columns));
  for (const std::string& name : wanted.filter->names()) {
    if (DocumentAttributeType(name).has_value()) {
      wanted.filter_columns.emplace_back();
      continue;
    }
    const auto index = static_cast<uint32_t>(find(name) - columns.begin());
    const auto known =
        std::find(wanted.columns.begin(), wanted.columns.end(), index);
    wanted.filter_columns.emplace_back(known - wanted.columns.begin());
    if (known == wanted.columns.end()) {
      wanted.columns.push_back(index);
    }
  }
  return wanted;
}

// Lists documents in steps. The first chooses the page from memory; with a
// filter it leaves out groups whose bounds exclude a match, and is repeated
// when bounds that it needed were fetched. Then the fields of its documents are
// read, in order, as far as their parts are at hand; others are fetched. In the
// end documents that do not match are removed.
class ListDocumentsCall : public grpc::ServerUnaryReactor {
 public:
  ListDocumentsCall(ServiceCore& core, grpc::CallbackServerContext& context,
                    grpc::ByteBuffer& answer)
      : core_(core),
        answer_(answer),
        booking_(core, Method::kListDocuments, context) {}

  void Start(const grpc::ByteBuffer& buffer) {
    absl::Status status = Begin(buffer);
    if (!status.ok() || wanted_.is_empty()) {
      End(status.ok() ? Complete() : std::move(status));
      return;
    }
    core_.store.decode_pool().Add(
        {.run = [this] { Continue(absl::OkStatus()); },
         .client_id = ClientIdOf(booking_.Client())});
  }

  void OnCancel() override { is_cancelled_ = true; }

  void OnDone() override { delete this; }

 private:
  // After it without fields and filter all documents of the page are done.
  absl::Status Begin(const grpc::ByteBuffer& buffer) {
    QUIRE_RETURN_IF_ERROR(booking_.access().status());
    QUIRE_RETURN_IF_ERROR(ParseRequest(buffer, request_));
    request_bytes_ = ListRequestBytes(buffer.Length(), request_.filter());
    QUIRE_RETURN_IF_ERROR(RefuseIfDraining(core_));
    QUIRE_ASSIGN_OR_RETURN(contents_, booking_.access().FindContents(request_));
    QUIRE_ASSIGN_OR_RETURN(page_size_,
                           PageSizeOf(request_.has_page_size()
                                          ? std::optional(request_.page_size())
                                          : std::nullopt,
                                      core_.limits.page_size_max()));
    QUIRE_RETURN_IF_ERROR(CheckListedSelection(request_));
    QUIRE_ASSIGN_OR_RETURN(contents_.view,
                           StateOfList(contents_.view, request_));
    QUIRE_ASSIGN_OR_RETURN(
        ticket_, core_.admission.Admit(booking_.Client(), request_bytes_,
                                       Admission::Use::kSingleAnswer));
    QUIRE_ASSIGN_OR_RETURN(
        wanted_, FieldsOf(request_, contents_.view.archive->fields()));
    page_ = MakeListedPage(contents_, request_, page_size_);
    if (wanted_.is_empty()) {
      QUIRE_RETURN_IF_ERROR(
          page_->Select([](uint64_t ordinal) { return ordinal; }));
      while (page_->done_count() < page_->count() && !IsLong()) {
        page_->Take({});
      }
      TruncateToDone();
      return absl::OkStatus();
    }
    parts_.emplace(core_.store, core_.admission, booking_.Client(),
                   contents_.archive);
    return absl::OkStatus();
  }

  // Does what is possible with the parts at hand, then fetches others or ends.
  void Continue(absl::Status status) {
    if (status.ok() && is_cancelled_) {
      status = absl::CancelledError("the client cancelled the call");
    }
    if (status.ok()) {
      const absl::StatusOr<bool> is_complete = Advance();
      if (is_complete.ok() && !*is_complete) {
        parts_->Fetch(
            [this](absl::Status fetched) { Continue(std::move(fetched)); });
        return;
      }
      status = is_complete.ok() ? Complete() : is_complete.status();
    }
    End(status);
  }

  // Admits a page of `page_bytes`. Errors: as Admission::Admit().
  absl::Status HoldPage(uint64_t page_bytes) {
    return ticket_.Resize(request_bytes_ + page_bytes);
  }

  // Admits the page with more `fields`.
  absl::Status HoldFields(absl::Span<const FieldView> fields) {
    const uint64_t page_bytes =
        page_->memory_bytes() + FieldsMemoryBytes(fields);
    return request_bytes_ + page_bytes <= ticket_.size_bytes()
               ? absl::OkStatus()
               : HoldPage(page_bytes + kPageStepBytes);
  }

  // False: parts must be fetched. Meanwhile the call holds no more bytes than
  // it uses.
  absl::StatusOr<bool> Advance() {
    QUIRE_ASSIGN_OR_RETURN(const bool is_complete, SelectAndRead());
    QUIRE_RETURN_IF_ERROR(HoldPage(page_->memory_bytes()));
    return is_complete;
  }

  absl::StatusOr<bool> SelectAndRead() {
    // Documents may have been withdrawn while parts were fetched.
    if (contents_.archive->withdrawal->generation() !=
        contents_.withdrawal.generation) {
      contents_.TakeWithdrawal();
      StartAgain();
    }
    if (!is_selected_) {
      QUIRE_ASSIGN_OR_RETURN(is_selected_, Select());
      if (!is_selected_) {
        return false;
      }
      FreeParts();
    }
    return ReadFields();
  }

  void StartAgain() {
    FreeParts();
    is_selected_ = false;
    selection_count_ = 0;
  }

  void FreeParts() {
    reader_.reset();
    parts_->ForgetMissing();
    parts_->Free();
    is_read_since_free_ = false;
  }

  // Frees the parts if a document was read with them: another may need more at
  // once than the limit. False: none was.
  bool FreeIfRead() {
    const bool is_read = is_read_since_free_;
    if (is_read) {
      FreeParts();
    }
    return is_read;
  }

  DocumentFieldReader& Reader() {
    if (!reader_.has_value()) {
      reader_.emplace(
          *contents_.view.archive, wanted_.columns,
          [this](const ArchivePart& part) { return parts_->Load(part); });
    }
    return *reader_;
  }

  // Chooses the documents of the page. False: bounds must be fetched.
  absl::StatusOr<bool> Select() {
    absl::Status error;
    FieldGroup group;
    bool could_match = true;
    const auto excluded_until = [&](uint64_t ordinal) {
      const bool is_known =
          ordinal >= group.first_ordinal && ordinal < group.end_ordinal;
      if (!is_known) {
        absl::StatusOr<bool> found = FindGroup(ordinal, group, could_match);
        if (!found.ok()) {
          error.Update(found.status());
        }
        if (!found.ok() || !*found) {
          group = FieldGroup();
          return ordinal;
        }
      }
      return could_match ? ordinal : group.end_ordinal;
    };
    QUIRE_RETURN_IF_ERROR(HoldPage(page_->selected_bytes_max()));
    QUIRE_RETURN_IF_ERROR(page_->Select(excluded_until));
    QUIRE_RETURN_IF_ERROR(error);
    QUIRE_RETURN_IF_ERROR(HoldPage(page_->memory_bytes()));
    return !parts_->has_missing() || ++selection_count_ == kSelectionsMax;
  }

  // Finds the group of a document, and whether the filter could match in it.
  // False: its bounds are not at hand.
  absl::StatusOr<bool> FindGroup(uint64_t ordinal, FieldGroup& group,
                                 bool& could_match) {
    const bool has_fields =
        wanted_.filter.has_value() &&
        std::any_of(wanted_.filter_columns.begin(),
                    wanted_.filter_columns.end(),
                    [](const auto& column) { return column.has_value(); });
    // Bounds beyond this limit are unknown.
    if (!has_fields ||
        parts_->held_bytes() + parts_->missing_bytes() > kHeldPartsBytesMax) {
      return false;
    }
    QUIRE_ASSIGN_OR_RETURN(const bool found,
                           Reader().ReadGroup(DocumentOrdinal{ordinal}, group));
    if (found) {
      std::vector<FieldRange> ranges;
      for (const std::optional<size_t>& column : wanted_.filter_columns) {
        ranges.push_back(column.has_value() ? group.ranges[*column]
                                            : FieldRange());
      }
      could_match = wanted_.filter->CouldMatch(ranges);
    }
    return found;
  }

  uint64_t HeldBytes() const {
    return page_->memory_bytes() + parts_->held_bytes();
  }

  // Reads the fields of the documents that are not done, in order. False: parts
  // must be fetched.
  absl::StatusOr<bool> ReadFields() {
    std::vector<FieldView> values;
    for (size_t next = page_->done_count(); next < page_->count(); ++next) {
      const bool is_next = next == page_->done_count();
      if (is_next && HeldBytes() > 2 * kHeldPartsBytesMax) {
        FreeIfRead();
      }
      QUIRE_ASSIGN_OR_RETURN(const bool found,
                             ReadValues(page_->OrdinalAt(next), values));
      if (!found && is_next && parts_->held_bytes() > kHeldPartsBytesMax &&
          FreeIfRead()) {
        --next;
        continue;
      }
      if (!found || !is_next) {
        // Parts of later documents are fetched together with these.
        if (HeldBytes() + parts_->missing_bytes() > 2 * kHeldPartsBytesMax) {
          return false;
        }
        continue;
      }
      QUIRE_RETURN_IF_ERROR(TakeFields(values));
      is_read_since_free_ = true;
      if (IsLong() || parts_->loaded_bytes() > kLoadedPartsBytesMax) {
        TruncateToDone();
      }
    }
    return page_->done_count() == page_->count();
  }

  absl::StatusOr<bool> ReadValues(DocumentOrdinal ordinal,
                                  std::vector<FieldView>& values) {
    if (wanted_.columns.empty()) {
      return true;
    }
    return Reader().Read(ordinal, values);
  }

  bool IsLong() const {
    return page_->taken_bytes() > kPageSizeBytesMax ||
           page_->memory_bytes() > kPageMemoryBytesMax;
  }

  void TruncateToDone() {
    if (page_->done_count() > 0) {
      page_->Truncate();
    }
  }

  // Errors: as HoldFields().
  absl::Status TakeFields(const std::vector<FieldView>& values) {
    if (wanted_.filter.has_value()) {
      row_.clear();
      for (size_t i = 0; i < wanted_.filter_columns.size(); ++i) {
        const std::optional<size_t>& column = wanted_.filter_columns[i];
        row_.push_back(column.has_value()
                           ? values[*column]
                           : page_->Attribute(wanted_.filter->names()[i]));
      }
      if (!wanted_.filter->Matches(row_)) {
        page_->LeaveOut();
        return absl::OkStatus();
      }
    }
    const auto sent = absl::MakeConstSpan(values).first(wanted_.sent_count);
    QUIRE_RETURN_IF_ERROR(HoldFields(sent));
    page_->Take(sent);
    return absl::OkStatus();
  }

  // Ends a page all of whose documents are done.
  absl::Status Complete() {
    if (parts_.has_value()) {
      FreeParts();
    }
    const uint64_t page_bytes = page_->memory_bytes();
    v1::ListDocumentsResponse response =
        page_->Finish(wanted_.filter.has_value());
    page_.reset();
    const uint64_t size_bytes = response.ByteSizeLong();
    QUIRE_RETURN_IF_ERROR(HoldPage(page_bytes + size_bytes));
    AnswerBytes bytes;
    bytes.AppendFields(response);
    answer_ = bytes.Take();
    booking_.Sending(size_bytes);
    response = v1::ListDocumentsResponse();
    return HoldPage(size_bytes);
  }

  void End(const absl::Status& status) { booking_.Finish(*this, status); }

  ServiceCore& core_;
  grpc::ByteBuffer& answer_;
  CallBooking booking_;
  std::atomic<bool> is_cancelled_ = false;
  v1::ListDocumentsRequest request_;
  // Memory of the request.
  uint64_t request_bytes_ = 0;
  uint32_t page_size_ = 0;
  ServedContents contents_;
  WantedFields wanted_;
  std::optional<ContainerParts> parts_;
  // Uses `parts_`.
  std::optional<DocumentFieldReader> reader_;
  std::unique_ptr<ListedPage> page_;
  bool is_selected_ = false;
  int selection_count_ = 0;
  bool is_read_since_free_ = false;
  // Values for the filter; kept to reuse its memory.
  std::vector<FieldView> row_;
  // Held until gRPC has released the answer.
  Admission::Ticket ticket_;
};

}  // namespace

grpc::ServerUnaryReactor* StartListDocumentsCall(
    ServiceCore& core, grpc::CallbackServerContext& context,
    const grpc::ByteBuffer& request, grpc::ByteBuffer& response) {
  auto* call = new ListDocumentsCall(core, context, response);
  call->Start(request);
  return call;
}

}  // namespace quire
