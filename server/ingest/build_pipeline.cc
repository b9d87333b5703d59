// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/ingest/build_pipeline.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"

#include "codecs/base/byte_size.h"
#include "codecs/base/status_macros.h"
#include "codecs/block_codec.h"
#include "server/archive/unfinished_archive.h"
#include "server/ingest/blocks/block_cutter.h"
#include "server/ingest/blocks/block_stage.h"
#include "server/ingest/dictionary/symbol_sampler.h"
#include "server/ingest/document_walk.h"
#include "server/ingest/order_choice.h"
#include "server/ingest/text/inflated_text.h"
#include "server/ingest/text/reordered_text.h"

namespace quire {
namespace {

constexpr size_t kReadSizeBytes = 1 << 20;
// Between two calls of on_progress.
constexpr uint64_t kProgressStepBytes = 2 << 20;

// One build: a list of passes, most of which walk over all documents or over
// the text that is stored instead.
class ArchiveBuild {
 public:
  ArchiveBuild(const std::string& path,
               std::span<const std::unique_ptr<Source>> sources,
               const BuildOptions& options)
      : path_(path),
        options_(options),
        walk_(sources, {.size_bytes_max = options.input_size_bytes_max,
                        .failures = options.failures,
                        .on_note = options.on_note,
                        .cancel = options.cancel,
                        .describes_sources = options.resume.describes_inputs}) {
  }

  absl::StatusOr<BuildSummary> Run() {
    for (const Pass pass :
         {&ArchiveBuild::CountText, &ArchiveBuild::OpenUnfinished,
          &ArchiveBuild::PrepareStoredText, &ArchiveBuild::PrepareSymbolTable,
          &ArchiveBuild::StartArchive, &ArchiveBuild::MakeCodec,
          &ArchiveBuild::EncodeText, &ArchiveBuild::FinishArchive}) {
      QUIRE_RETURN_IF_ERROR((this->*pass)());
    }
    return summary_;
  }

  absl::StatusOr<BuildSummary> WriteEmpty() {
    encodes_text_ = false;
    for (const Pass pass :
         {&ArchiveBuild::CountText, &ArchiveBuild::PrepareStoredText,
          &ArchiveBuild::PrepareSymbolTable, &ArchiveBuild::StartArchive,
          &ArchiveBuild::FinishEmpty}) {
      QUIRE_RETURN_IF_ERROR((this->*pass)());
    }
    return summary_;
  }

  absl::StatusOr<BuildChoice> Choose() {
    for (const Pass pass :
         {&ArchiveBuild::CountText, &ArchiveBuild::PrepareStoredText}) {
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
            absl::StrCat(options_.resume.parameters, walk_.DescribeSources()),
            kBuildVersion, options_.resume.restart));
    if (unfinished.has_dropped_blocks() && options_.resume.on_dropped) {
      options_.resume.on_dropped();
    }
    unfinished_.emplace(std::move(unfinished));
    kept_dictionary_ = unfinished_->ReadDictionary();
    return absl::OkStatus();
  }

  absl::Status CountText() {
    QUIRE_RETURN_IF_ERROR(StartPhase(BuildPhase::kCount));
    QUIRE_ASSIGN_OR_RETURN(progress_.total_bytes,
                           walk_.Count([this](uint64_t size_bytes) {
                             progress_.done_bytes = size_bytes;
                             Advance(0);
                           }));
    text_bytes_ = *progress_.total_bytes;
    if (keeps_encoding()) {
      const Archive& archive = *options_.append.archive;
      context_->dictionary = std::string(AsText(archive.dictionary()));
      context_->symbol_table = std::string(AsText(archive.symbol_table()));
      return absl::OkStatus();
    }
    const CodecInfo* const codec = FindCodec(options_.archive.codec.id);
    dictionary_size_bytes_max_ =
        codec == nullptr || !codec->needs_dictionary ? 0
        : options_.dictionary_size_bytes.has_value()
            ? *options_.dictionary_size_bytes
            : DictionarySizeLimit(options_.objective, text_bytes_);
    return absl::OkStatus();
  }

  absl::Status PrepareStoredText() {
    QUIRE_RETURN_IF_ERROR(
        ChooseText(path_, context_, std::move(kept_dictionary_)));
    DescribeChoice();
    return absl::OkStatus();
  }

