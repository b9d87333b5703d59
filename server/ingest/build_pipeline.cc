// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/ingest/build_pipeline.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

#include "codecs/base/status_macros.h"
#include "codecs/block_codec.h"
#include "server/archive/unfinished_archive.h"
#include "server/ingest/block_cutter.h"
#include "server/ingest/block_stage.h"
#include "server/ingest/encoder_codec.h"
#include "server/ingest/inflated_text.h"
#include "server/ingest/order_choice.h"
#include "server/ingest/reordered_text.h"
#include "server/ingest/symbol_sampler.h"

namespace quire {
namespace {

constexpr size_t kReadSizeBytes = 1 << 20;
// Between two calls of on_progress.
constexpr uint64_t kProgressStepBytes = 2 << 20;

// One build. Each pass is a walk over all documents of all sources.
class ArchiveBuild {
 public:
  ArchiveBuild(std::span<const std::unique_ptr<Source>> sources,
               const BuildOptions& options)
      : sources_(sources),
        options_(options),
        limits_(options.input_size_bytes_max) {}

  absl::StatusOr<BuildSummary> Run(const std::string& path) {
    auto context = std::make_shared<CodecContext>();
    std::optional<std::string> kept_dictionary;
    if (is_resumable()) {
      QUIRE_ASSIGN_OR_RETURN(
          UnfinishedArchive unfinished,
          UnfinishedArchive::Open(path, options_.archive.replace,
                                  options_.resume.parameters, kBuildVersion,
                                  options_.resume.restart));
      if (unfinished.has_dropped_blocks() && options_.resume.on_dropped) {
        options_.resume.on_dropped();
      }
      unfinished_.emplace(std::move(unfinished));
      kept_dictionary = unfinished_->ReadDictionary();
    }
    QUIRE_RETURN_IF_ERROR(Count());
    if (options_.check_text_size) {
      QUIRE_RETURN_IF_ERROR(options_.check_text_size(*progress_.total_bytes));
    }
    QUIRE_RETURN_IF_ERROR(
        ChooseText(path, context, std::move(kept_dictionary)));
    const CodecInfo* const codec_info = FindCodec(options_.archive.codec.id);
    // A build that is gone on with does not encode all that a table would be
    // trained on.
    if (!options_.resume.symbol_table.empty()) {
      context->symbol_table = options_.resume.symbol_table;
    } else if ((codec_info != nullptr && codec_info->needs_symbol_table) ||
               (is_resumable() && options_.symbol_table)) {
      QUIRE_ASSIGN_OR_RETURN(context->symbol_table, ChooseSymbolTable());
    }
    std::vector<FoundMembers> found_members;
    if (inflated_.has_value()) {
      found_members = std::move(inflated_->found);
      cutter_.emplace(std::move(inflated_->members),
                      options_.archive.block_size_bytes);
      inflated_.reset();
    }
    progress_.total_bytes = stored_text_bytes_;
    QUIRE_RETURN_IF_ERROR(StartWriter(path, context));
    if (!context->symbol_table.empty()) {
      QUIRE_RETURN_IF_ERROR(writer_->SetSymbolTable(context->symbol_table));
    } else if (options_.symbol_table) {
      sampler_.emplace(*progress_.total_bytes);
    }
    QUIRE_RETURN_IF_ERROR(StartPhase(BuildPhase::kIndex));
    QUIRE_ASSIGN_OR_RETURN(codec_, MakeEncoder(options_, context));
    QUIRE_RETURN_IF_ERROR(StartPhase(BuildPhase::kEncode));
    QUIRE_RETURN_IF_ERROR(StartStage(*context));
    QUIRE_RETURN_IF_ERROR(stored_.has_value() ? EncodeStoredText() : Encode());
    summary_.copied_block_count = stage_->copied_block_count();
    summary_.mismatched_block_count = stage_->mismatched_block_count();
    stage_.reset();
    QUIRE_RETURN_IF_ERROR(StartPhase(BuildPhase::kFinish));
    if (sampler_.has_value()) {
      QUIRE_RETURN_IF_ERROR(writer_->SetSymbolTable(sampler_->Train()));
    }
    writer_->SetFoundMembers(std::move(found_members));
    NoteUnreadInputs();
    QUIRE_ASSIGN_OR_RETURN(summary_.info, writer_->Commit());
    return summary_;
  }

 private:
  using Visit =
      std::function<absl::Status(SourceReader&, const SourceDocument&)>;

  bool is_resumable() const { return !options_.resume.parameters.empty(); }

