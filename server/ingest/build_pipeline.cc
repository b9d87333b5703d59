// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/ingest/build_pipeline.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

#include "codecs/base/checksum.h"
#include "codecs/base/status_macros.h"
#include "codecs/block_codec.h"
#include "codecs/payload/payload_codec.h"
#include "server/archive/unfinished_archive.h"
#include "server/ingest/blocks/block_cutter.h"
#include "server/ingest/blocks/block_stage.h"
#include "server/ingest/build_passes.h"
#include "server/ingest/dictionary/symbol_sampler.h"
#include "server/ingest/text/reordered_text.h"
#include "server/ingest/text_choice.h"

namespace quire {
namespace {

// One build: a list of passes, most of which walk over all documents or over
// the text that is stored instead.
class ArchiveBuild {
 public:
  ArchiveBuild(const std::string& path,
               std::span<const std::unique_ptr<Source>> sources,
               const BuildOptions& options)
      : path_(path), options_(options), passes_(sources, options_) {}

  absl::StatusOr<BuildSummary> Run() {
    for (const Pass pass :
         {&ArchiveBuild::CountText, &ArchiveBuild::OpenUnfinished,
          &ArchiveBuild::ChooseText, &ArchiveBuild::ChooseSymbolTable,
          &ArchiveBuild::StartArchive, &ArchiveBuild::MakeCodec,
          &ArchiveBuild::EncodeText, &ArchiveBuild::FinishArchive}) {
      QUIRE_RETURN_IF_ERROR((this->*pass)());
    }
    return summary_;
  }

  absl::StatusOr<BuildSummary> WriteEmpty() {
    encodes_text_ = false;
    for (const Pass pass :
         {&ArchiveBuild::CountText, &ArchiveBuild::ChooseText,
          &ArchiveBuild::ChooseSymbolTable, &ArchiveBuild::StartArchive,
          &ArchiveBuild::FinishEmpty}) {
      QUIRE_RETURN_IF_ERROR((this->*pass)());
    }
    return summary_;
  }

  absl::StatusOr<BuildChoice> Choose() {
    for (const Pass pass :
         {&ArchiveBuild::CountText, &ArchiveBuild::ChooseText}) {
      QUIRE_RETURN_IF_ERROR((this->*pass)());
    }
    return summary_.choice;
  }

 private:
  using Pass = absl::Status (ArchiveBuild::*)();

  // --- Passes ---

  absl::Status OpenUnfinished() {
    if (!is_resumable()) {
      return absl::OkStatus();
    }
    QUIRE_ASSIGN_OR_RETURN(
        UnfinishedArchive unfinished,
        UnfinishedArchive::Open(
            path_, options_.archive.replace,
            absl::StrCat(options_.resume.parameters, walk().DescribeSources()),
            kBuildVersion, options_.resume.restart));
    if (unfinished.has_dropped_blocks() && options_.resume.on_dropped) {
      options_.resume.on_dropped();
    }
    unfinished_.emplace(std::move(unfinished));
    kept_dictionary_ = unfinished_->ReadDictionary();
    return absl::OkStatus();
  }

  absl::Status CountText() {
    QUIRE_ASSIGN_OR_RETURN(summary_.text_size_bytes, passes_.Count());
    if (keeps_encoding()) {
      const Archive& archive = *options_.append.archive;
      context_->dictionary = std::string(AsText(archive.dictionary()));
      context_->symbol_table = std::string(AsText(archive.symbol_table()));
    }
    choice_.emplace(path_, options_, summary_.text_size_bytes, passes_,
                    context_);
    return absl::OkStatus();
  }

  absl::Status ChooseText() {
    QUIRE_RETURN_IF_ERROR(choice_->Choose(std::move(kept_dictionary_)));
    summary_.choice = choice_->Describe();
    summary_.omissions = choice_->omissions();
    summary_.oversized_members = choice_->oversized_members();
    return absl::OkStatus();
  }

  absl::Status ChooseSymbolTable() {
    const CodecInfo* const codec = FindCodec(options_.archive.codec.id);
    if (keeps_encoding()) {
      return absl::OkStatus();
    }
    if (codec != nullptr && codec->needs_symbol_table) {
      QUIRE_ASSIGN_OR_RETURN(context_->symbol_table,
                             choice_->TrainSymbolTable(true));
    } else if ((is_resumable() || !encodes_text_) && options_.symbol_table) {
      // Such a build does not encode all text that a table would be trained on:
      // the text with members as they are.
      QUIRE_ASSIGN_OR_RETURN(context_->symbol_table,
                             choice_->TrainSymbolTable(false));
    }
    return absl::OkStatus();
  }

