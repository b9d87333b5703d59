// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/ingest/build_pipeline.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
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

// Returns dictionary and symbol table of the archive that the build is like.
std::shared_ptr<CodecContext> ContextOf(const Archive& like) {
  return std::make_shared<CodecContext>(
      CodecContext{.dictionary = std::string(AsText(like.dictionary())),
                   .symbol_table = std::string(AsText(like.symbol_table()))});
}

BuildSummary Summarise(const TextChoice& choice, uint64_t text_size_bytes) {
  BuildSummary summary;
  summary.text_size_bytes = text_size_bytes;
  summary.choice = choice.Describe();
  summary.omissions = choice.omissions();
  summary.oversized_members = choice.oversized_members();
  return summary;
}

// Returns what an earlier build left, if this one can resume.
absl::StatusOr<std::optional<UnfinishedArchive>> OpenUnfinished(
    const std::string& path, const BuildOptions& options,
    const DocumentWalk& walk) {
  if (!options.is_resumable()) {
    return std::nullopt;
  }
  QUIRE_ASSIGN_OR_RETURN(
      UnfinishedArchive unfinished,
      UnfinishedArchive::Open(
          path, options.archive.replace,
          absl::StrCat(options.resume.parameters, walk.DescribeSources()),
          kBuildVersion, options.resume.restart));
  if (unfinished.has_dropped_blocks() && options.resume.on_dropped) {
    options.resume.on_dropped();
  }
  return std::optional(std::move(unfinished));
}

