// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/ingest/text_choice.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include "codecs/base/byte_size.h"
#include "codecs/base/status_macros.h"
#include "server/archive/format/work_in_threads.h"
#include "server/ingest/dictionary/symbol_sampler.h"

namespace quire {
namespace {

// More would wait for the thread that reads the text and counts.
constexpr uint32_t kSamplersMax = 8;

uint64_t DictionarySizeMax(const BuildOptions& options) {
  const CodecInfo* const codec = FindCodec(options.archive.codec.id);
  if (options.keeps_encoding() || codec == nullptr ||
      !codec->needs_dictionary) {
    return 0;
  }
  return options.dictionary_size_bytes.value_or(
      SettingsOf(options.objective).dictionary_size_bytes_max);
}

}  // namespace

TextChoice::TextChoice(const std::string& path, const BuildOptions& options,
                       uint64_t text_size_bytes, BuildPasses& passes,
                       std::shared_ptr<CodecContext> context)
    : path_(path),
      options_(options),
      text_size_bytes_(text_size_bytes),
      passes_(passes),
      context_(std::move(context)),
      dictionary_size_bytes_max_(DictionarySizeMax(options)) {
  context_->workers = WorkersOf(options.threads);
}

absl::Status TextChoice::Choose(std::optional<std::string> kept_dictionary) {
  if (options_.reorder == ReorderMode::kAuto) {
    QUIRE_RETURN_IF_ERROR(ChooseOrder());
    kept_dictionary.reset();
  } else if (options_.reorder != ReorderMode::kOff) {
    QUIRE_RETURN_IF_ERROR(Reorder(options_.reorder));
  }
  return PrepareText(std::move(kept_dictionary));
}

BuildChoice TextChoice::Describe() const {
  BuildChoice choice = {
      .codec = options_.archive.codec,
      .block_size_bytes = options_.archive.block_size_bytes,
      .dictionary_size_bytes_max = dictionary_size_bytes_max_,
      .dictionary_size_bytes = context_->dictionary.size(),
      .reorder = prepared_.stored.has_value() && HasLayout(*prepared_.stored)
                     ? prepared_.order
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
                    " of at most ", FormatByteSize(dictionary_size_bytes_max_));
  }
  absl::StrAppend(&choice.reason, ", reorder ",
                  ReorderModeName(choice.reorder));
  if (!order_reason_.empty()) {
    absl::StrAppend(&choice.reason, " (", order_reason_, ")");
  }
  absl::StrAppend(&choice.reason, inflates_ ? ", members inflated" : "",
                  omitted_);
  return choice;
}

std::optional<InflatedText> TextChoice::TakeInflated() {
  return std::exchange(inflated_, std::nullopt);
}

absl::Status TextChoice::ChooseOrder() {
  if (dictionary_size_bytes_max_ >= text_size_bytes_) {
    order_reason_ = "the dictionary holds all text";
    return absl::OkStatus();
  }
  const bool has_dictionary = DictionaryRoom() > 0;
  PreparedText other;
  const absl::Status reordered_status =
      Reorder(has_dictionary ? ReorderMode::kDuplicates : ReorderMode::kAuto);
  bool is_worth_trial = reordered_status.ok() && HasLayout(*prepared_.stored);
  if (is_worth_trial && has_dictionary) {
    QUIRE_ASSIGN_OR_RETURN(
        is_worth_trial,
        MayBeWorthReordering(*prepared_.stored, text_size_bytes_,
                             reorder_gain_min()));
  }
  Swap(other);
  if (!is_worth_trial) {
    QUIRE_RETURN_IF_ERROR(Omit(reordered_status, "not reordered"));
    order_reason_ = reordered_status.ok() ? "little repeats" : "";
    return absl::OkStatus();
  }
  QUIRE_RETURN_IF_ERROR(ChooseOwnDictionary());
  const bool is_full = MayBeWorthMoving();
  const bool may_move =
      is_full && SettingsOf(options_.objective).tries_moved_text;
  // With the dictionary of the documents' order, which is at most too good for
  // that order: it has the duplicates too.
  QUIRE_ASSIGN_OR_RETURN(bool is_smaller,
                         IsSmaller(other, SharesDictionary::kYes));
  if (!is_smaller && is_full && !options_.keeps_encoding()) {
    // A full dictionary gains other text if duplicates are left out of it.
    order_reason_.clear();
    Swap(other);
    QUIRE_RETURN_IF_ERROR(ChooseOwnDictionary());
    Swap(other);
    QUIRE_ASSIGN_OR_RETURN(is_smaller, IsSmaller(other, SharesDictionary::kNo));
  }
  if (is_smaller) {
    Swap(other);
    // Otherwise PrepareText() chooses it, from inflated text if members are.
    if (may_move && context_->dictionary.empty()) {
      QUIRE_RETURN_IF_ERROR(ChooseOwnDictionary());
    }
  }
  return may_move && MayBeWorthMoving() ? TryFullOrder() : absl::OkStatus();
}