  void NoteUnreadInputs() {
    uint64_t count = options_.resume.unread_input_count;
    std::vector<std::string> messages = options_.resume.unread_inputs;
    if (options_.failures != nullptr) {
      count += options_.failures->count();
      messages.insert(messages.end(), options_.failures->messages().begin(),
                      options_.failures->messages().end());
    }
    writer_->SetUnreadInputs(count, std::move(messages));
  }

  absl::Status StartWriter(const std::string& path,
                           const std::shared_ptr<const CodecContext>& context) {
    if (!is_resumable()) {
      QUIRE_ASSIGN_OR_RETURN(
          writer_, ArchiveWriter::Create(path, options_.archive, context));
      return absl::OkStatus();
    }
    const std::optional<uint64_t> total_bytes =
        std::exchange(progress_.total_bytes, std::nullopt);
    QUIRE_RETURN_IF_ERROR(StartPhase(BuildPhase::kCheckKept));
    QUIRE_ASSIGN_OR_RETURN(
        writer_,
        ArchiveWriter::Continue(*std::move(unfinished_), options_.archive,
                                context, [this](uint64_t size_bytes) {
                                  Advance(size_bytes);
                                  return CheckCancelled();
                                }));
    unfinished_.reset();
    progress_.total_bytes = total_bytes;
    return absl::OkStatus();
  }

  absl::Status CheckCancelled() const {
    if (options_.cancel != nullptr && options_.cancel->load()) {
      return absl::CancelledError("the build was interrupted");
    }
    return absl::OkStatus();
  }

  absl::Status StartPhase(BuildPhase phase) {
    progress_.phase = phase;
    progress_.done_bytes = 0;
    reported_bytes_ = 0;
    Report();
    return CheckCancelled();
  }

  void Report() {
    if (options_.on_progress) {
      options_.on_progress(progress_);
    }
  }

  void Advance(uint64_t size_bytes) {
    progress_.done_bytes += size_bytes;
    if (progress_.done_bytes >= reported_bytes_ + kProgressStepBytes) {
      reported_bytes_ = progress_.done_bytes;
      Report();
    }
  }

  absl::Status ForEachDocument(const Visit& visit) {
    SkippedEntries skipped;
    limits_.StartPass();
    for (source_index_ = 0; source_index_ < sources_.size(); ++source_index_) {
      source_ = sources_[source_index_].get();
      const absl::Status opened = OpenCurrentSource();
      if (!opened.ok()) {
        QUIRE_RETURN_IF_ERROR(UnlessTolerated(opened));
        continue;
      }
      QUIRE_RETURN_IF_ERROR(ReadCurrentSource(visit));
      skipped += reader_->skipped();
      reader_.reset();
    }
    summary_.skipped = skipped;
    summary_.dropped_attributes = limits_.dropped();
    return absl::OkStatus();
  }

  absl::Status OpenCurrentSource() {
    QUIRE_RETURN_IF_ERROR(limits_.StartSource(*source_));
    QUIRE_ASSIGN_OR_RETURN(reader_, source_->Open());
    document_index_ = 0;
    if (progress_.phase == BuildPhase::kCount && options_.on_note) {
      reader_->Listen(options_.on_note);
    }
    return absl::OkStatus();
  }

  absl::Status ReadCurrentSource(const Visit& visit) {
    bool goes_on = true;
    while (goes_on) {
      QUIRE_RETURN_IF_ERROR(CheckCancelled());
      absl::StatusOr<std::optional<SourceDocument>> document = reader_->Next();
      if (!document.ok()) {
        QUIRE_RETURN_IF_ERROR(UnlessTolerated(document.status()));
        goes_on = reader_->CanContinue();
        continue;
      }
      if (!document->has_value()) {
        break;
      }
      const absl::Status held =
          limits_.StartDocument(*source_, *reader_, **document);
      if (!held.ok()) {
        QUIRE_RETURN_IF_ERROR(UnlessTolerated(held));
        continue;
      }
      QUIRE_ASSIGN_OR_RETURN(goes_on, VisitDocument(**document, visit));
      ++document_index_;
    }
    return absl::OkStatus();
  }

