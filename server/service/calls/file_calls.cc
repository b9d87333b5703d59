// SPDX-License-Identifier: GPL-3.0-or-later
#include <algorithm>
#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include "codecs/base/checksum.h"
#include "codecs/base/printable_text.h"
#include "codecs/base/status_macros.h"
#include "codecs/deflate/deflate_recipe.h"
#include "server/archive/deposit_reader.h"
#include "server/archive/deposited_files.h"
#include "server/service/base/service_error.h"
#include "server/service/calls/container_parts.h"
#include "server/service/calls/document_page.h"
#include "server/service/calls/methods.h"
#include "server/service/calls/reading_stream.h"
#include "server/service/calls/request_parser.h"
#include "server/service/calls/resume_token.h"
#include "server/service/read/answer_bytes.h"
#include "server/service/read/answer_plan.h"
#include "server/service/read/answer_read.h"
#include "server/service/read/read_planner.h"

namespace quire {
namespace {

// Memory of a call: its encoder and a parsed page.
constexpr uint64_t kMakerBytes = 3 << 20;
// Size of a page of a list without its last file, in bytes.
constexpr size_t kListSizeBytesMax = 1 << 20;

bool IsWithdrawn(const DepositedFile& file, const ServedContents& contents) {
  return file.state != DepositState::kKept ||
         (contents.withdrawal.has_documents() &&
          contents.withdrawal.documents->HasDocumentIn(file.text));
}

absl::Status Withdrawn() {
  return ServiceError(
      absl::StatusCode::kPermissionDenied, v1::DOCUMENT_WITHDRAWN,
      "a document of the file was withdrawn: its other documents can be read, "
      "but not the file");
}

void Describe(const DepositedFile& file, const ServedContents& contents,
              v1::DepositedFile& proto) {
  proto.set_path(std::string(file.path));
  if (IsWithdrawn(file, contents)) {
    return;
  }
  proto.set_size_bytes(file.size_bytes);
  proto.set_sha256(std::string(AsText(file.digest)));
  proto.set_repeated_size_bytes(file.literal_size_bytes);
  *proto.mutable_text_range() = ToProto(file.text);
}

absl::StatusOr<const DepositedFile*> FindFile(const ServedContents& contents,
                                              const std::string& path) {
  const DepositedFile* const file =
      contents.view.archive->deposited_files().Find(path,
                                                    contents.view.size_bytes);
  if (file == nullptr) {
    return ServiceError(
        absl::StatusCode::kNotFound, v1::FILE_NOT_FOUND,
        absl::StrCat("no deposited file has the path ", QuotedText(path, 200)));
  }
  return file;
}

// Sends a file, one piece after the other: it finds what the piece is made of,
// reads the text and makes the bytes on a thread of the decode pool.
class ReadFileCall
    : public ReadingStream<grpc::ServerWriteReactor<grpc::ByteBuffer>> {
 public:
  ReadFileCall(ServiceCore& core, grpc::CallbackServerContext& context)
      : ReadingStream(core, Method::kReadFile, context) {}

  void Start(const grpc::ByteBuffer& buffer) {
    absl::Status status = Begin(buffer);
    Update([&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      is_begun_ = status.ok();
      End(std::move(status));
    });
  }

  void OnCancel() override {
    is_stopped_ = true;
    ReadingStream::OnCancel();
  }

  void OnWriteDone(bool ok) override {
    booking_.ClientTookIt();
    message_.Clear();
    Update([&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      writing_ = false;
      if (!ok) {
        End(absl::CancelledError());
      }
      End(booking_.CheckAgain());
    });
  }

 private:
  absl::Status Begin(const grpc::ByteBuffer& buffer) {
    QUIRE_RETURN_IF_ERROR(RefuseIfDraining(core_));
    v1::ReadFileRequest request;
    QUIRE_RETURN_IF_ERROR(ParseRequest(buffer, request));
    booking_.NoteFile(request.path());
    QUIRE_ASSIGN_OR_RETURN(contents_, booking_.access().FindContents(request));
    QUIRE_ASSIGN_OR_RETURN(file_, FindFile(contents_, request.path()));
    if (IsWithdrawn(*file_, contents_)) {
      return Withdrawn();
    }
    offset_ = request.range().offset();
    end_ = file_->size_bytes;
    if (request.has_range()) {
      if (offset_ > file_->size_bytes ||
          request.range().size_bytes() > file_->size_bytes - offset_) {
        return ServiceError(
            absl::StatusCode::kOutOfRange, v1::RANGE_PAST_END,
            absl::StrCat("bytes ", offset_, " + ", request.range().size_bytes(),
                         " end past the file's ", file_->size_bytes, " bytes"));
      }
      end_ = offset_ + request.range().size_bytes();
    }
    QUIRE_ASSIGN_OR_RETURN(
        ticket_, core_.admission.Admit(
                     booking_.Client(),
                     kMakerBytes + buffer.Length() + file_->path.size(),
                     Admission::Use::kStream));
    base_bytes_ = ticket_.size_bytes();
    Describe(*file_, contents_, *description_.mutable_file());
    contents_.FreeWithdrawal();
    parts_.emplace(core_.store, core_.admission, booking_.Client(),
                   contents_.archive);
    planner_.emplace(
        *contents_.view.archive, *file_,
        [this](const ArchivePart& part) { return parts_->Load(part); });
    return absl::OkStatus();
  }

  bool Act() override {
    bool starts = false;
    bool writes = false;
    {
      MutexLock lock(&mutex_);
      is_stopped_ = is_stopped_ || !ended_with_.ok();
      if (ended_with_.ok() && is_begun_ && !is_working_ && !writing_) {
        writes = std::exchange(is_made_, false);
        starts = !writes && !IsComplete();
        is_working_ = starts;
      }
    }
    if (writes) {
      BeginWriting();
      StartWrite(&message_);
    }
    if (starts) {
      RunStep();
    }
    return CancelReadsIfEnded();
  }

  // The functions up to EndStep() run one after the other, while is_working_.

  void RunStep() {
    core_.store.decode_pool().Add(
        {.run = [this] { Step(absl::OkStatus()); },
         .client_id = ClientIdOf(booking_.Client()),
         .cost = core_.limits.chunk_size_bytes_max()});
  }

  // Plans the next piece, and fetches what it needs.
  void Step(absl::Status status) {
    if (status.ok() && is_stopped_) {
      status = absl::CancelledError();
    }
    if (!status.ok()) {
      EndStep(std::move(status));
      return;
    }
    const bool is_empty = offset_ == end_;
    absl::StatusOr<std::optional<DepositPlan>> plan =
        is_empty
            ? std::optional(DepositPlan())
            : planner_->Plan(
                  offset_,
                  {.size_bytes_max = std::min(
                       end_ - offset_, core_.limits.chunk_size_bytes_max()),
                   .text_size_bytes_max = core_.limits.chunk_size_bytes_max()});
    if (!plan.ok()) {
      EndStep(plan.status());
      return;
    }
    if (!plan->has_value()) {
      parts_->Fetch([this](const absl::Status& fetched) {
        // This thread may be one of the device.
        core_.store.decode_pool().Add(
            {.run = [this, fetched] { Step(fetched); },
             .client_id = ClientIdOf(booking_.Client())});
      });
      return;
    }
    plan_ = **std::move(plan);
    status = ReadText();
    if (!status.ok()) {
      EndStep(std::move(status));
    }
  }

  // Errors: the step has ended.
  absl::Status ReadText() {
    contents_.TakeWithdrawal();
    if (IsWithdrawn(*file_, contents_)) {
      return Withdrawn();
    }
    const bool needs_text =
        std::ranges::any_of(plan_.steps, [this](const DepositStep& step) {
          return step.text.size_bytes > 0 && !maker_.Holds(step);
        });
    uint64_t member_bytes = 0;
    for (const DepositStep& step : plan_.steps) {
      if (step.size_bytes < step.item.size_bytes &&
          step.item.kind == DepositItem::Kind::kMember) {
        member_bytes = std::max(member_bytes, step.item.size_bytes);
      }
    }
    AnswerPlan answer;
    uint64_t memory_bytes = base_bytes_ + plan_.size_bytes +
                            std::max(member_bytes, held_member_bytes_);
    if (needs_text) {
      answer = PlanAnswer(contents_, plan_.text, v1::WIRE_ENCODING_IDENTITY);
      memory_bytes += answer.memory_bytes() + plan_.text.size_bytes;
    }
    held_member_bytes_ = std::max(held_member_bytes_, member_bytes);
    contents_.FreeWithdrawal();
    if (memory_bytes > ticket_.size_bytes()) {
      QUIRE_RETURN_IF_ERROR(ticket_.Grow(memory_bytes - ticket_.size_bytes()));
    }
    if (!needs_text) {
      Make(Answer());
      return absl::OkStatus();
    }
    booking_.ReadBegins();
    parts_left_ = 2;
    std::shared_ptr<AnswerRead> read = AnswerRead::Start(
        core_.store, contents_.archive, std::move(answer),
        {FetchClass::kInteractive, ClientIdOf(booking_.Client()),
         booking_.fetch_times()},
        [this](absl::StatusOr<Answer> text) {
          booking_.ReadEnds();
          text_ = std::move(text);
          ReadPartEnds();
        });
    if (read != nullptr) {
      MutexLock lock(&mutex_);
      read_ = std::move(read);
    }
    ReadPartEnds();
    return absl::OkStatus();
  }

  // Ends the start of a read or its answer. The step continues after both.
  void ReadPartEnds() {
    if (parts_left_.fetch_sub(1, std::memory_order_acq_rel) > 1) {
      return;
    }
    if (!text_.ok()) {
      EndStep(text_.status());
      return;
    }
    core_.store.decode_pool().Add(
        {.run = [this] { Make(*std::exchange(text_, Answer())); },
         .client_id = ClientIdOf(booking_.Client()),
         .cost = plan_.text.size_bytes});
  }

  // Makes the bytes of the plan, and the message.
  void Make(const Answer& text) {
    const std::shared_ptr<MadeBytes> bytes = MakeBytes(
        core_.store.buffers(), std::max<uint64_t>(plan_.size_bytes, 1));
    absl::Status status = MakeBytesOf(text, bytes->mutable_bytes());
    if (status.ok()) {
      Serialise(bytes);
    }
    EndStep(std::move(status));
  }

  absl::Status MakeBytesOf(const Answer& text, MutableByteView out) {
    std::vector<uint8_t> all;
    if (!text.pieces.empty()) {
      all.reserve(plan_.text.size_bytes);
      for (const BlockPiece& piece : text.pieces) {
        const ByteView bytes = piece.bytes();
        all.insert(all.end(), bytes.begin(), bytes.end());
      }
    }
    for (const DepositStep& step : plan_.steps) {
      ByteView of_step;
      if (!all.empty() && step.text.size_bytes > 0) {
        of_step = ByteView(all).subspan(
            step.text.offset.value - plan_.text.offset.value,
            step.text.size_bytes);
      }
      QUIRE_RETURN_IF_ERROR(maker_.Make(step, of_step,
                                        out.first(step.size_bytes),
                                        [this] { return is_stopped_.load(); }));
      out = out.subspan(step.size_bytes);
    }
    return absl::OkStatus();
  }

  void Serialise(const std::shared_ptr<MadeBytes>& bytes) {
    const auto size_bytes = static_cast<uint32_t>(plan_.size_bytes);
    std::vector<BlockPiece> pieces;
    if (size_bytes > 0) {
      pieces.push_back({.block = bytes, .offset = 0, .size_bytes = size_bytes});
    }
    v1::ReadFileResponse head;
    head.mutable_range()->set_offset(offset_);
    head.mutable_range()->set_size_bytes(size_bytes);
    head.set_checksum(ChecksumOf(pieces));
    AnswerBytes message;
    message.AppendFields(head);
    if (description_.has_file()) {
      message.AppendFields(description_);
      description_.Clear();
    }
    message.AppendBytesField(v1::ReadFileResponse::kDataFieldNumber, pieces);
    message_ = message.Take();
    offset_ += size_bytes;
    is_last_ = offset_ == end_;
    booking_.Sending(size_bytes);
  }

  // Ends the work of a step; on an error the call.
  void EndStep(absl::Status status) ABSL_LOCKS_EXCLUDED(mutex_) {
    plan_ = DepositPlan();
    parts_->ForgetMissing();
    parts_->Free();
    Update([&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      is_working_ = false;
      is_made_ = status.ok();
      read_.reset();
      End(std::move(status));
    });
  }

  bool IsComplete() const override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return is_last_ && !is_made_ && !is_working_;
  }