  absl::Status StartArchive() {
    if (std::optional<InflatedText> inflated = choice_->TakeInflated()) {
      found_members_ = std::move(inflated->found);
      known_members_ = std::move(inflated->known);
      cutter_.emplace(std::move(inflated->members),
                      options_.archive.block_size_bytes);
    }
    QUIRE_RETURN_IF_ERROR(StartWriter());
    if (keeps_encoding()) {
      return absl::OkStatus();
    }
    if (!context_->symbol_table.empty()) {
      return writer_->SetSymbolTable(context_->symbol_table);
    }
    if (options_.symbol_table) {
      sampler_.emplace(choice_->stored_size_bytes());
    }
    return absl::OkStatus();
  }

  absl::Status MakeCodec() {
    QUIRE_RETURN_IF_ERROR(StartPhase(BuildPhase::kIndex));
    QUIRE_ASSIGN_OR_RETURN(
        codec_,
        MakePayloadCodec(
            options_.archive.codec, context_, CodecUse::kEncodeAndDecode,
            choice_->inflates() ? options_.inflate_member_size_bytes_max : 0));
    codec_->SetKnownMembers(&known_members_);
    return absl::OkStatus();
  }

  absl::Status EncodeText() {
    QUIRE_RETURN_IF_ERROR(StartPhase(BuildPhase::kEncode));
    QUIRE_RETURN_IF_ERROR(StartStage(*context_));
    QUIRE_RETURN_IF_ERROR(choice_->stored().has_value()
                              ? EncodeStoredText(*choice_->stored())
                              : Encode());
    summary_.copied_block_count = stage_->copied_block_count();
    summary_.mismatched_block_count = stage_->mismatched_block_count();
    stage_.reset();
    return absl::OkStatus();
  }

  absl::Status FinishArchive() {
    QUIRE_RETURN_IF_ERROR(StartPhase(BuildPhase::kFinish));
    if (sampler_.has_value()) {
      QUIRE_RETURN_IF_ERROR(writer_->SetSymbolTable(sampler_->Train()));
    }
    writer_->SetFoundMembers(std::move(found_members_));
    if (!keeps_encoding()) {
      writer_->SetChoice(summary_.choice.reason);
    } else {
      QUIRE_RETURN_IF_ERROR(writer_->FinishSegment());
      summary_.appended = writer_->appended();
    }
    if (keeps_encoding() && options_.append.merge) {
      const absl::StatusOr<uint32_t> joined = writer_->JoinSegments(
          *codec_, options_.segment_size_bytes, options_.cancel);
      // Commit() fails if this concerns the new segments.
      if (absl::IsDataLoss(joined.status())) {
        summary_.omissions.push_back(absl::StrCat(
            joined.status().message(),
            "; the documents were added, but segments were not joined: run "
            "quired verify, and quired repair or salvage"));
      } else {
        QUIRE_ASSIGN_OR_RETURN(summary_.joined_segment_count, joined);
      }
    }
    NoteUnreadInputs();
    return Commit();
  }

  // Records nothing of the inputs except the choice: they are no part of the
  // archive.
  absl::Status FinishEmpty() {
    QUIRE_RETURN_IF_ERROR(StartPhase(BuildPhase::kFinish));
    writer_->SetChoice(summary_.choice.reason);
    return Commit();
  }

  // --- Parts of passes ---

  // True if dictionary and symbol table are those of an archive.
  bool keeps_encoding() const { return options_.append.archive != nullptr; }

  bool is_resumable() const { return !options_.resume.parameters.empty(); }

  absl::Status Commit() {
    summary_.skipped = walk().skipped();
    summary_.dropped_attributes = walk().dropped();
    QUIRE_ASSIGN_OR_RETURN(summary_.info, writer_->Commit());
    return absl::OkStatus();
  }