  // False if nothing can be read behind the document.
  absl::StatusOr<bool> VisitDocument(const SourceDocument& document,
                                     const Visit& visit) {
    if (options_.failures == nullptr) {
      QUIRE_RETURN_IF_ERROR(visit(*reader_, document));
      return true;
    }
    // A place may be shortened, and an id repeated; the three together mean one
    // document, also if the input changes between passes.
    const std::string place =
        absl::StrCat(document_index_, " ", reader_->Place(), " ", document.id);
    if (options_.failures->HasFailed(source_index_, place)) {
      return PassFailedDocument();
    }
    const uint64_t done_bytes = progress_.done_bytes;
    const absl::Status status = visit(*reader_, document);
    if (status.ok()) {
      return true;
    }
    // Later passes have handed its text on already.
    if (progress_.phase != BuildPhase::kCount ||
        !options_.failures->TolerateDocument(source_index_, place, status)) {
      return status;
    }
    progress_.done_bytes = done_bytes;
    return reader_->CanContinue();
  }

  // Comes past the document as the first pass did: by reading up to the
  // failure.
  absl::StatusOr<bool> PassFailedDocument() {
    while (true) {
      QUIRE_RETURN_IF_ERROR(CheckCancelled());
      const absl::StatusOr<uint64_t> passed = ReadOver();
      if (!passed.ok()) {
        return reader_->CanContinue();
      }
      if (*passed == 0) {
        return true;
      }
    }
  }

  // Reads a piece of the current document and drops it; returns its size.
  absl::StatusOr<uint64_t> ReadOver() {
    scratch_.resize(kReadSizeBytes);
    return reader_->Read(scratch_);
  }

  // OK if the build goes on without what failed. What fails only in a later
  // pass is part of what was counted, so nothing can do without it.
  absl::Status UnlessTolerated(const absl::Status& status) {
    const bool is_tolerated =
        options_.failures != nullptr &&
        (progress_.phase == BuildPhase::kCount
             ? options_.failures->Tolerate(source_index_, status)
             : options_.failures->HasFailed(source_index_, status.message()));
    return is_tolerated ? absl::OkStatus() : status;
  }

  absl::Status Count() {
    QUIRE_RETURN_IF_ERROR(StartPhase(BuildPhase::kCount));
    absl::Status status = ForEachDocument(
        [this](SourceReader& reader, const SourceDocument& document) {
          return CountDocument(reader, document);
        });
    progress_.total_bytes = progress_.done_bytes;
    return status;
  }

  absl::Status CountDocument(SourceReader& reader,
                             const SourceDocument& document) {
    const bool reads_all = options_.failures != nullptr;
    if (document.size_bytes.has_value() && !reads_all) {
      Advance(*document.size_bytes);
      return limits_.AddText(*source_, reader, *document.size_bytes);
    }
    uint64_t skipped = kReadSizeBytes;
    while (reads_all ? skipped > 0 : skipped == kReadSizeBytes) {
      QUIRE_RETURN_IF_ERROR(CheckCancelled());
      QUIRE_ASSIGN_OR_RETURN(
          skipped, reads_all ? ReadOver() : reader.Skip(kReadSizeBytes));
      QUIRE_RETURN_IF_ERROR(limits_.AddText(*source_, reader, skipped));
      Advance(skipped);
    }
    return absl::OkStatus();
  }

  // Decides on what is stored, and on the dictionary.
  absl::Status ChooseText(const std::string& path,
                          const std::shared_ptr<CodecContext>& context,
                          std::optional<std::string> kept_dictionary) {
    if (options_.reorder == ReorderMode::kAuto) {
      return ChooseOrder(path, context);
    }
    if (options_.reorder != ReorderMode::kOff) {
      QUIRE_RETURN_IF_ERROR(Reorder(path));
    }
    return PrepareText(path, *context, std::move(kept_dictionary));
  }

  // Reorders only if the archive as a whole becomes smaller: a dictionary may
  // hold what comes again already.
  absl::Status ChooseOrder(const std::string& path,
                           const std::shared_ptr<CodecContext>& context) {
    PreparedText other = {.total_bytes = *progress_.total_bytes,
                          .codec = options_.archive.codec.id};
    QUIRE_RETURN_IF_ERROR(Reorder(path));
    if (!HasLayout(*stored_)) {
      SwapPrepared(other, *context);
      return PrepareText(path, *context, std::nullopt);
    }
    QUIRE_RETURN_IF_ERROR(PrepareText(path, *context, std::nullopt));
    QUIRE_ASSIGN_OR_RETURN(const SizeEstimate reordered, Estimate(context));
    SwapPrepared(other, *context);
    QUIRE_RETURN_IF_ERROR(PrepareText(path, *context, std::nullopt));
    QUIRE_ASSIGN_OR_RETURN(const SizeEstimate in_order, Estimate(context));
    if (IsClearlySmaller(reordered, in_order)) {
      SwapPrepared(other, *context);
    }
    return absl::OkStatus();
  }

