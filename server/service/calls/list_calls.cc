// SPDX-License-Identifier: GPL-3.0-or-later
#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

#include "codecs/base/checksum.h"
#include "codecs/base/status_macros.h"
#include "server/service/base/service_error.h"
#include "server/service/calls/document_page.h"
#include "server/service/calls/methods.h"
#include "server/service/calls/request_parser.h"
#include "server/service/calls/resume_token.h"
#include "server/service/read/answer_bytes.h"

namespace quire {
namespace {

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
      PageSizeOf(request.has_page_size() ? std::optional(request.page_size())
                                         : std::nullopt,
                 core.limits.page_size_max()));
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
