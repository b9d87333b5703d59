// SPDX-License-Identifier: GPL-3.0-or-later
//
// Chooses the text that a build stores, and the dictionary for it.
#ifndef QUIRE_SERVER_INGEST_TEXT_CHOICE_H_
#define QUIRE_SERVER_INGEST_TEXT_CHOICE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "codecs/block_codec.h"
#include "server/archive/format/archive_description.h"
#include "server/ingest/build_choice.h"
#include "server/ingest/build_options.h"
#include "server/ingest/build_passes.h"
#include "server/ingest/dictionary/dictionary_choice.h"
#include "server/ingest/order_choice.h"
#include "server/ingest/order_trial.h"
#include "server/ingest/text/inflated_text.h"
#include "server/ingest/text/reordered_text.h"

namespace quire {

// Decides on order, inflating, dictionary and symbol table of a build, by the
// archive's size. Temporary files are next to the archive. Thread-compatible.
class TextChoice {
 public:
  // `path` is that of the archive. `passes` have counted the text, of
  // `text_size_bytes`. `context` has the dictionary of the archive that grows,
  // if one does; otherwise the choice sets it. Options, passes and context must
  // outlive this.
  TextChoice(const std::string& path, const BuildOptions& options,
             uint64_t text_size_bytes, BuildPasses& passes,
             std::shared_ptr<CodecContext> context);

  // Decides on all but the symbol table. The dictionary is `kept_dictionary`,
  // that of an unfinished archive, unless the order may differ.
  // Errors: those of the passes, of EstimateSize(), TextReorderer, TextInflater
  //         and ChooseDictionary(). Without space or memory for an order or for
  //         inflating, a build that cannot be resumed goes without it.
  absl::Status Choose(std::optional<std::string> kept_dictionary);

  // The decisions.
  BuildChoice Describe() const;

  // Steps omitted for lack of space or memory; for people.
  const std::vector<std::string>& omissions() const { return omissions_; }

  // Members that stay compressed as they are too large.
  const FoundMembers::Refused& oversized_members() const {
    return oversized_members_;
  }

  // The text to be stored, if it is not that of the documents in order.
  std::optional<ReorderedText>& stored() { return prepared_.stored; }

  // True if compressed members are stored as their text.
  bool inflates() const { return inflates_; }

  // The inflated text, for one caller.
  std::optional<InflatedText> TakeInflated();

  // Size of the text that blocks are cut from.
  uint64_t stored_size_bytes() const {
    return prepared_.stored.has_value() ? prepared_.stored->size_bytes
                                        : text_size_bytes_;
  }

  // Trains a symbol table in a pass over the text to be stored, with members
  // inflated if `inflated` and if they are.
  absl::StatusOr<std::string> TrainSymbolTable(bool inflated);

 private:
  // One order of the text.
  struct PreparedText {
    // Unset: in the order of the documents.
    std::optional<ReorderedText> stored;
    ReorderMode order = ReorderMode::kOff;
    std::string dictionary;
    // Estimated size of the dictionary in the archive.
    double dictionary_bytes = 0;
  };

  double reorder_gain_min() const {
    return SettingsOf(options_.objective).reorder_gain_min;
  }

  // The limit on the dictionary, or its size if it is that of an archive.
  uint64_t DictionaryRoom() const {
    return options_.keeps_encoding() ? context_->dictionary.size()
                                     : dictionary_size_bytes_max_;
  }

  // Size of the text that is read to choose the dictionary.
  uint64_t sampled_size_bytes() const {
    return inflated_.has_value() ? inflated_->size_bytes : stored_size_bytes();
  }

  // True if the text of the context's dictionary may not be all that repeats.
  bool MayBeWorthMoving() const {
    return DictionaryRoom() > 0 &&
           quire::MayBeWorthMoving(context_->dictionary.size(),
                                   DictionaryRoom(), stored_size_bytes());
  }

  // Reorders only if the whole archive becomes smaller: a dictionary may
  // already contain the duplicates. Leaves the dictionary of the chosen order
  // in the context if the trials needed it: otherwise PrepareText() chooses.
  absl::Status ChooseOrder();

  // Takes the order of kFull if that is smaller than the prepared one.
  absl::Status TryFullOrder();

  // kYes: both orders of a trial use the dictionary of the prepared text.
  enum class SharesDictionary { kYes, kNo };

  // Returns true if the archive of `changed`, which is stored, is smaller than
  // that of the prepared text by enough (order_trial.h), and notes the reason.
  absl::StatusOr<bool> IsSmaller(PreparedText& changed,
                                 SharesDictionary shares);

  // Chooses the dictionary of the prepared text, if archives have one, and
  // estimates its size. It is not filled: what is added repeats in no order.
  absl::Status ChooseOwnDictionary();

  static OrderCandidate::Order OrderOf(const PreparedText& text);

  // Exchanges the prepared text and the context's dictionary for `other`.
  void Swap(PreparedText& other);

  // Writes the text to be stored to a file. `held_bytes` is the memory of other
  // orders.
  absl::Status Reorder(ReorderMode mode, uint64_t held_bytes = 0);

  // Inflates members, chooses the dictionary unless one is chosen, and fills
  // it.
  absl::Status PrepareText(std::optional<std::string> kept_dictionary);

  // Writes the text for choosing the dictionary and the symbol table to a file,
  // with compressed members inflated if there are enough.
  absl::Status Inflate();

  DictionaryChoice DictionarySettings() const;

  // Reads the text that the dictionary is chosen from.
  TextPass DictionaryPass();

  // Without the text that FillDictionary() adds.
  absl::StatusOr<std::string> ChooseDictionary();

  // Passes the text that is read to choose the dictionary to `add`, in `phase`.
  absl::Status Feed(BuildPhase phase, const BuildPasses::AddText& add);

  // Returns OK, and records it, if `status` means that temporary files or
  // tables lack space; otherwise `status`. A resumable build ends with the
  // error: the next one may have the space, and would keep blocks of another
  // text.
  absl::Status Omit(const absl::Status& status, absl::string_view what);

  // Remembers an error of temporary files or tables, which Omit() may accept.
  absl::Status NoteSpace(const absl::Status& status);

  const std::string path_;
  const BuildOptions& options_;
  const uint64_t text_size_bytes_;
  BuildPasses& passes_;
  const std::shared_ptr<CodecContext> context_;
  // 0 without a dictionary, and for that of an archive that grows.
  const uint64_t dictionary_size_bytes_max_;
  // The order taken so far; its dictionary is in the context.
  PreparedText prepared_;
  // Text for choosing the dictionary and the symbol table, if it differs from
  // the stored one.
  std::optional<InflatedText> inflated_;
  bool inflates_ = false;
  // Reason why text is reordered or not, if that was decided.
  std::string order_reason_;
  // Last error of temporary files or tables, and the steps omitted for such
  // errors.
  absl::Status space_status_;
  std::string omitted_;
  std::vector<std::string> omissions_;
  FoundMembers::Refused oversized_members_;
};

}  // namespace quire

#endif  // QUIRE_SERVER_INGEST_TEXT_CHOICE_H_
