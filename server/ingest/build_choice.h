// SPDX-License-Identifier: GPL-3.0-or-later
//
// Decisions of a build's objective for options that are not given.
#ifndef QUIRE_SERVER_INGEST_BUILD_CHOICE_H_
#define QUIRE_SERVER_INGEST_BUILD_CHOICE_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"

#include "codecs/auto/member_choice.h"
#include "codecs/block_codec.h"

namespace quire {

// Order of the stored text. It changes neither ids nor offsets, only the
// archive's size and the number of blocks per range.
enum class ReorderMode {
  // In the order of the documents.
  kOff,
  // Tries kDuplicates and, if the dictionary cannot hold what repeats, kFull;
  // without a dictionary, duplicates and moves of similar chunks that save more
  // than the extra blocks per range cost (reorder_price.h). Takes an order only
  // if the whole archive, including its dictionary, becomes clearly smaller
  // (order_choice.h), and only if there is space for the temporary files and
  // the tables. Otherwise as kOff.
  kAuto,
  // Stores duplicates once, however little that saves.
  kDuplicates,
  // As kDuplicates, and all chunks are stored next to similar ones: much
  // smaller without a dictionary, but a range touches several times as many
  // blocks.
  kFull,
};

absl::string_view ReorderModeName(ReorderMode mode);

absl::string_view ObjectiveName(AutoObjective objective);

// Returns the objective of that name, if it exists.
std::optional<AutoObjective> ParseObjective(absl::string_view name);

// Defaults of one objective.
struct ObjectiveSettings {
  CodecSpec codec;
  uint32_t block_size_bytes = 0;
  ReorderMode reorder = ReorderMode::kOff;
  bool inflate = false;
  // Upper bound on the dictionary, whatever the size of the text: the limit is
  // what readers' memory may cost (NOTES.md).
  uint64_t dictionary_size_bytes_max = 0;
  // Minimum worth of 32 bytes in the dictionary (CoverageDictionaryOptions).
  uint32_t worth_bits_min = 0;
  // Minimum part of the archive that kAuto must save.
  double reorder_gain_min = 0;
  // kAuto tries kFull too. It saved at most 1.4 % of archives with a full
  // dictionary, for a tenth of a build (NOTES.md).
  bool tries_moved_text = false;
};

const ObjectiveSettings& SettingsOf(AutoObjective objective);

// Chosen settings for the archive of a text.
struct BuildChoice {
  CodecSpec codec;
  uint32_t block_size_bytes = 0;
  // Upper bound on the dictionary, and its size; 0 without one.
  uint64_t dictionary_size_bytes_max = 0;
  uint64_t dictionary_size_bytes = 0;
  // The order of the stored text. kAuto: that of kAuto without a dictionary.
  ReorderMode reorder = ReorderMode::kOff;
  // Compressed members are stored as their text.
  bool inflates = false;
  // The choice and its reason, in one line.
  std::string reason;
};

}  // namespace quire

#endif  // QUIRE_SERVER_INGEST_BUILD_CHOICE_H_