  absl::Status PrepareText(const std::string& path, CodecContext& context,
                           std::optional<std::string> kept_dictionary) {
    stored_text_bytes_ = *progress_.total_bytes;
    QUIRE_RETURN_IF_ERROR(InflateIfAsked(path));
    const CodecInfo* const codec = FindCodec(options_.archive.codec.id);
    if (codec != nullptr && codec->needs_dictionary) {
      if (kept_dictionary.has_value()) {
        context.dictionary = *std::move(kept_dictionary);
      } else {
        QUIRE_ASSIGN_OR_RETURN(context.dictionary, ChooseDictionary());
      }
    }
    return absl::OkStatus();
  }

  // Returns the size of the archive of the text that is prepared.
  absl::StatusOr<SizeEstimate> Estimate(
      const std::shared_ptr<CodecContext>& context) {
    if (FindCodec(options_.archive.codec.id)->needs_symbol_table) {
      QUIRE_ASSIGN_OR_RETURN(context->symbol_table, ChooseSymbolTable());
    }
    const uint64_t total_bytes = *progress_.total_bytes;
    absl::StatusOr<SizeEstimate> estimate = EstimateSize(
        options_, context, total_bytes,
        [&](const std::function<absl::Status(ByteView)>& add) -> absl::Status {
          QUIRE_RETURN_IF_ERROR(StartPhase(BuildPhase::kTrial));
          return Feed(total_bytes, add);
        });
    context->symbol_table.clear();
    if (estimate.ok() && stored_.has_value()) {
      estimate->size_bytes += LayoutSizeBytes(*stored_);
    }
    return estimate;
  }

  void SwapPrepared(PreparedText& other, CodecContext& context) {
    std::swap(stored_, other.stored);
    std::swap(inflated_, other.inflated);
    std::swap(stored_text_bytes_, other.stored_text_bytes);
    std::swap(progress_.total_bytes, other.total_bytes);
    std::swap(options_.archive.codec.id, other.codec);
    std::swap(context.dictionary, other.dictionary);
  }

  // Writes what is to be stored to a file next to the archive.
  absl::Status Reorder(const std::string& path) {
    QUIRE_ASSIGN_OR_RETURN(
        const std::unique_ptr<TextReorderer> reorderer,
        TextReorderer::Create(ReorderOptionsFor(
            options_, SpoolDirectoryFor(path), *progress_.total_bytes)));
    QUIRE_RETURN_IF_ERROR(StartPhase(BuildPhase::kReorder));
    std::vector<uint8_t> buffer(kReadSizeBytes);
    uint64_t segment_bytes = 0;
    const absl::Status status =
        ForEachDocument([&](SourceReader& reader,
                            const SourceDocument& document) -> absl::Status {
          const uint64_t before_bytes = progress_.done_bytes;
          QUIRE_RETURN_IF_ERROR(
              ReadDocument(reader, buffer, [&](ByteView piece) {
                Advance(piece.size());
                return reorderer->Add(piece);
              }));
          QUIRE_RETURN_IF_ERROR(
              reorderer->EndDocument(ToNewDocument(document)));
          segment_bytes += progress_.done_bytes - before_bytes;
          if (segment_bytes < options_.segment_size_bytes) {
            return absl::OkStatus();
          }
          segment_bytes = 0;
          return reorderer->EndSegment();
        });
    QUIRE_RETURN_IF_ERROR(status);
    QUIRE_ASSIGN_OR_RETURN(stored_, reorderer->Finish());
    progress_.total_bytes = stored_->size_bytes;
    return absl::OkStatus();
  }

  // Writes what the dictionary and the symbol table are chosen from to a file
  // next to the archive, and decides on the codec.
  absl::Status InflateIfAsked(const std::string& path) {
    CodecId& codec = options_.archive.codec.id;
    const CodecInfo* const given = FindCodec(codec);
    const CodecInfo* const other =
        options_.inflate ? FindInflatingCodec(codec) : nullptr;
    if (other == nullptr && (given == nullptr || !given->inflates())) {
      return absl::OkStatus();
    }
    QUIRE_ASSIGN_OR_RETURN(
        const std::unique_ptr<TextInflater> inflater,
        TextInflater::Create(
            {.spool_directory = SpoolDirectoryFor(path),
             .member_text_size_max = options_.inflate_member_size_bytes_max,
             .threads = options_.threads,
             .cancel = options_.cancel}));
    QUIRE_RETURN_IF_ERROR(StartPhase(BuildPhase::kInflate));
    QUIRE_RETURN_IF_ERROR(Feed(*progress_.total_bytes, [&](ByteView piece) {
      return inflater->Add(piece);
    }));
    QUIRE_ASSIGN_OR_RETURN(InflatedText text, inflater->Finish());
    summary_.oversized_members = text.Oversized();
    if (text.members.empty() ||
        (other != nullptr && !text.PaysOff(*progress_.total_bytes))) {
      return absl::OkStatus();
    }
    if (other != nullptr) {
      codec = other->id;
    }
    progress_.total_bytes = text.size_bytes;
    inflated_ = std::move(text);
    return absl::OkStatus();
  }

