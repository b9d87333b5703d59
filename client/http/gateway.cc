// SPDX-License-Identifier: Apache-2.0
#include "client/http/gateway.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/memory/memory.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include "client/http/request/answer_status.h"
#include "client/http/request/content_headers.h"
#include "client/http/request/piece_list.h"
#include "client/quire/client_status.h"
#include "codecs/base/bytes.h"
#include "codecs/base/checksum.h"
#include "codecs/base/printable_text.h"
#include "codecs/base/status_macros.h"

namespace quire {
namespace {

// Archives whose contents are remembered.
constexpr size_t kStatesMax = 1024;
// An archive that is replaced more often than this during one request fails it.
constexpr int kStateAttemptsMax = 3;
constexpr const char* kUnknownType = "application/octet-stream";

thread_local const CallHeaders* current_headers = nullptr;

std::string TypeOf(const v1::Document& document) {
  if (document.has_record_type()) {
    return kWarcType;
  }
  return document.has_media_type() && IsContentType(document.media_type())
             ? document.media_type()
             : kUnknownType;
}

// A range of a document, or of the logical space, of some contents.
class ArchiveRange final : public ByteStore {
 public:
  ArchiveRange(Client* client, std::string archive, std::string uuid,
               CallHeaders headers, std::optional<uint64_t> ordinal,
               const ByteSpan& span)
      : client_(client),
        archive_(std::move(archive)),
        uuid_(std::move(uuid)),
        headers_(std::move(headers)),
        ordinal_(ordinal),
        span_(span) {}

  uint64_t size_bytes() const override { return span_.size_bytes; }

  absl::StatusOr<std::string> Read(uint64_t offset,
                                   size_t size_bytes) override {
    const ScopedCallHeaders scope(headers_);
    const ByteSpan part{
        span_.offset + offset,
        std::min<uint64_t>(span_.size_bytes - offset, size_bytes)};
    ReadTarget target = part;
    if (ordinal_.has_value()) {
      // By its name: as a range, a document that is withdrawn meanwhile would
      // continue with zeros.
      DocumentKey key = DocumentKey::Ordinal(*ordinal_);
      key.part = part;
      target = std::move(key);
    }
    QUIRE_ASSIGN_OR_RETURN(
        ReadResult result,
        client_->Read(archive_, target, {.archive_uuid = uuid_}));
    return std::move(result.data);
  }