// Trains the symbol table in a pass of its own if the codec encodes with it,
// or if the last pass does not read all text that a table would be trained on:
// the text with members as they are.
absl::Status ChooseSymbolTable(const BuildOptions& options, bool reads_all_text,
                               TextChoice& choice, CodecContext& context) {
  const CodecInfo* const codec = FindCodec(options.archive.codec.id);
  const bool is_needed = codec != nullptr && codec->needs_symbol_table;
  if (is_needed || (!reads_all_text && options.symbol_table)) {
    QUIRE_ASSIGN_OR_RETURN(context.symbol_table,
                           choice.TrainSymbolTable(is_needed));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<ArchiveWriter>> Resume(
    UnfinishedArchive unfinished, const BuildOptions& options,
    const std::shared_ptr<const CodecContext>& context, BuildPasses& passes) {
  QUIRE_RETURN_IF_ERROR(
      passes.StartPhase(BuildPhase::kCheckKept, std::nullopt));
  return ArchiveWriter::Continue(std::move(unfinished), options.archive,
                                 context, [&passes](uint64_t size_bytes) {
                                   passes.Advance(size_bytes);
                                   return passes.walk().CheckCancelled();
                                 });
}

// The last passes of a build: encodes the chosen text into segments of an
// archive. Used once.
class ArchiveBuild {
 public:
  // `context` has the chosen dictionary, and the symbol table unless it is to
  // be trained on the text being encoded. All must outlive the build. Takes the
  // inflated text of `choice`. `summary` describes the earlier passes.
  ArchiveBuild(const BuildOptions& options, BuildPasses& passes,
               TextChoice& choice, std::shared_ptr<const CodecContext> context,
               ArchiveWriter& writer, BuildSummary summary)
      : ArchiveBuild(options, passes, choice, std::move(context), writer,
                     std::move(summary),
                     choice.TakeInflated().value_or(InflatedText())) {}

  // Completes a new archive.
  absl::StatusOr<BuildSummary> Write() {
    if (!context_->symbol_table.empty()) {
      QUIRE_RETURN_IF_ERROR(writer_.SetSymbolTable(context_->symbol_table));
    }
    QUIRE_RETURN_IF_ERROR(EncodeText().status());
    if (sampler_.has_value()) {
      QUIRE_RETURN_IF_ERROR(writer_.SetSymbolTable(sampler_->Train()));
    }
    writer_.SetChoice(summary_.choice.reason);
    return Commit();
  }

  // Completes a change of an archive; with `merge` joins its last segments.
  absl::StatusOr<BuildSummary> Grow(bool merge) {
    QUIRE_ASSIGN_OR_RETURN(const std::unique_ptr<PayloadCodec> codec,
                           EncodeText());
    QUIRE_RETURN_IF_ERROR(writer_.FinishSegment());
    summary_.appended = writer_.appended();
    if (merge) {
      const absl::StatusOr<uint32_t> joined = writer_.JoinSegments(
          *codec, options_.segment_size_bytes, options_.cancel);
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
    return Commit();
  }

 private:
  ArchiveBuild(const BuildOptions& options, BuildPasses& passes,
               TextChoice& choice, std::shared_ptr<const CodecContext> context,
               ArchiveWriter& writer, BuildSummary summary,
               InflatedText inflated)
      : options_(options),
        passes_(passes),
        choice_(choice),
        context_(std::move(context)),
        writer_(writer),
        found_members_(std::move(inflated.found)),
        known_members_(std::move(inflated.known)),
        summary_(std::move(summary)) {
    if (choice.inflates()) {
      cutter_.emplace(std::move(inflated.members),
                      options.archive.block_size_bytes);
    }
    if (!options.keeps_encoding() && context_->symbol_table.empty() &&
        options.symbol_table) {
      sampler_.emplace(choice.stored_size_bytes());
    }
  }

  // Returns the codec of the blocks.
  absl::StatusOr<std::unique_ptr<PayloadCodec>> EncodeText() {
    QUIRE_RETURN_IF_ERROR(StartPhase(BuildPhase::kIndex));
    QUIRE_ASSIGN_OR_RETURN(
        std::unique_ptr<PayloadCodec> codec,
        MakePayloadCodec(
            options_.archive.codec, context_, CodecUse::kEncodeAndDecode,
            choice_.inflates() ? options_.inflate_member_size_bytes_max : 0));
    codec->SetKnownMembers(&known_members_);
    QUIRE_RETURN_IF_ERROR(writer_.SetFields(passes_.fields().columns()));
    QUIRE_RETURN_IF_ERROR(StartPhase(BuildPhase::kEncode));
    QUIRE_ASSIGN_OR_RETURN(const std::unique_ptr<BlockStage> stage,
                           BlockStage::Create(*codec, writer_, StageOptions(),
                                              [this](const StagedBlock& block) {
                                                CountBlock(block);
                                              }));
    QUIRE_RETURN_IF_ERROR(choice_.stored().has_value()
                              ? EncodeStoredText(*choice_.stored(), *stage)
                              : EncodeDocuments(*stage));
    summary_.copied_block_count = stage->copied_block_count();
    summary_.mismatched_block_count = stage->mismatched_block_count();
    QUIRE_RETURN_IF_ERROR(StartPhase(BuildPhase::kFinish));
    return codec;
  }

  // Starts a phase over the text that blocks are cut from.
  absl::Status StartPhase(BuildPhase phase) {
    return passes_.StartPhase(phase, choice_.stored_size_bytes());
  }

  BlockStageOptions StageOptions() {
    const Archive* const copied = options_.resume.copied;
    return {.block_size_bytes = options_.archive.block_size_bytes,
            .cutter = cutter_.has_value() ? &*cutter_ : nullptr,
            .threads = options_.threads,
            .may_be_kept = options_.is_resumable(),
            .copied = copied != nullptr && !choice_.stored().has_value() &&
                              !choice_.inflates() &&
                              HasBlocksOf(*copied, options_.archive, *context_)
                          ? copied
                          : nullptr};
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

  absl::Status EncodeStoredText(ReorderedText& stored, BlockStage& stage) {
    uint64_t offset = 0;
    Checksummer64 checksum;
    for (ReorderedText::Segment& segment : stored.segments) {
      const uint64_t end = offset + segment.layout.stored_text_size_bytes;
      while (offset < end) {
        QUIRE_ASSIGN_OR_RETURN(MutableByteView text, stage.Buffer());
        text = text.first(std::min<uint64_t>(text.size(), end - offset));
        QUIRE_RETURN_IF_ERROR(walk().CheckCancelled());
        QUIRE_RETURN_IF_ERROR(ReadStoredText(*stored.file, offset, text));
        checksum.Add(text);
        if (sampler_.has_value()) {
          sampler_->Add(text);
        }
        offset += text.size();
        QUIRE_RETURN_IF_ERROR(stage.Advance(text.size()));
      }
      QUIRE_RETURN_IF_ERROR(stage.EndSegment());
      QUIRE_RETURN_IF_ERROR(writer_.SetLayout(std::move(segment.layout),
                                              std::move(segment.documents)));
      QUIRE_RETURN_IF_ERROR(writer_.FinishSegment());
    }
    return checksum.Get() == stored.checksum ? absl::OkStatus()
                                             : StoredTextChanged(*stored.file);
  }

  absl::Status EncodeDocuments(BlockStage& stage) {
    uint64_t segment_bytes = 0;
    passes_.StartDeposits();
    const absl::Status status = walk().ForEachDocument(
        [&](SourceReader& reader,
            const SourceDocument& document) -> absl::Status {
          QUIRE_ASSIGN_OR_RETURN(const uint64_t size_bytes,
                                 EncodeDocument(reader, document, stage));
          segment_bytes += size_bytes;
          if (segment_bytes >= options_.segment_size_bytes) {
            segment_bytes = 0;
            QUIRE_RETURN_IF_ERROR(stage.EndSegment());
            return writer_.FinishSegment();
          }
          return absl::OkStatus();
        });
    QUIRE_RETURN_IF_ERROR(status);
    passes_.deposits().EndPass();
    return stage.EndSegment();
  }

  // Returns the document's size.
  absl::StatusOr<uint64_t> EncodeDocument(SourceReader& reader,
                                          const SourceDocument& document,
                                          BlockStage& stage) {
    QUIRE_RETURN_IF_ERROR(passes_.StartDocument(document));
    QUIRE_ASSIGN_OR_RETURN(NewDocument added,
                           passes_.ToNewDocument(reader, document));
    while (true) {
      QUIRE_RETURN_IF_ERROR(walk().CheckCancelled());
      QUIRE_ASSIGN_OR_RETURN(const MutableByteView buffer, stage.Buffer());
      QUIRE_ASSIGN_OR_RETURN(const size_t got,
                             ReadInto(reader, stage.is_kept(), buffer));
      if (got == 0) {
        break;
      }
      QUIRE_RETURN_IF_ERROR(walk().AddText(reader, got));
      added.size_bytes += got;
      QUIRE_RETURN_IF_ERROR(stage.Advance(got));
    }
    passes_.EndDocument(added.size_bytes);
    QUIRE_RETURN_IF_ERROR(writer_.AddDocument(added));
    return added.size_bytes;
  }

  // Reads the next bytes of the document; skips text that is already encoded.
  absl::StatusOr<size_t> ReadInto(SourceReader& reader, bool is_kept,
                                  MutableByteView buffer) {
    if (is_kept && !sampler_.has_value()) {
      QUIRE_ASSIGN_OR_RETURN(const uint64_t skipped,
                             reader.Skip(buffer.size()));
      passes_.deposits().SkipText();
      return static_cast<size_t>(skipped);
    }
    QUIRE_ASSIGN_OR_RETURN(const size_t got, reader.Read(buffer));
    passes_.deposits().AddText(ByteView(buffer).first(got));
    if (sampler_.has_value()) {
      sampler_->Add(ByteView(buffer).first(got));
    }
    return got;
  }

  absl::StatusOr<BuildSummary> Commit() {
    writer_.SetFoundMembers(std::move(found_members_));
    NoteUnreadInputs();
    summary_.fields = passes_.fields().columns();
    summary_.field_notes = passes_.fields().notes();
    summary_.deposits = passes_.deposits().summary();
    summary_.skipped = walk().skipped();
    summary_.dropped_attributes = walk().dropped();
    QUIRE_ASSIGN_OR_RETURN(summary_.info, writer_.Commit());
    return std::move(summary_);
  }

  void NoteUnreadInputs() {
    UnreadInputs unread = walk().unread_inputs();
    if (options_.failures != nullptr) {
      unread.count += options_.failures->count();
      std::ranges::copy(options_.failures->messages(),
                        std::back_inserter(unread.messages));
    }
    writer_.AddUnreadInputs(unread.count, std::move(unread.messages));
  }

  DocumentWalk& walk() { return passes_.walk(); }

  const BuildOptions& options_;
  BuildPasses& passes_;
  TextChoice& choice_;
  const std::shared_ptr<const CodecContext> context_;
  ArchiveWriter& writer_;
  std::vector<FoundMembers> found_members_;
  KnownDeflateMembers known_members_;
  BuildSummary summary_;
  // Set if compressed members are inflated.
  std::optional<BlockCutter> cutter_;
  // Set if the symbol table is trained on the text being encoded.
  std::optional<SymbolSampler> sampler_;
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
  BuildPasses passes(sources, options);
  QUIRE_ASSIGN_OR_RETURN(const uint64_t size_bytes, passes.Count());
  TextChoice choice(path, options, size_bytes, passes,
                    std::make_shared<CodecContext>());
  QUIRE_RETURN_IF_ERROR(choice.Choose(std::nullopt));
  return choice.Describe();
}

absl::StatusOr<BuildSummary> BuildArchive(
    const std::string& path, std::span<const std::unique_ptr<Source>> sources,
    const BuildOptions& options) {
  QUIRE_RETURN_IF_ERROR(CheckBuildOptions(options));
  BuildPasses passes(sources, options);
  QUIRE_ASSIGN_OR_RETURN(const uint64_t size_bytes, passes.Count());
  QUIRE_ASSIGN_OR_RETURN(std::optional<UnfinishedArchive> unfinished,
                         OpenUnfinished(path, options, passes.walk()));
  const auto context = std::make_shared<CodecContext>();
  TextChoice choice(path, options, size_bytes, passes, context);
  QUIRE_RETURN_IF_ERROR(choice.Choose(
      unfinished.has_value() ? unfinished->ReadDictionary() : std::nullopt));
  BuildSummary summary = Summarise(choice, size_bytes);
  QUIRE_RETURN_IF_ERROR(ChooseSymbolTable(
      options, /*reads_all_text=*/!options.is_resumable(), choice, *context));
  QUIRE_ASSIGN_OR_RETURN(
      const std::unique_ptr<ArchiveWriter> writer,
      unfinished.has_value()
          ? Resume(*std::move(unfinished), options, context, passes)
          : ArchiveWriter::Create(path, options.archive, context));
  return ArchiveBuild(options, passes, choice, context, *writer,
                      std::move(summary))
      .Write();
}

absl::StatusOr<BuildSummary> BuildEmptyArchive(
    const std::string& path, std::span<const std::unique_ptr<Source>> sources,
    const BuildOptions& options) {
  QUIRE_RETURN_IF_ERROR(CheckBuildOptions(options));
  BuildPasses passes(sources, options);
  QUIRE_ASSIGN_OR_RETURN(const uint64_t size_bytes, passes.Count());
  const auto context = std::make_shared<CodecContext>();
  TextChoice choice(path, options, size_bytes, passes, context);
  QUIRE_RETURN_IF_ERROR(choice.Choose(std::nullopt));
  BuildSummary summary = Summarise(choice, size_bytes);
  QUIRE_RETURN_IF_ERROR(
      ChooseSymbolTable(options, /*reads_all_text=*/false, choice, *context));
  QUIRE_ASSIGN_OR_RETURN(const std::unique_ptr<ArchiveWriter> writer,
                         ArchiveWriter::Create(path, options.archive, context));
  if (!context->symbol_table.empty()) {
    QUIRE_RETURN_IF_ERROR(writer->SetSymbolTable(context->symbol_table));
  }
  QUIRE_RETURN_IF_ERROR(
      passes.StartPhase(BuildPhase::kFinish, choice.stored_size_bytes()));
  // Nothing else of the inputs is recorded: they are no part of the archive.
  writer->SetChoice(summary.choice.reason);
  summary.skipped = passes.walk().skipped();
  summary.dropped_attributes = passes.walk().dropped();
  QUIRE_ASSIGN_OR_RETURN(summary.info, writer->Commit());
  return summary;
}

absl::StatusOr<BuildSummary> GrowArchive(
    const std::string& path, std::unique_ptr<ArchiveWriter> writer,
    const Archive& like, std::span<const std::unique_ptr<Source>> sources,
    BuildOptions options, bool merge) {
  const ArchiveInfo& info = like.info();
  if (!info.unknown_part.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat(like.path(), ": ", info.unknown_part,
                     " that this program does not know: use a newer one"));
  }
  options.like = &like;
  options.archive.codec = info.codec;
  options.archive.block_size_bytes = info.block_size_bytes;
  options.symbol_table = info.symbol_table_size_bytes > 0;
  QUIRE_RETURN_IF_ERROR(CheckBuildOptions(options));
  BuildPasses passes(sources, options);
  QUIRE_RETURN_IF_ERROR(passes.fields().SetKnown(like.fields(), like.path()));
  QUIRE_ASSIGN_OR_RETURN(const uint64_t size_bytes, passes.Count());
  const auto context = ContextOf(like);
  TextChoice choice(path, options, size_bytes, passes, context);
  QUIRE_RETURN_IF_ERROR(choice.Choose(std::nullopt));
  return ArchiveBuild(options, passes, choice, context, *writer,
                      Summarise(choice, size_bytes))
      .Grow(merge);
}

}  // namespace quire
