// SPDX-License-Identifier: Apache-2.0
#include "client/http/gateway.h"

#include <algorithm>
#include <utility>
#include <variant>
#include <vector>

#include "absl/memory/memory.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include "client/http/capture_answer.h"
#include "client/http/listing_answer.h"
#include "client/http/page_answer.h"
#include "client/http/part_answer.h"
#include "client/http/request/answer_status.h"
#include "client/http/request/content_headers.h"
#include "client/http/request/piece_list.h"
#include "client/quire/client_status.h"
#include "client/quire/payload/record_header.h"
#include "codecs/base/bytes.h"
#include "codecs/base/checksum.h"
#include "codecs/base/printable_text.h"
#include "codecs/base/status_macros.h"

namespace quire {
namespace {

// An archive that is replaced more often than this during one request fails it.
constexpr int kStateAttemptsMax = 3;
constexpr const char* kUnknownType = "application/octet-stream";

// Part of a record by which one of a WARC differs from one of an ARC.
constexpr ByteSpan kRecordStart{0, kWarcMagic.size()};

// Returns the media type of a document of which `text` is the part at `offset`;
// nothing if it depends on kRecordStart.
std::optional<std::string> TypeOf(const v1::Document& document, uint64_t offset,
                                  absl::string_view text) {
  if (!document.has_record_type()) {
    return DocumentMediaType(document.media_type(), document.id());
  }
  if (offset > 0 || text.size() < kRecordStart.size_bytes) {
    return std::nullopt;
  }
  return IsWarcRecord(text) ? kWarcType : kArcType;
}

// True if another call would not succeed.
bool IsFinal(const absl::Status& status) {
  return !absl::IsUnavailable(status) && !absl::IsOutOfRange(status) &&
         !absl::IsAborted(status) && !IsOfOtherContents(status) &&
         !RetryDelayOf(status).has_value();
}

std::string EntityTag(const std::string& uuid, const ByteSpan& span,
                      uint64_t zeros_hash = 0) {
  std::string tag =
      absl::StrFormat("\"%s-%x-%x", uuid, span.offset, span.size_bytes);
  if (zeros_hash != 0) {
    absl::StrAppendFormat(&tag, "-z%016x", zeros_hash);
  }
  tag += '"';
  return tag;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Gateway>> Gateway::Open(
    ClientOptions options, const GatewayStorage& storage,
    MemoryBudget* budget) {
  std::unique_ptr<FileDirectory> files;
  if (!storage.files_directory.empty()) {
    QUIRE_ASSIGN_OR_RETURN(files, FileDirectory::Open(storage.files_directory));
  }
  QUIRE_ASSIGN_OR_RETURN(std::unique_ptr<ArchiveReads> reads,
                         ArchiveReads::Connect(std::move(options)));
  return absl::WrapUnique(
      new Gateway(std::move(reads), std::move(files), storage, budget));
}

Gateway::Gateway(std::unique_ptr<ArchiveReads> reads,
                 std::unique_ptr<FileDirectory> files,
                 const GatewayStorage& storage, MemoryBudget* budget)
    : reads_(std::move(reads)),
      files_(std::move(files)),
      spool_(storage.spool_directory, storage.spool_size_bytes),
      budget_(budget),
      states_(&reads_->client()) {}

bool Gateway::IsHeavy(const HttpRequest& request) {
  switch (request.target.resource) {
    case Resource::kPage:
    case Resource::kList:
    case Resource::kCaptures:
    case Resource::kBrowse:
    case Resource::kBrowseArchives:
    case Resource::kArchives:
      return true;
    case Resource::kArchive:
    case Resource::kDocument:
    case Resource::kSpace:
    case Resource::kDeposit:
    case Resource::kFile:
      return false;
  }
  return true;
}

absl::Status Gateway::CheckServer() {
  const absl::Status status = reads_->client().ListArchives().status();
  // A server that wants a token is there.
  return absl::IsPermissionDenied(status) || (absl::IsUnauthenticated(status) &&
                                              !ErrorReasonOf(status).empty())
             ? absl::OkStatus()
             : status;
}

bool Gateway::Start(const HttpRequest& request, MemoryCharge& charge,
                    Done done) {
  const bool is_document = request.target.resource == Resource::kDocument;
  if (!is_document && request.target.resource != Resource::kSpace) {
    return false;
  }
  std::optional<KnownState> state = states_.Recall(request.target);
  if (!state.has_value() || (!is_document && state->space_type.empty())) {
    return false;
  }
  std::optional<ByteSpan> part;
  ReadTarget target;
  if (is_document) {
    part = NamedPart(request, charge);
    if (!part.has_value()) {
      return false;
    }
    DocumentKey key = KeyOf(request.target);
    key.part = part;
    target = std::move(key);
  } else {
    part = SpacePart(request, state->size_bytes, charge);
    if (part->size_bytes == 0) {
      return false;
    }
    target = *part;
  }
  ReadOptions options;
  if (state->is_named) {
    options.archive_uuid = state->uuid;
  }
  const ScopedCallHeaders scope(request.headers);
  reads_->client().StartRead(
      request.target.archive, std::move(target), options,
      [this, &request, &charge, is_document, part = *part,
       state = *std::move(state),
       done = std::move(done)](absl::StatusOr<ReadResult> read) {
        if (!read.ok() && IsFinal(read.status())) {
          done(AnswerOfStatus(read.status()));
          return;
        }
        const std::optional<std::string> type =
            !read.ok()     ? std::nullopt
            : !is_document ? state.space_type
            : !read->document.has_value()
                ? std::nullopt
                : TypeOf(*read->document, part.offset, read->data);
        if (!type.has_value() ||
            (!state.is_named && read->archive_uuid != state.uuid)) {
          done(std::nullopt);
          return;
        }
        done(Finished(is_document ? DocumentAnswer(request, state, *type, part,
                                                   *std::move(read), charge)
                                  : SpaceAnswer(request, state, *type, part,
                                                *std::move(read), charge),
                      charge));
      });
  return true;
}

Answer Gateway::Finished(absl::StatusOr<Answer> answer, MemoryCharge& charge) {
  if (answer.ok() && answer->body.size() > charge.size_bytes() &&
      !charge.TryResize(answer->body.size())) {
    answer = MemoryExhausted();
  }
  return answer.ok() ? *std::move(answer) : AnswerOfStatus(answer.status());
}

Answer Gateway::Run(const HttpRequest& request, MemoryCharge& charge) {
  const ScopedCallHeaders scope(request.headers);
  const auto run = [&](const KnownState& state) -> absl::StatusOr<Answer> {
    switch (request.target.resource) {
      case Resource::kDocument:
        return AnswerDocument(request, state, charge);
      case Resource::kPage:
        return AnswerPage(request, state, *reads_, spool_, *budget_, charge);
      case Resource::kSpace:
        return AnswerSpace(request, state, charge);
      case Resource::kList:
        return AnswerList(request, state, reads_->client());
      default:
        return AnswerBrowse(request, state, *reads_);
    }
  };
  absl::StatusOr<Answer> answer;
  switch (request.target.resource) {
    case Resource::kArchives:
      answer = AnswerArchives(request, reads_->client());
      break;
    case Resource::kBrowseArchives:
      answer = AnswerBrowseArchives(request, reads_->client());
      break;
    case Resource::kArchive:
      answer = AnswerArchive(request, reads_->client());
      break;
    case Resource::kFile:
      answer = AnswerFile(request, charge);
      break;
    case Resource::kCaptures:
      answer = AnswerCaptures(request, reads_->client(), charge);
      break;
    case Resource::kDeposit:
      answer = AnswerDeposit(request, charge);
      break;
    default:
      answer = WithState(request.target, run);
  }
  return Finished(std::move(answer), charge);
}

absl::StatusOr<Answer> Gateway::WithState(
    const RequestTarget& target,
    absl::FunctionRef<absl::StatusOr<Answer>(const KnownState& state)> run) {
  for (int attempt = 1;; ++attempt) {
    QUIRE_ASSIGN_OR_RETURN(const KnownState state, states_.Find(target));
    absl::StatusOr<Answer> answer = run(state);
    const bool is_outdated =
        IsOfOtherContents(answer.status()) || absl::IsAborted(answer.status());
    if (!is_outdated || attempt == kStateAttemptsMax) {
      return answer;
    }
    QUIRE_ASSIGN_OR_RETURN(const KnownState present,
                           states_.Fetch(target.archive));
    // A list's token may be of other contents, too.
    if (IsOfOtherContents(answer.status()) && present.uuid == state.uuid) {
      return answer;
    }
  }
}

std::optional<ByteSpan> Gateway::NamedPart(const HttpRequest& request,
                                           MemoryCharge& charge) const {
  const RangeHeader& range = request.range;
  if (request.method != Method::kGet ||
      range.kind != RangeHeader::Kind::kSpan || !range.last.has_value() ||
      !request.conditions.empty()) {
    return std::nullopt;
  }
  // A range of 2^64 bytes has no size.
  const uint64_t size_bytes = *range.last - range.first;
  return ByteSpan{
      range.first,
      FirstPieceSize(std::max(size_bytes, size_bytes + 1), *budget_, charge)};
}

absl::StatusOr<Answer> Gateway::AnswerDocument(const HttpRequest& request,
                                               const KnownState& state,
                                               MemoryCharge& charge) {
  const std::string& archive = request.target.archive;
  DocumentKey key = KeyOf(request.target);
  // Usually within the document: one call is enough.
  const std::optional<ByteSpan> named = NamedPart(request, charge);
  const bool sends_body =
      request.method == Method::kGet && request.conditions.empty();
  key.part = named.value_or(sends_body ? kRecordStart : ByteSpan{});
  absl::StatusOr<ReadResult> read = reads_->Read(archive, state, key);
  if (key.part->size_bytes > 0 && absl::IsOutOfRange(read.status())) {
    key.part = ByteSpan{};
    read = reads_->Read(archive, state, key);
  }
  QUIRE_RETURN_IF_ERROR(read.status());
  if (!read->document.has_value()) {
    return absl::InternalError("the server did not describe the document");
  }
  const v1::Document& document = *read->document;
  std::optional<std::string> type =
      TypeOf(document, key.part->offset, read->data);
  if (!type.has_value()) {
    QUIRE_ASSIGN_OR_RETURN(type, RecordType(archive, state, document));
  }
  if (!named.has_value()) {
    // Too little to begin an answer with.
    read->data.clear();
  }
  return DocumentAnswer(request, state, *type, *key.part, *std::move(read),
                        charge);
}

absl::StatusOr<std::string> Gateway::RecordType(const std::string& archive,
                                                const KnownState& state,
                                                const v1::Document& document) {
  DocumentKey key = DocumentKey::Ordinal(document.ordinal());
  key.part = kRecordStart;
  const absl::StatusOr<ReadResult> read = reads_->Read(archive, state, key);
  // Neither begins so if it is shorter.
  if (absl::IsOutOfRange(read.status())) {
    return kUnknownType;
  }
  QUIRE_RETURN_IF_ERROR(read.status());
  return TypeOf(document, 0, read->data).value_or(kUnknownType);
}

absl::StatusOr<Answer> Gateway::DocumentAnswer(const HttpRequest& request,
                                               const KnownState& state,
                                               const std::string& type,
                                               const ByteSpan& part,
                                               ReadResult read,
                                               MemoryCharge& charge) {
  const v1::Document& document = *read.document;
  const ByteSpan span{document.range().offset(), document.range().size_bytes()};
  return AnswerPart(
      request,
      {.bytes = reads_->DocumentBytes(request, state, document.ordinal(),
                                      {0, span.size_bytes}),
       .size_bytes = span.size_bytes,
       .etag =
           EntityTag(state.EarliestWith(span, document.ordinal() + 1), span),
       .content_type = type,
       .known_offset = part.offset,
       .known = std::move(read.data)},
      *budget_, charge);
}

ByteSpan Gateway::SpacePart(const HttpRequest& request, uint64_t size_bytes,
                            MemoryCharge& charge) const {
  if (request.method != Method::kGet || !request.conditions.empty()) {
    return {};
  }
  const SelectedPart part =
      SelectPart(request.range, size_bytes, /*refuses_several=*/true);
  return {part.offset, part.size_bytes == 0
                           ? 0
                           : FirstPieceSize(part.size_bytes, *budget_, charge)};
}

absl::StatusOr<std::string> Gateway::SpaceType(const std::string& archive,
                                               const KnownState& state) {
  // The first document that is not withdrawn.
  QUIRE_ASSIGN_OR_RETURN(
      const std::optional<v1::Document> document,
      reads_->client()
          .ListDocuments(
              archive,
              {.first_ordinal = 0, .archive_uuid = state.uuid, .page_size = 16})
          .Next());
  if (!document.has_value()) {
    return kUnknownType;
  }
  std::string type = kUnknownType;
  if (document->has_record_type()) {
    QUIRE_ASSIGN_OR_RETURN(type, RecordType(archive, state, *document));
  }
  states_.SetSpaceType(archive, state.uuid, type);
  return type;
}

absl::StatusOr<Answer> Gateway::AnswerSpace(const HttpRequest& request,
                                            const KnownState& state,
                                            MemoryCharge& charge) {
  const std::string& archive = request.target.archive;
  std::string type = state.space_type;
  if (type.empty()) {
    QUIRE_ASSIGN_OR_RETURN(type, SpaceType(archive, state));
  }
  const ByteSpan part = SpacePart(request, state.size_bytes, charge);
  absl::StatusOr<ReadResult> read = reads_->Read(archive, state, part);
  if (absl::IsOutOfRange(read.status())) {
    return OutdatedState();
  }
  QUIRE_RETURN_IF_ERROR(read.status());
  return SpaceAnswer(request, state, type, part, *std::move(read), charge);
}

absl::StatusOr<Answer> Gateway::SpaceAnswer(const HttpRequest& request,
                                            const KnownState& state,
                                            const std::string& type,
                                            const ByteSpan& part,
                                            ReadResult read,
                                            MemoryCharge& charge) {
  const ByteSpan span{0, state.size_bytes};
  return AnswerPart(
      request,
      {.bytes = reads_->SpaceBytes(request, request.target.archive, state,
                                   read.zeros_hash),
       .size_bytes = state.size_bytes,
       .etag = EntityTag(state.EarliestWith(span, 0), span, read.zeros_hash),
       .content_type = type,
       .refuses_several_ranges = true,
       .known_offset = part.offset,
       .known = std::move(read.data)},
      *budget_, charge);
}

absl::StatusOr<Answer> Gateway::AnswerFile(const HttpRequest& request,
                                           MemoryCharge& charge) {
  const std::string& name = request.target.id;
  if (files_ == nullptr || !IsServedName(name)) {
    return absl::NotFoundError(
        files_ == nullptr ? "this gateway serves no files; see quire-http "
                            "--files"
                          : "no file has this name");
  }
  const std::string list_name = absl::StrCat(name, kPieceListSuffix);
  if (IsFileName(list_name)) {
    const absl::StatusOr<FileVersion> list = files_->Find(list_name);
    if (list.ok()) {
      QUIRE_ASSIGN_OR_RETURN(
          const std::string description,
          files_->Read(list_name, *list, 0, kPieceListSizeBytesMax + 1));
      return AnswerPieces(request, description, charge);
    }
    if (!absl::IsNotFound(list.status())) {
      return list.status();
    }
  }
  QUIRE_ASSIGN_OR_RETURN(const FileVersion version, files_->Find(name));
  return AnswerPart(
      request,
      {.bytes = std::make_shared<FileBytes>(files_.get(), name, version),
       .size_bytes = version.size_bytes,
       .etag = absl::StrFormat("\"f%x-%x-%x-%x\"", version.inode,
                               version.size_bytes, version.seconds,
                               version.nanoseconds),
       .content_type = FileMediaType(name),
       .refuses_several_ranges = absl::EndsWith(name, ".wacz")},
      *budget_, charge);
}

absl::StatusOr<Answer> Gateway::AnswerDeposit(const HttpRequest& request,
                                              MemoryCharge& charge) {
  QUIRE_ASSIGN_OR_RETURN(v1::DepositedFile file,
                         reads_->DescribeDeposit(request.target));
  const uint64_t size_bytes = file.size_bytes();
  // Equal files have equal tags, whatever archive has them.
  std::string etag =
      absl::StrCat("\"s", absl::BytesToHexString(file.sha256()), "\"");
  return AnswerPart(request,
                    {.bytes = reads_->DepositBytes(request, std::move(file)),
                     .size_bytes = size_bytes,
                     .etag = std::move(etag),
                     .content_type = FileMediaType(request.target.id),
                     .refuses_several_ranges = true},
                    *budget_, charge);
}

absl::StatusOr<Answer> Gateway::AnswerPieces(const HttpRequest& request,
                                             const std::string& description,
                                             MemoryCharge& charge) {
  QUIRE_ASSIGN_OR_RETURN(const PieceList list, ParsePieceList(description));
  RequestTarget target;
  target.archive = list.archive;
  target.uuid = list.uuid;
  return WithState(
      target, [&](const KnownState& state) -> absl::StatusOr<Answer> {
        // The files have the index of the archive.
        QUIRE_ASSIGN_OR_RETURN(const ReadResult read,
                               reads_->CheckAccess(list.archive, state));
        std::vector<std::shared_ptr<ByteStore>> parts;
        // With the uuid.
        std::string identity = description;
        for (const Piece& piece : list.pieces) {
          uint64_t size_bytes = state.size_bytes;
          if (piece.file.empty()) {
            parts.push_back(reads_->SpaceBytes(request, list.archive, state,
                                               read.zeros_hash));
            absl::StrAppend(&identity, " z", read.zeros_hash);
          } else {
            absl::StatusOr<FileVersion> version = files_->Find(piece.file);
            if (!version.ok()) {
              return absl::DataLossError(version.status().message());
            }
            size_bytes = version->size_bytes;
            absl::StrAppend(&identity, " ", version->inode, " ",
                            version->seconds, " ", version->nanoseconds);
            parts.push_back(std::make_shared<FileBytes>(files_.get(),
                                                        piece.file, *version));
          }
          if (size_bytes != piece.size_bytes) {
            return absl::DataLossError(
                absl::StrCat(piece.file.empty() ? "the logical space"
                                                : QuotedText(piece.file),
                             " has ", size_bytes,
                             " bytes, the description of the pieces says ",
                             piece.size_bytes));
          }
        }
        auto bytes = std::make_shared<JoinedBytes>(std::move(parts));
        const uint64_t size_bytes = bytes->size_bytes();
        return AnswerPart(
            request,
            {.bytes = std::move(bytes),
             .size_bytes = size_bytes,
             .etag = absl::StrFormat("\"p%016x-%x\"",
                                     Checksum64(AsBytes(identity)), size_bytes),
             .content_type = FileMediaType(request.target.id),
             .refuses_several_ranges = true},
            *budget_, charge);
      });
}

}  // namespace quire