  bool IsFetching() const override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return is_working_;
  }

  Reads ActiveReads() const override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return read_ == nullptr ? Reads() : Reads{read_};
  }

  ServedContents contents_;
  const DepositedFile* file_ = nullptr;
  uint64_t offset_ = 0;
  uint64_t end_ = 0;
  // Until it is sent.
  v1::ReadFileResponse description_;
  Admission::Ticket ticket_;
  uint64_t base_bytes_ = 0;
  // Upper bound on the member that the maker holds.
  uint64_t held_member_bytes_ = 0;
  std::optional<ContainerParts> parts_;
  std::optional<DepositPlanner> planner_;
  DepositMaker maker_;
  DepositPlan plan_;
  absl::StatusOr<Answer> text_ = Answer();
  // Parts of ReadText(): its own end and that of its answer.
  std::atomic<int> parts_left_ = 0;
  // The message being written.
  grpc::ByteBuffer message_;
  std::atomic<bool> is_stopped_ = false;
  // The last message has been made.
  std::atomic<bool> is_last_ = false;

  bool is_begun_ ABSL_GUARDED_BY(mutex_) = false;
  // A step is in progress.
  bool is_working_ ABSL_GUARDED_BY(mutex_) = false;
  // message_ is to be written.
  bool is_made_ ABSL_GUARDED_BY(mutex_) = false;
  std::shared_ptr<AnswerRead> read_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