 private:
  Client* const client_;
  const std::string archive_;
  const std::string uuid_;
  const CallHeaders headers_;
  // Document that `span_` is a part of; unset: the logical space.
  const std::optional<uint64_t> ordinal_;
  const ByteSpan span_;
};

}  // namespace

DocumentKey KeyOf(const RequestTarget& target) {
  DocumentKey key = target.ordinal.has_value()
                        ? DocumentKey::Ordinal(*target.ordinal)
                        : DocumentKey::Id(target.id);
  key.occurrence = target.occurrence;
  key.record_types = target.record_types;
  key.at_time_ms = target.at_time_ms;
  return key;
}

ScopedCallHeaders::ScopedCallHeaders(const CallHeaders& headers)
    : outer_(std::exchange(current_headers, &headers)) {}

ScopedCallHeaders::~ScopedCallHeaders() {
  current_headers = outer_;
}

absl::StatusOr<std::unique_ptr<Gateway>> Gateway::Open(
    ClientOptions options, const GatewayStorage& storage,
    MemoryBudget* budget) {
  std::unique_ptr<FileDirectory> files;
  if (!storage.files_directory.empty()) {
    QUIRE_ASSIGN_OR_RETURN(files, FileDirectory::Open(storage.files_directory));
  }
  options.trace_parent = [] {
    return current_headers != nullptr ? current_headers->trace_parent
                                      : std::string();
  };
  const bool forwards_tokens = options.security.token_file.empty() &&
                               CanCarryToken(options.address, options.security);
  if (forwards_tokens) {
    options.authorization = [] {
      return current_headers != nullptr ? current_headers->authorization
                                        : std::string();
    };
  }
  QUIRE_ASSIGN_OR_RETURN(std::unique_ptr<Client> client,
                         Client::Connect(std::move(options)));
  return absl::WrapUnique(new Gateway(std::move(client), std::move(files),
                                      storage, budget, forwards_tokens));
}

Gateway::Gateway(std::unique_ptr<Client> client,
                 std::unique_ptr<FileDirectory> files,
                 const GatewayStorage& storage, MemoryBudget* budget,
                 bool forwards_tokens)
    : client_(std::move(client)),
      files_(std::move(files)),
      spool_(storage.spool_directory, storage.spool_size_bytes),
      budget_(budget),
      forwards_tokens_(forwards_tokens) {}

bool Gateway::IsHeavy(const HttpRequest& request) {
  switch (request.target.resource) {
    case Resource::kPage:
    case Resource::kList:
    case Resource::kBrowse:
    case Resource::kBrowseArchives:
    case Resource::kArchives:
      return true;
    case Resource::kArchive:
    case Resource::kDocument:
    case Resource::kSpace:
    case Resource::kFile:
      return false;
  }
  return true;
}

bool Gateway::IsReachable() {
  const absl::Status status = client_->ListArchives().status();
  // A server that wants a token is there.
  return status.ok() || absl::IsUnauthenticated(status) ||
         absl::IsPermissionDenied(status);
}

Answer Gateway::Run(const HttpRequest& request, MemoryCharge& charge) {
  const ScopedCallHeaders scope(request.headers);
  const auto run = [&](const State& state) -> absl::StatusOr<Answer> {
    switch (request.target.resource) {
      case Resource::kDocument:
        return AnswerDocument(request, state, charge);
      case Resource::kPage:
        return AnswerPage(request, state, charge);
      case Resource::kSpace:
        return AnswerSpace(request, state, charge);
      case Resource::kList:
        return AnswerList(request, state);
      default:
        return AnswerBrowse(request, state);
    }
  };
  absl::StatusOr<Answer> answer;
  switch (request.target.resource) {
    case Resource::kArchives:
      answer = AnswerArchives(request);
      break;
    case Resource::kBrowseArchives:
      answer = AnswerBrowseArchives();
      break;
    case Resource::kArchive:
      answer = AnswerArchive(request);
      break;
    case Resource::kFile:
      answer = AnswerFile(request, charge);
      break;
    default:
      answer = WithState(request.target, run);
  }
  if (answer.ok() && answer->body.size() > charge.size_bytes() &&
      !charge.TryResize(answer->body.size())) {
    answer = MemoryExhausted();
  }
  return answer.ok() ? *std::move(answer) : AnswerOfStatus(answer.status());
}

absl::StatusOr<Gateway::State> Gateway::FetchState(const std::string& archive) {
  QUIRE_ASSIGN_OR_RETURN(const v1::ArchiveDescription description,
                         client_->GetArchive(archive));
  const State state{.uuid = description.uuid(),
                    .size_bytes = description.size_bytes()};
  MutexLock lock(&mutex_);
  if (states_.size() >= kStatesMax) {
    states_.clear();
  }
  State& known = states_[archive];
  if (known.uuid != state.uuid) {
    known = state;
  }
  return known;
}

absl::StatusOr<Gateway::State> Gateway::StateOf(const RequestTarget& target) {
  {
    MutexLock lock(&mutex_);
    const auto found = states_.find(target.archive);
    if (found != states_.end() &&
        (target.uuid.empty() || target.uuid == found->second.uuid)) {
      return found->second;
    }
  }
  return FetchState(target.archive);
}

absl::StatusOr<Answer> Gateway::WithState(
    const RequestTarget& target,
    absl::FunctionRef<absl::StatusOr<Answer>(const State& state)> run) {
  QUIRE_ASSIGN_OR_RETURN(State state, StateOf(target));
  for (int attempt = 1;; ++attempt) {
    if (!target.uuid.empty() && target.uuid != state.uuid) {
      return absl::NotFoundError(absl::StrCat(
          "archive ", target.archive,
          " has other contents than these; they have the uuid ", state.uuid));
    }
    absl::StatusOr<Answer> answer = run(state);
    if (!IsOfOtherContents(answer.status()) || attempt == kStateAttemptsMax) {
      return answer;
    }
    const std::string outdated = state.uuid;
    QUIRE_ASSIGN_OR_RETURN(state, FetchState(target.archive));
    // A list's token may be of other contents, too.
    if (state.uuid == outdated) {
      return answer;
    }
  }
}

absl::StatusOr<ReadResult> Gateway::Read(const std::string& archive,
                                         const State& state,
                                         const ReadTarget& part) {
  return client_->Read(archive, part, {.archive_uuid = state.uuid});
}

absl::Status Gateway::CheckAccess(const std::string& archive,
                                  const State& state) {
  return Read(archive, state, ByteSpan{}).status();
}

std::shared_ptr<ByteStore> Gateway::ArchiveBytes(
    const HttpRequest& request, const std::string& archive, const State& state,
    std::optional<uint64_t> ordinal, const ByteSpan& span) {
  return std::make_shared<ArchiveRange>(client_.get(), archive, state.uuid,
                                        request.headers, ordinal, span);
}

absl::StatusOr<Answer> Gateway::AnswerDocument(const HttpRequest& request,
                                               const State& state,
                                               MemoryCharge& charge) {
  const std::string& archive = request.target.archive;
  DocumentKey key = KeyOf(request.target);
  key.part = ByteSpan{};
  const bool names_span = request.method == Method::kGet &&
                          request.range.kind == RangeHeader::Kind::kSpan &&
                          request.range.last.has_value() &&
                          request.conditions.empty();
  if (names_span) {
    // Usually within the document: one call is enough. A range of 2^64 bytes
    // is not.
    const uint64_t size_bytes = *request.range.last - request.range.first;
    key.part =
        ByteSpan{request.range.first,
                 FirstPieceSize(std::max(size_bytes, size_bytes + 1), charge)};
  }
  absl::StatusOr<ReadResult> read = Read(archive, state, key);
  if (names_span && absl::IsOutOfRange(read.status())) {
    key.part = ByteSpan{};
    read = Read(archive, state, key);
  }
  QUIRE_RETURN_IF_ERROR(read.status());
  if (!read->document.has_value()) {
    return absl::InternalError("the server did not describe the document");
  }
  const v1::ByteRange& range = read->document->range();
  return AnswerPart(
      request,
      {.bytes = ArchiveBytes(request, archive, state, read->document->ordinal(),
                             {0, range.size_bytes()}),
       .size_bytes = range.size_bytes(),
       .etag = absl::StrFormat("\"%s-%x-%x\"", state.uuid, range.offset(),
                               range.size_bytes()),
       .content_type = TypeOf(*read->document),
       .known_offset = key.part->offset,
       .known = std::move(read->data)},
      charge);
}

absl::StatusOr<Answer> Gateway::AnswerSpace(const HttpRequest& request,
                                            const State& state,
                                            MemoryCharge& charge) {
  const std::string& archive = request.target.archive;
  std::string type = state.space_type;
  if (type.empty()) {
    DocumentKey first = DocumentKey::Ordinal(0);
    first.part = ByteSpan{};
    const absl::StatusOr<ReadResult> read = Read(archive, state, first);
    // An archive may be empty.
    if (!read.ok() && !absl::IsNotFound(read.status())) {
      return read.status();
    }
    type = read.ok() && read->document.has_value() &&
                   read->document->has_record_type()
               ? kWarcType
               : kUnknownType;
    MutexLock lock(&mutex_);
    const auto found = states_.find(archive);
    if (found != states_.end() && found->second.uuid == state.uuid) {
      found->second.space_type = type;
    }
  }
  QUIRE_ASSIGN_OR_RETURN(
      Answer answer,
      AnswerPart(
          request,
          {.bytes = ArchiveBytes(request, archive, state, std::nullopt,
                                 {0, state.size_bytes}),
           .size_bytes = state.size_bytes,
           .etag = absl::StrFormat("\"%s-0-%x\"", state.uuid, state.size_bytes),
           .content_type = std::move(type),
           .refuses_several_ranges = true},
          charge));
  if (answer.rest.store == nullptr) {
    // All of this came from memory: the size and the uuid, which not everybody
    // may know.
    QUIRE_RETURN_IF_ERROR(CheckAccess(archive, state));
  }
  return answer;
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
      charge);
}

