// SPDX-License-Identifier: GPL-3.0-or-later
//
// What the objective of a build decides where an option is not given.
#ifndef QUIRE_SERVER_INGEST_BUILD_CHOICE_H_
#define QUIRE_SERVER_INGEST_BUILD_CHOICE_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"

#include "codecs/auto/member_choice.h"
#include "codecs/block_codec.h"

namespace quire {

// What is stored otherwise than in the documents' order. It changes neither ids
// nor offsets, only the archive's size and how many blocks a range touches.
enum class ReorderMode {
  // Nothing.
  kOff,
  // Duplicates are stored once, and text is stored next to similar text, where
  // that saves more than the further blocks cost that a range then touches
  // (reorder_price.h): documents where there is a dictionary, chunks where
  // there is none. Only if that makes the whole archive clearly smaller, its
  // dictionary included (order_choice.h), and only where the temporary files
  // and the tables have space. Otherwise as kOff.
  kAuto,
  // Duplicates are stored once, however little that leaves out.
  kDuplicates,
  // The same, and all chunks are stored next to similar ones: much smaller
  // without a dictionary, but a range touches several times as many blocks.
  kFull,
};

absl::string_view ReorderModeName(ReorderMode mode);

absl::string_view ObjectiveName(AutoObjective objective);

// The objective of that name, if there is one.
std::optional<AutoObjective> ParseObjective(absl::string_view name);

// Defaults of one objective.
struct ObjectiveSettings {
  CodecSpec codec;
  uint32_t block_size_bytes = 0;
  ReorderMode reorder = ReorderMode::kOff;
  bool inflate = false;
  // Upper bound on the dictionary: the larger of `dictionary_size_bytes` and
  // the smaller of `dictionary_size_bytes_max` and an eighth of the text.
  uint64_t dictionary_size_bytes = 0;
  uint64_t dictionary_size_bytes_max = 0;
  // Least worth of 32 bytes in the dictionary (CoverageDictionaryOptions).
  uint32_t worth_bits_min = 0;
  // Least part of the archive that kAuto must save.
  double reorder_gain_min = 0;
};

const ObjectiveSettings& SettingsOf(AutoObjective objective);

// Upper bound on the dictionary of a text, in bytes; at least 1.
uint64_t DictionarySizeLimit(AutoObjective objective, uint64_t text_size_bytes);

// How the archive of a text is built.
struct BuildChoice {
  CodecSpec codec;
  uint32_t block_size_bytes = 0;
  // Upper bound on the dictionary, and its size; 0 without one.
  uint64_t dictionary_size_bytes_max = 0;
  uint64_t dictionary_size_bytes = 0;
  // kAuto and kDuplicates only if the text is stored in another order.
  ReorderMode reorder = ReorderMode::kOff;
  // Compressed members are stored as their text.
  bool inflates = false;
  // One line: what was chosen, and why.
  std::string reason;
};

}  // namespace quire

#endif  // QUIRE_SERVER_INGEST_BUILD_CHOICE_H_