  static NewDocument ToNewDocument(const SourceDocument& document) {
    return {.id = document.id,
            .capture_time_ms = document.capture_time_ms,
            .record_type = document.record_type,
            .media_type = document.media_type};
  }

  absl::StatusOr<std::string> ChooseDictionary() {
    const uint64_t total_bytes = *progress_.total_bytes;
    return quire::ChooseDictionary(
        {.method = options_.dictionary_method,
         .dictionary_size_bytes = options_.dictionary_size_bytes,
         .codec = options_.archive.codec,
         .block_size_bytes = options_.archive.block_size_bytes},
        total_bytes,
        [&](const std::function<absl::Status(ByteView)>& add) -> absl::Status {
          QUIRE_RETURN_IF_ERROR(StartPhase(BuildPhase::kDictionary));
          return Feed(total_bytes, add);
        });
  }

  absl::StatusOr<std::string> ChooseSymbolTable() {
    const uint64_t total_bytes = *progress_.total_bytes;
    SymbolSampler sampler(total_bytes);
    QUIRE_RETURN_IF_ERROR(StartPhase(BuildPhase::kSymbolTable));
    QUIRE_RETURN_IF_ERROR(Feed(total_bytes, [&](ByteView piece) {
      sampler.Add(piece);
      return absl::OkStatus();
    }));
    return sampler.Train();
  }

  // Reads all documents and hands on their text piece by piece.
  absl::Status Feed(uint64_t total_bytes,
                    const std::function<absl::Status(ByteView)>& add) {
    std::vector<uint8_t> buffer(kReadSizeBytes);
    if (inflated_.has_value()) {
      return FeedFile(*inflated_->file, inflated_->size_bytes, buffer, add);
    }
    if (stored_.has_value()) {
      return FeedFile(*stored_->file, stored_->size_bytes, buffer, add);
    }
    return ForEachDocument([&](SourceReader& reader, const SourceDocument&) {
      return ReadDocument(reader, buffer, [&](ByteView piece) {
        // What was added to the inputs since they were counted is not
        // sampled; it is encoded all the same.
        const uint64_t rest = total_bytes - progress_.done_bytes;
        const auto size =
            static_cast<size_t>(std::min<uint64_t>(piece.size(), rest));
        if (size > 0) {
          QUIRE_RETURN_IF_ERROR(add(piece.first(size)));
        }
        Advance(size);
        return absl::OkStatus();
      });
    });
  }

  // Hands on the text of the current document, by way of `buffer`.
  absl::Status ReadDocument(SourceReader& reader, std::vector<uint8_t>& buffer,
                            const std::function<absl::Status(ByteView)>& add) {
    while (true) {
      QUIRE_RETURN_IF_ERROR(CheckCancelled());
      QUIRE_ASSIGN_OR_RETURN(const size_t got, reader.Read(buffer));
      if (got == 0) {
        return absl::OkStatus();
      }
      QUIRE_RETURN_IF_ERROR(limits_.AddText(*source_, reader, got));
      QUIRE_RETURN_IF_ERROR(add(ByteView(buffer).first(got)));
    }
  }

  absl::Status FeedFile(const InputFile& file, uint64_t size_bytes,
                        std::vector<uint8_t>& buffer,
                        const std::function<absl::Status(ByteView)>& add) {
    while (progress_.done_bytes < size_bytes) {
      const MutableByteView piece = MutableByteView(buffer).first(
          std::min<uint64_t>(buffer.size(), size_bytes - progress_.done_bytes));
      QUIRE_RETURN_IF_ERROR(CheckCancelled());
      QUIRE_RETURN_IF_ERROR(ReadStoredText(file, progress_.done_bytes, piece));
      QUIRE_RETURN_IF_ERROR(add(piece));
      Advance(piece.size());
    }
    return absl::OkStatus();
  }