  absl::Status PrepareSymbolTable() {
    const CodecInfo* const codec = FindCodec(options_.archive.codec.id);
    if (keeps_encoding()) {
      return absl::OkStatus();
    }
    if (!options_.resume.symbol_table.empty()) {
      context_->symbol_table = options_.resume.symbol_table;
    } else if (codec != nullptr && codec->needs_symbol_table) {
      QUIRE_ASSIGN_OR_RETURN(context_->symbol_table, ChooseSymbolTable());
    } else if ((is_resumable() || !encodes_text_) && options_.symbol_table) {
      // Such a build does not encode all text that a table would be trained on:
      // the text with members as they are.
      std::optional<InflatedText> inflated = std::exchange(inflated_, {});
      progress_.total_bytes = stored_text_bytes_;
      QUIRE_ASSIGN_OR_RETURN(context_->symbol_table, ChooseSymbolTable());
      inflated_ = std::move(inflated);
    }
    return absl::OkStatus();
  }

  absl::Status StartArchive() {
    if (inflated_.has_value()) {
      found_members_ = std::move(inflated_->found);
      known_members_ = std::move(inflated_->known);
      cutter_.emplace(std::move(inflated_->members),
                      options_.archive.block_size_bytes);
      inflated_.reset();
    }
    progress_.total_bytes = stored_text_bytes_;
    QUIRE_RETURN_IF_ERROR(StartWriter(path_, context_));
    if (keeps_encoding()) {
      return absl::OkStatus();
    }
    if (!context_->symbol_table.empty()) {
      return writer_->SetSymbolTable(context_->symbol_table);
    }
    if (options_.symbol_table) {
      sampler_.emplace(*progress_.total_bytes);
    }
    return absl::OkStatus();
  }

  absl::Status MakeCodec() {
    QUIRE_RETURN_IF_ERROR(StartPhase(BuildPhase::kIndex));
    QUIRE_ASSIGN_OR_RETURN(
        codec_,
        MakePayloadCodec(
            options_.archive.codec, context_, CodecUse::kEncodeAndDecode,
            inflates_ ? options_.inflate_member_size_bytes_max : 0));
    codec_->SetKnownMembers(&known_members_);
    return absl::OkStatus();
  }