  void NoteUnreadInputs() {
    uint64_t count = options_.resume.unread_input_count;
    std::vector<std::string> messages = options_.resume.unread_inputs;
    if (options_.failures != nullptr) {
      count += options_.failures->count();
      messages.insert(messages.end(), options_.failures->messages().begin(),
                      options_.failures->messages().end());
    }
    writer_->AddUnreadInputs(count, std::move(messages));
  }

  absl::Status StartWriter() {
    if (keeps_encoding()) {
      writer_ = ArchiveWriter::Append(std::move(*options_.append.change),
                                      options_.archive.writer);
      const std::optional<size_t> replaced = options_.append.replaced_from;
      return replaced.has_value()
                 ? writer_->ReplaceSegments(*replaced, options_.cancel)
                 : absl::OkStatus();
    }
    if (!is_resumable()) {
      QUIRE_ASSIGN_OR_RETURN(
          writer_, ArchiveWriter::Create(path_, options_.archive, context_));
      return absl::OkStatus();
    }
    QUIRE_RETURN_IF_ERROR(
        passes_.StartPhase(BuildPhase::kCheckKept, std::nullopt));
    QUIRE_ASSIGN_OR_RETURN(
        writer_,
        ArchiveWriter::Continue(*std::move(unfinished_), options_.archive,
                                context_, [this](uint64_t size_bytes) {
                                  passes_.Advance(size_bytes);
                                  return walk().CheckCancelled();
                                }));
    unfinished_.reset();
    return absl::OkStatus();
  }

  // Starts a phase over the text that blocks are cut from.
  absl::Status StartPhase(BuildPhase phase) {
    return passes_.StartPhase(phase, choice_->stored_size_bytes());
  }

  absl::Status StartStage(const CodecContext& context) {
    const Archive* const copied = options_.resume.copied;
    const BlockStageOptions stage = {
        .block_size_bytes = options_.archive.block_size_bytes,
        .cutter = cutter_.has_value() ? &*cutter_ : nullptr,
        .threads = options_.threads,
        .may_be_kept = is_resumable(),
        .copied = copied != nullptr && !choice_->stored().has_value() &&
                          !choice_->inflates() &&
                          HasBlocksOf(*copied, options_.archive, context)
                      ? copied
                      : nullptr};
    QUIRE_ASSIGN_OR_RETURN(
        stage_, BlockStage::Create(
                    *codec_, *writer_, stage,
                    [this](const StagedBlock& block) { CountBlock(block); }));
    return absl::OkStatus();
  }

  void CountBlock(const StagedBlock& block) {
    summary_.raw_block_count += block.is_raw ? 1 : 0;
    summary_.kept_block_count += block.is_kept ? 1 : 0;
    if (block.is_kept) {
      passes_.CountKept(block.size_bytes);
    } else {
      passes_.CountStored(block.stored_size_bytes);
    }
    passes_.Advance(block.size_bytes);
  }

  absl::Status EncodeStoredText(ReorderedText& stored) {
    uint64_t offset = 0;
    Checksummer64 checksum;
    for (ReorderedText::Segment& segment : stored.segments) {
      const uint64_t end = offset + segment.layout.stored_text_size_bytes;
      while (offset < end) {
        QUIRE_ASSIGN_OR_RETURN(MutableByteView text, stage_->Buffer());
        text = text.first(std::min<uint64_t>(text.size(), end - offset));
        QUIRE_RETURN_IF_ERROR(walk().CheckCancelled());
        QUIRE_RETURN_IF_ERROR(ReadStoredText(*stored.file, offset, text));
        checksum.Add(text);
        if (sampler_.has_value()) {
          sampler_->Add(text);
        }
        offset += text.size();
        QUIRE_RETURN_IF_ERROR(stage_->Advance(text.size()));
      }
      QUIRE_RETURN_IF_ERROR(stage_->EndSegment());
      QUIRE_RETURN_IF_ERROR(writer_->SetLayout(std::move(segment.layout),
                                               std::move(segment.documents)));
      QUIRE_RETURN_IF_ERROR(writer_->FinishSegment());
    }
    return checksum.Get() == stored.checksum ? absl::OkStatus()
                                             : StoredTextChanged(*stored.file);
  }