absl::Status ListFiles(const ServiceCore& core, CallAccess& access,
                       const v1::ListFilesRequest& request,
                       v1::ListFilesResponse& response) {
  QUIRE_RETURN_IF_ERROR(RefuseIfDraining(core));
  QUIRE_ASSIGN_OR_RETURN(const ServedContents contents,
                         access.FindContents(request));
  QUIRE_ASSIGN_OR_RETURN(
      const uint32_t page_size,
      PageSizeOf(request.has_page_size() ? std::optional(request.page_size())
                                         : std::nullopt,
                 core.limits.page_size_max()));
  FilePosition after;
  if (request.has_page_token()) {
    QUIRE_ASSIGN_OR_RETURN(after, ParseFilesPageToken(request));
  }
  const std::vector<DepositedFile>& files =
      contents.view.archive->deposited_files().files();
  const absl::string_view start = std::max(absl::string_view(after.path),
                                           absl::string_view(request.prefix()));
  size_t size_bytes = 0;
  for (auto file =
           std::ranges::lower_bound(files, start, {}, &DepositedFile::path);
       file != files.end() && absl::StartsWith(file->path, request.prefix());
       ++file) {
    const uint64_t end = file->text.offset.value + file->text.size_bytes;
    if (end > contents.view.size_bytes ||
        (file->path == after.path && end <= after.text_end)) {
      continue;
    }
    if (response.files_size() == static_cast<int>(page_size) ||
        size_bytes > kListSizeBytesMax) {
      response.set_next_page_token(MakeFilesPageToken(request, after));
      break;
    }
    v1::DepositedFile& listed = *response.add_files();
    Describe(*file, contents, listed);
    size_bytes += listed.ByteSizeLong();
    after = {.path = std::string(file->path), .text_end = end};
  }
  return absl::OkStatus();
}

grpc::ServerWriteReactor<grpc::ByteBuffer>* StartReadFileCall(
    ServiceCore& core, grpc::CallbackServerContext& context,
    const grpc::ByteBuffer& request) {
  auto* call = new ReadFileCall(core, context);
  call->Start(request);
  return call;
}

}  // namespace quire