  absl::Status EncodeText() {
    QUIRE_RETURN_IF_ERROR(StartPhase(BuildPhase::kEncode));
    QUIRE_RETURN_IF_ERROR(StartStage(*context_));
    QUIRE_RETURN_IF_ERROR(stored_.has_value() ? EncodeStoredText() : Encode());
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
    summary_.text_size_bytes = text_bytes_;
    summary_.skipped = walk_.skipped();
    summary_.dropped_attributes = walk_.dropped();
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

  absl::Status StartWriter(const std::string& path,
                           const std::shared_ptr<const CodecContext>& context) {
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
                                  return walk_.CheckCancelled();
                                }));
    unfinished_.reset();
    progress_.total_bytes = total_bytes;
    return absl::OkStatus();
  }

  absl::Status StartPhase(BuildPhase phase) {
    progress_.phase = phase;
    progress_.done_bytes = 0;
    reported_bytes_ = 0;
    Report();
    return walk_.CheckCancelled();
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

  // Decides on the stored text and on the dictionary.
  absl::Status ChooseText(const std::string& path,
                          const std::shared_ptr<CodecContext>& context,
                          std::optional<std::string> kept_dictionary) {
    if (options_.reorder == ReorderMode::kAuto) {
      QUIRE_RETURN_IF_ERROR(ChooseOrder(path, context));
      kept_dictionary.reset();
    } else if (options_.reorder != ReorderMode::kOff) {
      QUIRE_RETURN_IF_ERROR(Reorder(path, options_.reorder));
    }
    return PrepareText(path, *context, std::move(kept_dictionary));
  }

  // Reorders only if the whole archive becomes smaller: a dictionary may
  // already contain the duplicates. Leaves the dictionary of the chosen order
  // in `context`, if it has one.
  absl::Status ChooseOrder(const std::string& path,
                           const std::shared_ptr<CodecContext>& context) {
    PreparedText other = {.total_bytes = *progress_.total_bytes};
    if (dictionary_size_bytes_max_ >= text_bytes_) {
      order_reason_ = "the dictionary holds all text";
      return absl::OkStatus();
    }
    const bool has_dictionary =
        dictionary_size_bytes_max_ > 0 || !context->dictionary.empty();
    const absl::Status reordered_status = Reorder(
        path, has_dictionary ? ReorderMode::kDuplicates : ReorderMode::kAuto);
    bool is_worth_trial = reordered_status.ok() && HasLayout(*stored_);
    if (is_worth_trial && has_dictionary) {
      QUIRE_ASSIGN_OR_RETURN(
          is_worth_trial,
          MayBeWorthReordering(*stored_, text_bytes_, reorder_gain_min()));
    }
    if (!is_worth_trial) {
      QUIRE_RETURN_IF_ERROR(Omit(reordered_status, "not reordered"));
      order_reason_ = reordered_status.ok() ? "little repeats" : "";
      SwapPrepared(other, *context);
      return absl::OkStatus();
    }
    QUIRE_ASSIGN_OR_RETURN(SizeEstimate reordered, Estimate(context));
    SwapPrepared(other, *context);
    QUIRE_ASSIGN_OR_RETURN(SizeEstimate in_order, Estimate(context));
    SwapPrepared(other, *context);
    QUIRE_ASSIGN_OR_RETURN(const bool is_smaller,
                           IsSmaller(context, other, reordered, in_order));
    order_reason_ = TrialReason(reordered, in_order);
    if (!is_smaller) {
      SwapPrepared(other, *context);
    }
    return has_dictionary && MayBeWorthMoving(context->dictionary.size(),
                                              keeps_encoding()
                                                  ? context->dictionary.size()
                                                  : dictionary_size_bytes_max_,
                                              *progress_.total_bytes)
               ? TryFullOrder(path, context, is_smaller ? reordered : in_order,
                              in_order)
               : absl::OkStatus();
  }

  // Takes the order of kFull if that is smaller than `best`, the prepared one.
  absl::Status TryFullOrder(const std::string& path,
                            const std::shared_ptr<CodecContext>& context,
                            SizeEstimate best, const SizeEstimate& in_order) {
    PreparedText other = {.total_bytes = text_bytes_};
    SwapPrepared(other, *context);
    const absl::Status status =
        Reorder(path, ReorderMode::kFull,
                other.stored.has_value() ? RunMemoryBytes(*other.stored) : 0);
    if (!status.ok()) {
      SwapPrepared(other, *context);
      return Omit(status, "similar text not moved");
    }
    QUIRE_ASSIGN_OR_RETURN(SizeEstimate full, Estimate(context));
    QUIRE_ASSIGN_OR_RETURN(const bool is_smaller,
                           IsSmaller(context, other, full, best));
    if (!is_smaller) {
      SwapPrepared(other, *context);
      return absl::OkStatus();
    }
    order_reason_ = TrialReason(full, in_order);
    return absl::OkStatus();
  }

  // Returns true if the archive of the prepared text is clearly smaller than
  // that of `other`. Where errors leave that open, renews both estimates from
  // all blocks.
  absl::StatusOr<bool> IsSmaller(const std::shared_ptr<CodecContext>& context,
                                 PreparedText& other, SizeEstimate& prepared,
                                 SizeEstimate& other_estimate) {
    if (IsWithinError(prepared, other_estimate, reorder_gain_min())) {
      QUIRE_ASSIGN_OR_RETURN(prepared, TryBlocks(context, TrialBlocks::kAll));
      SwapPrepared(other, *context);
      QUIRE_ASSIGN_OR_RETURN(other_estimate,
                             TryBlocks(context, TrialBlocks::kAll));
      SwapPrepared(other, *context);
    }
    return IsClearlySmaller(prepared, other_estimate, reorder_gain_min());
  }

  double reorder_gain_min() const {
    return SettingsOf(options_.objective).reorder_gain_min;
  }

  static std::string TrialReason(const SizeEstimate& reordered,
                                 const SizeEstimate& in_order) {
    return absl::StrFormat(
        "%+.1f %% by a trial",
        100 * (reordered.size_bytes / in_order.size_bytes - 1));
  }

  // Returns OK, and records it, if `status` means that temporary files or
  // tables lack space; otherwise `status`. A resumable build ends with the
  // error: the next one may have the space, and would keep blocks of another
  // text.
  absl::Status Omit(const absl::Status& status, absl::string_view what) {
    if (status.ok() || status != space_status_ || is_resumable()) {
      return status;
    }
    summary_.omissions.push_back(absl::StrCat(what, ": ", status.message()));
    omitted_ += absl::StrCat(", ", what, " for lack of space or memory");
    space_status_ = absl::OkStatus();
    return absl::OkStatus();
  }

  // Remembers an error of temporary files or tables, which Omit() may accept.
  absl::Status NoteSpace(const absl::Status& status) {
    if (absl::IsUnavailable(status) || absl::IsResourceExhausted(status)) {
      space_status_ = status;
    }
    return status;
  }

  void DescribeChoice() {
    BuildChoice& choice = summary_.choice;
    choice = {.codec = options_.archive.codec,
              .block_size_bytes = options_.archive.block_size_bytes,
              .dictionary_size_bytes_max = dictionary_size_bytes_max_,
              .dictionary_size_bytes = context_->dictionary.size(),
              .reorder = stored_.has_value() && HasLayout(*stored_)
                             ? stored_order_
                             : ReorderMode::kOff,
              .inflates = inflates_,
              .reason = {}};
    choice.reason =
        absl::StrCat("objective ", ObjectiveName(options_.objective), ": ",
                     FormatCodecSpec(choice.codec), ", blocks of ",
                     FormatByteSize(choice.block_size_bytes));
    if (dictionary_size_bytes_max_ > 0) {
      absl::StrAppend(&choice.reason, ", dictionary ",
                      FormatByteSize(choice.dictionary_size_bytes),
                      " of at most ",
                      FormatByteSize(dictionary_size_bytes_max_));
    }
    absl::StrAppend(&choice.reason, ", reorder ",
                    ReorderModeName(choice.reorder));
    if (!order_reason_.empty()) {
      absl::StrAppend(&choice.reason, " (", order_reason_, ")");
    }
    absl::StrAppend(&choice.reason, inflates_ ? ", members inflated" : "",
                    omitted_);
  }

  // Inflates members, and chooses the dictionary unless one is chosen.
  absl::Status PrepareText(const std::string& path, CodecContext& context,
                           std::optional<std::string> kept_dictionary) {
    stored_text_bytes_ = *progress_.total_bytes;
    if (options_.inflate) {
      QUIRE_RETURN_IF_ERROR(Omit(Inflate(path), "members not inflated"));
      progress_.total_bytes =
          inflates_ ? inflated_->size_bytes : stored_text_bytes_;
    }
    if (dictionary_size_bytes_max_ == 0) {
      return absl::OkStatus();
    }
    if (kept_dictionary.has_value()) {
      context.dictionary = *std::move(kept_dictionary);
      return absl::OkStatus();
    }
    if (inflates_ || context.dictionary.empty()) {
      QUIRE_ASSIGN_OR_RETURN(context.dictionary, ChooseDictionary());
    }
    return absl::OkStatus();
  }

  // Estimates the archive of the prepared text, without inflating members, and
  // leaves its dictionary in `context`.
  absl::StatusOr<SizeEstimate> Estimate(
      const std::shared_ptr<CodecContext>& context) {
    if (dictionary_size_bytes_max_ > 0) {
      QUIRE_ASSIGN_OR_RETURN(context->dictionary, ChooseDictionary());
    }
    return TryBlocks(context, TrialBlocks::kSome);
  }

  // The same with the dictionary of `context`.
  absl::StatusOr<SizeEstimate> TryBlocks(
      const std::shared_ptr<CodecContext>& context, TrialBlocks trial_blocks) {
    const bool needs_table =
        !keeps_encoding() &&
        FindCodec(options_.archive.codec.id)->needs_symbol_table;
    if (needs_table) {
      QUIRE_ASSIGN_OR_RETURN(context->symbol_table, ChooseSymbolTable());
    }
    const uint64_t total_bytes = *progress_.total_bytes;
    absl::StatusOr<SizeEstimate> estimate = EstimateSize(
        options_, context, total_bytes, trial_blocks,
        [&](const std::function<absl::Status(ByteView)>& add) -> absl::Status {
          QUIRE_RETURN_IF_ERROR(StartPhase(BuildPhase::kTrial));
          return Feed(total_bytes, add);
        });
    if (needs_table) {
      context->symbol_table.clear();
    }
    if (estimate.ok() && stored_.has_value()) {
      estimate->size_bytes += LayoutSizeBytes(*stored_);
    }
    return estimate;
  }

  void SwapPrepared(PreparedText& other, CodecContext& context) {
    std::swap(stored_, other.stored);
    std::swap(stored_order_, other.order);
    std::swap(progress_.total_bytes, other.total_bytes);
    if (!keeps_encoding()) {
      std::swap(context.dictionary, other.dictionary);
    }
  }

  // Writes the text to be stored to a file next to the archive. `held_bytes` is
  // the memory of other orders.
  absl::Status Reorder(const std::string& path, ReorderMode mode,
                       uint64_t held_bytes = 0) {
    ReorderOptions reorder =
        ReorderOptionsFor(options_, mode, SpoolDirectoryFor(path), text_bytes_);
    reorder.memory_bytes_max -= std::min(reorder.memory_bytes_max, held_bytes);
    absl::StatusOr<std::unique_ptr<TextReorderer>> created =
        TextReorderer::Create(reorder);
    QUIRE_RETURN_IF_ERROR(NoteSpace(created.status()));
    TextReorderer& reorderer = **created;
    QUIRE_RETURN_IF_ERROR(StartPhase(BuildPhase::kReorder));
    std::vector<uint8_t> buffer(kReadSizeBytes);
    uint64_t segment_bytes = 0;
    const absl::Status status = walk_.ForEachDocument(
        [&](SourceReader& reader,
            const SourceDocument& document) -> absl::Status {
          const uint64_t before_bytes = progress_.done_bytes;
          QUIRE_RETURN_IF_ERROR(
              walk_.ReadDocument(reader, buffer, [&](ByteView piece) {
                Advance(piece.size());
                return NoteSpace(reorderer.Add(piece));
              }));
          QUIRE_RETURN_IF_ERROR(
              NoteSpace(reorderer.EndDocument(ToNewDocument(document))));
          segment_bytes += progress_.done_bytes - before_bytes;
          if (segment_bytes < options_.segment_size_bytes) {
            return absl::OkStatus();
          }
          segment_bytes = 0;
          return NoteSpace(reorderer.EndSegment());
        });
    QUIRE_RETURN_IF_ERROR(status);
    absl::StatusOr<ReorderedText> text = reorderer.Finish();
    QUIRE_RETURN_IF_ERROR(NoteSpace(text.status()));
    stored_ = *std::move(text);
    stored_order_ = mode;
    progress_.total_bytes = stored_->size_bytes;
    return absl::OkStatus();
  }

  // Writes the text for choosing the dictionary and the symbol table to a file
  // next to the archive, with compressed members inflated if there are enough.
  absl::Status Inflate(const std::string& path) {
    absl::StatusOr<std::unique_ptr<TextInflater>> inflater =
        TextInflater::Create(
            {.spool_directory = SpoolDirectoryFor(path),
             .member_text_size_max = options_.inflate_member_size_bytes_max,
             .threads = options_.threads,
             .cancel = options_.cancel});
    QUIRE_RETURN_IF_ERROR(NoteSpace(inflater.status()));
    QUIRE_RETURN_IF_ERROR(StartPhase(BuildPhase::kInflate));
    QUIRE_RETURN_IF_ERROR(Feed(*progress_.total_bytes, [&](ByteView piece) {
      return NoteSpace((*inflater)->Add(piece));
    }));
    absl::StatusOr<InflatedText> text = (*inflater)->Finish();
    QUIRE_RETURN_IF_ERROR(NoteSpace(text.status()));
    summary_.oversized_members = text->Oversized();
    if (!text->members.empty() &&
        text->IsWorthInflating(*progress_.total_bytes)) {
      inflates_ = true;
      inflated_ = *std::move(text);
    }
    return absl::OkStatus();
  }

  static NewDocument ToNewDocument(const SourceDocument& document) {
    return {.id = document.id,
            .capture_time_ms = document.capture_time_ms,
            .record_type = document.record_type,
            .media_type = document.media_type};
  }

  DictionaryChoice DictionarySettings() const {
    return {.method = options_.dictionary_method,
            .dictionary_size_bytes = dictionary_size_bytes_max_,
            .worth_bits_min = SettingsOf(options_.objective).worth_bits_min,
            .codec = options_.archive.codec,
            .block_size_bytes = options_.archive.block_size_bytes};
  }

  TextPass DictionaryPass() {
    return [this](const std::function<absl::Status(ByteView)>& add) {
      QUIRE_RETURN_IF_ERROR(StartPhase(BuildPhase::kDictionary));
      return Feed(*progress_.total_bytes, add);
    };
  }

  absl::StatusOr<std::string> ChooseDictionary() {
    const uint64_t total_bytes = *progress_.total_bytes;
    QUIRE_ASSIGN_OR_RETURN(
        std::string dictionary,
        quire::ChooseDictionary(DictionarySettings(), total_bytes,
                                DictionaryPass()));
    return FillDictionary(std::move(dictionary), DictionarySettings(),
                          total_bytes, DictionaryPass());
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

  // Reads all documents and passes on their text piece by piece.
  absl::Status Feed(uint64_t total_bytes,
                    const std::function<absl::Status(ByteView)>& add) {
    std::vector<uint8_t> buffer(kReadSizeBytes);
    if (inflated_.has_value()) {
      return FeedFile(*inflated_->file, inflated_->size_bytes, buffer, add);
    }
    if (stored_.has_value()) {
      return FeedFile(*stored_->file, stored_->size_bytes, buffer, add);
    }
    return walk_.ForEachDocument(
        [&](SourceReader& reader, const SourceDocument&) {
          return walk_.ReadDocument(reader, buffer, [&](ByteView piece) {
            // Text added to the inputs since they were counted is not sampled,
            // but encoded.
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

  absl::Status FeedFile(const InputFile& file, uint64_t size_bytes,
                        std::vector<uint8_t>& buffer,
                        const std::function<absl::Status(ByteView)>& add) {
    while (progress_.done_bytes < size_bytes) {
      const MutableByteView piece = MutableByteView(buffer).first(
          std::min<uint64_t>(buffer.size(), size_bytes - progress_.done_bytes));
      QUIRE_RETURN_IF_ERROR(walk_.CheckCancelled());
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
        .copied = copied != nullptr && !stored_.has_value() && !inflates_ &&
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
        QUIRE_RETURN_IF_ERROR(walk_.CheckCancelled());
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
    const absl::Status status = walk_.ForEachDocument(
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
      QUIRE_RETURN_IF_ERROR(walk_.CheckCancelled());
      QUIRE_ASSIGN_OR_RETURN(const MutableByteView buffer, stage_->Buffer());
      QUIRE_ASSIGN_OR_RETURN(const size_t got, ReadInto(reader, buffer));
      if (got == 0) {
        break;
      }
      QUIRE_RETURN_IF_ERROR(walk_.AddText(reader, got));
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

  const std::string path_;
  BuildOptions options_;
  DocumentWalk walk_;
  // Dictionary and symbol table, once they are chosen.
  const std::shared_ptr<CodecContext> context_ =
      std::make_shared<CodecContext>();
  // Dictionary of the unfinished archive.
  std::optional<std::string> kept_dictionary_;
  std::vector<FoundMembers> found_members_;
  KnownDeflateMembers known_members_;
  BuildProgress progress_;
  uint64_t reported_bytes_ = 0;
  BuildSummary summary_;
  // Text read instead of the sources, once it exists.
  std::optional<ReorderedText> stored_;
  // Its order.
  ReorderMode stored_order_ = ReorderMode::kOff;
  // Text for choosing the dictionary and the symbol table, if it differs from
  // the stored one.
  std::optional<InflatedText> inflated_;
  // Compressed members are stored as their text.
  bool inflates_ = false;
  // False if only the encoding is chosen.
  bool encodes_text_ = true;
  // Size of the text of all documents, as counted.
  uint64_t text_bytes_ = 0;
  // 0 without a dictionary.
  uint64_t dictionary_size_bytes_max_ = 0;
  // Reason why text is reordered or not, if that was decided.
  std::string order_reason_;
  // Last error of temporary files or tables, and the steps omitted for such
  // errors.
  absl::Status space_status_;
  std::string omitted_;
  // Size of the text that blocks are cut from.
  uint64_t stored_text_bytes_ = 0;
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
  const CodecInfo* const codec = FindCodec(options.archive.codec.id);
  if (codec != nullptr && codec->needs_symbol_table && !options.symbol_table) {
    return absl::InvalidArgumentError(
        absl::StrCat("codec ", codec->name,
                     " needs a symbol table, which --no-symbol-table omits; "
                     "remove that option, or choose another codec"));
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