  absl::Status Encode() {
    uint64_t segment_bytes = 0;
    const absl::Status status = walk().ForEachDocument(
        [&](SourceReader& reader,
            const SourceDocument& document) -> absl::Status {
          QUIRE_ASSIGN_OR_RETURN(const uint64_t size_bytes,
                                 EncodeDocument(reader, document));
          segment_bytes += size_bytes;
          if (segment_bytes >= options_.segment_size_bytes) {
            segment_bytes = 0;
            QUIRE_RETURN_IF_ERROR(stage_->EndSegment());
            return writer_->FinishSegment();
          }
          return absl::OkStatus();
        });
    QUIRE_RETURN_IF_ERROR(status);
    return stage_->EndSegment();
  }

  // Returns the document's size.
  absl::StatusOr<uint64_t> EncodeDocument(SourceReader& reader,
                                          const SourceDocument& document) {
    NewDocument added = ToNewDocument(document);
    while (true) {
      QUIRE_RETURN_IF_ERROR(walk().CheckCancelled());
      QUIRE_ASSIGN_OR_RETURN(const MutableByteView buffer, stage_->Buffer());
      QUIRE_ASSIGN_OR_RETURN(const size_t got, ReadInto(reader, buffer));
      if (got == 0) {
        break;
      }
      QUIRE_RETURN_IF_ERROR(walk().AddText(reader, got));
      added.size_bytes += got;
      QUIRE_RETURN_IF_ERROR(stage_->Advance(got));
    }
    QUIRE_RETURN_IF_ERROR(writer_->AddDocument(added));
    return added.size_bytes;
  }

  // Reads the next bytes of the document; skips text that is already encoded.
  absl::StatusOr<size_t> ReadInto(SourceReader& reader,
                                  MutableByteView buffer) {
    if (stage_->is_kept() && !sampler_.has_value()) {
      QUIRE_ASSIGN_OR_RETURN(const uint64_t skipped,
                             reader.Skip(buffer.size()));
      return static_cast<size_t>(skipped);
    }
    QUIRE_ASSIGN_OR_RETURN(const size_t got, reader.Read(buffer));
    if (sampler_.has_value()) {
      sampler_->Add(ByteView(buffer).first(got));
    }
    return got;
  }

  DocumentWalk& walk() { return passes_.walk(); }

  const std::string path_;
  BuildOptions options_;
  BuildPasses passes_;
  // Dictionary and symbol table, once they are chosen.
  const std::shared_ptr<CodecContext> context_ =
      std::make_shared<CodecContext>();
  // Set once the text is counted.
  std::optional<TextChoice> choice_;
  // Dictionary of the unfinished archive.
  std::optional<std::string> kept_dictionary_;
  std::vector<FoundMembers> found_members_;
  KnownDeflateMembers known_members_;
  BuildSummary summary_;
  // False if only the encoding is chosen.
  bool encodes_text_ = true;
  // Set if compressed members are inflated.
  std::optional<BlockCutter> cutter_;
  // Set while the table is trained on the text being encoded.
  std::optional<SymbolSampler> sampler_;
  // Set until there is a writer, if the build can be resumed.
  std::optional<UnfinishedArchive> unfinished_;
  std::unique_ptr<ArchiveWriter> writer_;
  // Before the stage, whose threads use it until they are joined.
  std::unique_ptr<PayloadCodec> codec_;
  std::unique_ptr<BlockStage> stage_;
};

absl::Status CheckBuildOptions(const BuildOptions& options) {
  if (options.threads == 0 || options.segment_size_bytes == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("threads and segment size must be at least 1, got ",
                     options.threads, " and ", options.segment_size_bytes));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<BuildChoice> ChooseBuild(
    const std::string& path, std::span<const std::unique_ptr<Source>> sources,
    const BuildOptions& options) {
  return ArchiveBuild(path, sources, options).Choose();
}

absl::StatusOr<BuildSummary> BuildArchive(
    const std::string& path, std::span<const std::unique_ptr<Source>> sources,
    const BuildOptions& options) {
  QUIRE_RETURN_IF_ERROR(CheckBuildOptions(options));
  return ArchiveBuild(path, sources, options).Run();
}

absl::StatusOr<BuildSummary> BuildEmptyArchive(
    const std::string& path, std::span<const std::unique_ptr<Source>> sources,
    const BuildOptions& options) {
  QUIRE_RETURN_IF_ERROR(CheckBuildOptions(options));
  return ArchiveBuild(path, sources, options).WriteEmpty();
}

}  // namespace quire