absl::Status TextChoice::TryFullOrder() {
  PreparedText other;
  Swap(other);
  const absl::Status status =
      Reorder(ReorderMode::kFull,
              other.stored.has_value() ? RunMemoryBytes(*other.stored) : 0);
  if (!status.ok()) {
    Swap(other);
    return Omit(status, "similar text not moved");
  }
  Swap(other);
  // Moving text changes hardly what repeats.
  QUIRE_ASSIGN_OR_RETURN(const bool is_smaller,
                         IsSmaller(other, SharesDictionary::kYes));
  if (is_smaller) {
    Swap(other);
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> TextChoice::IsSmaller(PreparedText& changed,
                                           SharesDictionary shares) {
  QUIRE_RETURN_IF_ERROR(passes_.StartPhase(BuildPhase::kTrial, std::nullopt));
  OrderCandidate now = {.text = prepared_.stored.has_value()
                                    ? &*prepared_.stored
                                    : &*changed.stored,
                        .order = OrderOf(prepared_),
                        .context = context_};
  OrderCandidate then = {
      .text = &*changed.stored, .order = OrderOf(changed), .context = context_};
  now.other_bytes = prepared_.dictionary_bytes;
  then.other_bytes = prepared_.dictionary_bytes;
  std::shared_ptr<CodecContext> changed_context;
  if (shares == SharesDictionary::kNo) {
    then.other_bytes = changed.dictionary_bytes;
    changed_context = std::make_shared<CodecContext>();
    changed_context->workers = context_->workers;
    changed_context->dictionary = std::move(changed.dictionary);
    then.context = changed_context;
  }
  if (prepared_.stored.has_value()) {
    now.other_bytes += LayoutSizeBytes(*prepared_.stored);
  }
  then.other_bytes += LayoutSizeBytes(*changed.stored);
  const bool needs_table =
      !options_.keeps_encoding() &&
      FindCodec(options_.archive.codec.id)->needs_symbol_table;
  if (needs_table) {
    QUIRE_ASSIGN_OR_RETURN(context_->symbol_table, TrainSymbolTable(true));
  }
  const absl::StatusOr<OrderComparison> result =
      CompareOrders(options_, now, then, reorder_gain_min());
  if (needs_table) {
    context_->symbol_table.clear();
  }
  if (changed_context != nullptr) {
    changed.dictionary = std::move(changed_context->dictionary);
  }
  QUIRE_RETURN_IF_ERROR(result.status());
  absl::StrAppendFormat(&order_reason_, "%s%s %+.1f %% by a trial of %s",
                        order_reason_.empty() ? "" : ", ",
                        ReorderModeName(changed.order),
                        100 * (result->changed_bytes / result->plain_bytes - 1),
                        FormatByteSize(result->sampled_bytes));
  return result->is_smaller;
}

absl::Status TextChoice::ChooseOwnDictionary() {
  if (dictionary_size_bytes_max_ > 0) {
    QUIRE_ASSIGN_OR_RETURN(context_->dictionary, ChooseDictionary());
    QUIRE_ASSIGN_OR_RETURN(
        prepared_.dictionary_bytes,
        DictionarySizeBytes(AsBytes(context_->dictionary), options_.cancel));
  }
  return absl::OkStatus();
}

OrderCandidate::Order TextChoice::OrderOf(const PreparedText& text) {
  if (!text.stored.has_value()) {
    return OrderCandidate::Order::kDocuments;
  }
  return text.order == ReorderMode::kDuplicates
             ? OrderCandidate::Order::kDuplicatesOmitted
             : OrderCandidate::Order::kMoved;
}

void TextChoice::Swap(PreparedText& other) {
  if (!options_.keeps_encoding()) {
    std::swap(context_->dictionary, other.dictionary);
  }
  std::swap(prepared_.stored, other.stored);
  std::swap(prepared_.order, other.order);
  std::swap(prepared_.dictionary_bytes, other.dictionary_bytes);
}

absl::Status TextChoice::Reorder(ReorderMode mode, uint64_t held_bytes) {
  ReorderOptions reorder = ReorderOptionsFor(
      options_, mode, SpoolDirectoryFor(path_), text_size_bytes_);
  reorder.memory_bytes_max -= std::min(reorder.memory_bytes_max, held_bytes);
  absl::StatusOr<std::unique_ptr<TextReorderer>> created =
      TextReorderer::Create(reorder);
  QUIRE_RETURN_IF_ERROR(NoteSpace(created.status()));
  TextReorderer& reorderer = **created;
  QUIRE_RETURN_IF_ERROR(reorderer.SetFields(passes_.fields().columns()));
  QUIRE_RETURN_IF_ERROR(
      passes_.StartPhase(BuildPhase::kReorder, text_size_bytes_));
  uint64_t segment_begin = 0;
  passes_.StartDeposits();
  const absl::Status status = passes_.walk().ForEachDocument(
      [&](SourceReader& reader,
          const SourceDocument& document) -> absl::Status {
        QUIRE_RETURN_IF_ERROR(passes_.StartDocument(document));
        uint64_t size_bytes = 0;
        QUIRE_RETURN_IF_ERROR(passes_.FeedDocument(reader, [&](ByteView piece) {
          size_bytes += piece.size();
          passes_.deposits().AddText(piece);
          return NoteSpace(reorderer.Add(piece));
        }));
        passes_.EndDocument(size_bytes);
        QUIRE_ASSIGN_OR_RETURN(const NewDocument added,
                               passes_.ToNewDocument(reader, document));
        QUIRE_RETURN_IF_ERROR(NoteSpace(reorderer.EndDocument(added)));
        const uint64_t end = passes_.progress().done_bytes;
        if (end - segment_begin < options_.segment_size_bytes) {
          return absl::OkStatus();
        }
        segment_begin = end;
        return NoteSpace(reorderer.EndSegment());
      });
  QUIRE_RETURN_IF_ERROR(status);
  passes_.deposits().EndPass();
  absl::StatusOr<ReorderedText> text = reorderer.Finish();
  QUIRE_RETURN_IF_ERROR(NoteSpace(text.status()));
  prepared_.stored = *std::move(text);
  prepared_.order = mode;
  return absl::OkStatus();
}

absl::Status TextChoice::PrepareText(
    std::optional<std::string> kept_dictionary) {
  if (options_.inflate) {
    QUIRE_RETURN_IF_ERROR(Omit(Inflate(), "members not inflated"));
  }
  if (dictionary_size_bytes_max_ == 0) {
    return absl::OkStatus();
  }
  if (kept_dictionary.has_value()) {
    context_->dictionary = *std::move(kept_dictionary);
    return absl::OkStatus();
  }
  if (inflates_ || context_->dictionary.empty()) {
    QUIRE_ASSIGN_OR_RETURN(context_->dictionary, ChooseDictionary());
  }
  QUIRE_ASSIGN_OR_RETURN(
      context_->dictionary,
      FillDictionary(std::move(context_->dictionary), DictionarySettings(),
                     sampled_size_bytes(), DictionaryPass()));
  return absl::OkStatus();
}

absl::Status TextChoice::Inflate() {
  absl::StatusOr<std::unique_ptr<TextInflater>> inflater = TextInflater::Create(
      {.spool_directory = SpoolDirectoryFor(path_),
       .member_text_size_max = options_.inflate_member_size_bytes_max,
       .threads = options_.threads,
       .cancel = options_.cancel});
  QUIRE_RETURN_IF_ERROR(NoteSpace(inflater.status()));
  QUIRE_RETURN_IF_ERROR(Feed(BuildPhase::kInflate, [&](ByteView piece) {
    return NoteSpace((*inflater)->Add(piece));
  }));
  absl::StatusOr<InflatedText> text = (*inflater)->Finish();
  QUIRE_RETURN_IF_ERROR(NoteSpace(text.status()));
  oversized_members_ = text->Oversized();
  if (!text->members.empty() && text->IsWorthInflating(stored_size_bytes())) {
    inflates_ = true;
    inflated_ = *std::move(text);
  }
  return absl::OkStatus();
}

DictionaryChoice TextChoice::DictionarySettings() const {
  return {.method = options_.dictionary_method,
          .dictionary_size_bytes = dictionary_size_bytes_max_,
          .worth_bits_min = SettingsOf(options_.objective).worth_bits_min,
          .codec = options_.archive.codec,
          .block_size_bytes = options_.archive.block_size_bytes,
          .workers = WorkersOf(std::min(options_.threads, kSamplersMax))};
}

TextPass TextChoice::DictionaryPass() {
  return [this](const BuildPasses::AddText& add) {
    return Feed(BuildPhase::kDictionary, add);
  };
}

absl::StatusOr<std::string> TextChoice::ChooseDictionary() {
  return quire::ChooseDictionary(DictionarySettings(), sampled_size_bytes(),
                                 DictionaryPass());
}

absl::StatusOr<std::string> TextChoice::TrainSymbolTable(bool inflated) {
  std::optional<InflatedText> put_aside =
      inflated ? std::nullopt : TakeInflated();
  SymbolSampler sampler(sampled_size_bytes());
  QUIRE_RETURN_IF_ERROR(Feed(BuildPhase::kSymbolTable, [&](ByteView piece) {
    sampler.Add(piece);
    return absl::OkStatus();
  }));
  if (put_aside.has_value()) {
    inflated_ = std::move(put_aside);
  }
  return sampler.Train();
}

absl::Status TextChoice::Feed(BuildPhase phase,
                              const BuildPasses::AddText& add) {
  QUIRE_RETURN_IF_ERROR(passes_.StartPhase(phase, sampled_size_bytes()));
  if (inflated_.has_value()) {
    return passes_.FeedFile(*inflated_->file, add);
  }
  if (prepared_.stored.has_value()) {
    return passes_.FeedFile(*prepared_.stored->file, add);
  }
  return passes_.FeedDocuments(add);
}

absl::Status TextChoice::Omit(const absl::Status& status,
                              absl::string_view what) {
  if (status.ok() || status != space_status_ || options_.is_resumable()) {
    return status;
  }
  omissions_.push_back(absl::StrCat(what, ": ", status.message()));
  omitted_ += absl::StrCat(", ", what, " for lack of space or memory");
  space_status_ = absl::OkStatus();
  return absl::OkStatus();
}

absl::Status TextChoice::NoteSpace(const absl::Status& status) {
  if (absl::IsUnavailable(status) || absl::IsResourceExhausted(status)) {
    space_status_ = status;
  }
  return status;
}

}  // namespace quire