absl::StatusOr<Answer> Gateway::AnswerPieces(const HttpRequest& request,
                                             const std::string& description,
                                             MemoryCharge& charge) {
  QUIRE_ASSIGN_OR_RETURN(const PieceList list, ParsePieceList(description));
  RequestTarget target;
  target.archive = list.archive;
  target.uuid = list.uuid;
  return WithState(target, [&](const State& state) -> absl::StatusOr<Answer> {
    // The files have the index of the archive.
    QUIRE_RETURN_IF_ERROR(CheckAccess(list.archive, state));
    std::vector<std::shared_ptr<ByteStore>> parts;
    std::string identity = description;
    for (const Piece& piece : list.pieces) {
      uint64_t size_bytes = state.size_bytes;
      if (piece.file.empty()) {
        parts.push_back(ArchiveBytes(request, list.archive, state, std::nullopt,
                                     {0, state.size_bytes}));
      } else {
        absl::StatusOr<FileVersion> version = files_->Find(piece.file);
        if (!version.ok()) {
          return absl::DataLossError(version.status().message());
        }
        size_bytes = version->size_bytes;
        absl::StrAppend(&identity, " ", version->inode, " ", version->seconds,
                        " ", version->nanoseconds);
        parts.push_back(
            std::make_shared<FileBytes>(files_.get(), piece.file, *version));
      }
      if (size_bytes != piece.size_bytes) {
        return absl::DataLossError(absl::StrCat(
            piece.file.empty() ? "the logical space" : QuotedText(piece.file),
            " has ", size_bytes, " bytes, the description of the pieces says ",
            piece.size_bytes));
      }
    }
    auto bytes = std::make_shared<JoinedBytes>(std::move(parts));
    const uint64_t size_bytes = bytes->size_bytes();
    return AnswerPart(
        request,
        {.bytes = std::move(bytes),
         .size_bytes = size_bytes,
         .etag = absl::StrFormat("\"p%016x-%x\"", Checksum64(AsBytes(identity)),
                                 size_bytes),
         .content_type = FileMediaType(request.target.id),
         .refuses_several_ranges = true},
        charge);
  });
}