  absl::Status StartStage(const CodecContext& context) {
    const Archive* const copied = options_.resume.copied;
    const BlockStageOptions stage = {
        .block_size_bytes = options_.archive.block_size_bytes,
        .cutter = cutter_.has_value() ? &*cutter_ : nullptr,
        .threads = options_.threads,
        .may_be_kept = is_resumable(),
        .copied = copied != nullptr && !stored_.has_value() &&
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
      progress_.kept_bytes += block.size_bytes;
    } else {
      progress_.stored_bytes += block.stored_size_bytes;
    }
    Advance(block.size_bytes);
  }

  absl::Status EncodeStoredText() {
    uint64_t offset = 0;
    Checksummer64 checksum;
    for (ReorderedText::Segment& segment : stored_->segments) {
      const uint64_t end = offset + segment.layout.stored_text_size_bytes;
      while (offset < end) {
        QUIRE_ASSIGN_OR_RETURN(MutableByteView text, stage_->Buffer());
        text = text.first(std::min<uint64_t>(text.size(), end - offset));
        QUIRE_RETURN_IF_ERROR(CheckCancelled());
        QUIRE_RETURN_IF_ERROR(ReadStoredText(*stored_->file, offset, text));
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
    return checksum.Get() == stored_->checksum
               ? absl::OkStatus()
               : StoredTextChanged(*stored_->file);
  }

  absl::Status Encode() {
    uint64_t segment_bytes = 0;
    const absl::Status status =
        ForEachDocument([&](SourceReader& reader,
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
      QUIRE_RETURN_IF_ERROR(CheckCancelled());
      QUIRE_ASSIGN_OR_RETURN(const MutableByteView buffer, stage_->Buffer());
      QUIRE_ASSIGN_OR_RETURN(const size_t got, ReadInto(reader, buffer));
      if (got == 0) {
        break;
      }
      QUIRE_RETURN_IF_ERROR(limits_.AddText(*source_, reader, got));
      added.size_bytes += got;
      QUIRE_RETURN_IF_ERROR(stage_->Advance(got));
    }
    QUIRE_RETURN_IF_ERROR(writer_->AddDocument(added));
    return added.size_bytes;
  }

  // The next bytes of the document; what is encoded already is passed over.
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

  const std::span<const std::unique_ptr<Source>> sources_;
  BuildOptions options_;
  InputLimits limits_;
  // Of the pass that runs.
  size_t source_index_ = 0;
  const Source* source_ = nullptr;
  std::unique_ptr<SourceReader> reader_;
  // Of the current document among those of its source.
  uint64_t document_index_ = 0;
  // For text that is only read over.
  std::vector<uint8_t> scratch_;
  BuildProgress progress_;
  uint64_t reported_bytes_ = 0;
  BuildSummary summary_;
  // What is read instead of the sources, once it is there.
  std::optional<ReorderedText> stored_;
  // What the dictionary and the symbol table are chosen from, if not from what
  // is stored.
  std::optional<InflatedText> inflated_;
  // Size of the text that blocks are cut from.
  uint64_t stored_text_bytes_ = 0;
  // Where compressed members are inflated.
  std::optional<BlockCutter> cutter_;
  // While the table is trained on what is being encoded.
  std::optional<SymbolSampler> sampler_;
  // Until there is a writer, if the build can be gone on with.
  std::optional<UnfinishedArchive> unfinished_;
  std::unique_ptr<ArchiveWriter> writer_;
  // Before the stage, whose threads use it until they are joined.
  std::unique_ptr<BlockCodec> codec_;
  std::unique_ptr<BlockStage> stage_;
};

}  // namespace

absl::StatusOr<BuildSummary> BuildArchive(
    const std::string& path, std::span<const std::unique_ptr<Source>> sources,
    const BuildOptions& options) {
  if (options.threads == 0 || options.segment_size_bytes == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("threads and segment size must be at least 1, got ",
                     options.threads, " and ", options.segment_size_bytes));
  }
  const CodecInfo* const codec = FindCodec(options.archive.codec.id);
  if (codec != nullptr && codec->needs_symbol_table && !options.symbol_table) {
    return absl::InvalidArgumentError(
        absl::StrCat("codec ", codec->name,
                     " needs a symbol table, which --no-symbol-table leaves "
                     "out; leave out that option, or choose another codec"));
  }
  ArchiveBuild build(sources, options);
  return build.Run(path);
}

}  // namespace quire