size_t Gateway::FirstPieceSize(uint64_t size_bytes,
                               MemoryCharge& charge) const {
  const size_t piece_size = static_cast<size_t>(
      std::min<uint64_t>(size_bytes, PieceSize(*budget_, /*is_slow=*/false)));
  charge.TryResize(std::max(piece_size, charge.size_bytes()));
  return std::min(piece_size, charge.size_bytes());
}

absl::StatusOr<Answer> Gateway::AnswerPart(const HttpRequest& request,
                                           Representation representation,
                                           MemoryCharge& charge) {
  const absl::string_view etag = representation.etag;
  Answer answer;
  AddContentHeaders(request, etag, answer);
  switch (EvaluateConditions(request.conditions, etag)) {
    case ConditionResult::kNotModified:
      answer.status = 304;
      answer.size_bytes = representation.size_bytes;
      return answer;
    case ConditionResult::kPreconditionFailed:
      return TextAnswer(412, "the representation has another entity tag");
    case ConditionResult::kProceed:
      break;
  }
  const uint64_t size_bytes = representation.size_bytes.value_or(0);
  const bool has_range =
      request.method == Method::kGet && RangeApplies(request.conditions, etag);
  const SelectedPart part =
      SelectPart(has_range ? request.range : RangeHeader{}, size_bytes,
                 representation.refuses_several_ranges);
  if (part.kind == SelectedPart::Kind::kUnsatisfiable) {
    return UnsatisfiableRange(size_bytes);
  }
  if (part.kind == SelectedPart::Kind::kPart) {
    answer.status = 206;
    answer.headers.emplace_back(
        "Content-Range",
        absl::StrCat("bytes ", part.offset, "-",
                     part.offset + part.size_bytes - 1, "/", size_bytes));
  }
  answer.headers.emplace_back("Accept-Ranges", "bytes");
  answer.headers.emplace_back("Content-Type", representation.content_type);
  if (request.method == Method::kHead) {
    answer.size_bytes = size_bytes;
    return answer;
  }
  if (part.size_bytes == 0) {
    return answer;
  }
  std::string& known = representation.known;
  const uint64_t known_begin = representation.known_offset;
  if (part.offset >= known_begin && part.offset - known_begin < known.size()) {
    known.erase(0, static_cast<size_t>(part.offset - known_begin));
    if (known.size() > part.size_bytes) {
      known.resize(static_cast<size_t>(part.size_bytes));
    }
    answer.body = std::move(known);
  } else {
    QUIRE_ASSIGN_OR_RETURN(
        answer.body, representation.bytes->Read(
                         part.offset, FirstPieceSize(part.size_bytes, charge)));
  }
  answer.rest = {.store = std::move(representation.bytes),
                 .offset = part.offset + answer.body.size(),
                 .size_bytes = part.size_bytes - answer.body.size()};
  return answer;
}

}  // namespace quire
