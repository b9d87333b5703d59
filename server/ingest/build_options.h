// SPDX-License-Identifier: GPL-3.0-or-later
//
// Options of a build, and its progress.
#ifndef QUIRE_SERVER_INGEST_BUILD_OPTIONS_H_
#define QUIRE_SERVER_INGEST_BUILD_OPTIONS_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "codecs/payload/recipe.h"
#include "server/archive/archive.h"
#include "server/archive/archive_writer.h"
#include "server/ingest/build_choice.h"
#include "server/ingest/dictionary/dictionary_choice.h"
#include "server/ingest/input_failures.h"
#include "server/ingest/sources/source.h"
#include "server/ingest/text/build_memory.h"

namespace quire {

enum class BuildPhase {
  // Compares the inputs with the documents of the archive (append.h).
  kCompare,
  // Reads the sizes of all inputs.
  kCount,
  // Reads all inputs to find duplicates, unless the order stays. Later phases
  // read the text to be stored, not the inputs.
  kReorder,
  // Reads everything to inflate compressed members, for codecs that do: the
  // dictionary and the symbol table are chosen from the result.
  kInflate,
  // Reads all inputs, perhaps twice, to choose the dictionary.
  kDictionary,
  // Reads all inputs to train the symbol table, if the codec uses one.
  kSymbolTable,
  // Reads candidates for storing to estimate the archive's size: with kAuto.
  kTrial,
  // Builds the codec's index of the dictionary.
  kIndex,
  // Reads the blocks of an earlier build; their number is not known.
  kCheckKept,
  // Reads all inputs, encodes and writes.
  kEncode,
  // Writes the indexes, and waits for the device.
  kFinish,
};

struct BuildProgress {
  BuildPhase phase = BuildPhase::kCount;
  // Text read in this phase, or in one pass of it if kDictionary takes several
  // (each begins at 0); 0 in kIndex and kFinish; stored bytes in kCheckKept.
  uint64_t done_bytes = 0;
  // Size of the text; unset while counting.
  std::optional<uint64_t> total_bytes;
  // Part of done_bytes that an earlier build had encoded, in kEncode.
  uint64_t kept_bytes = 0;
  // Stored size of the rest.
  uint64_t stored_bytes = 0;
};

// Version of cutting, reordering and encoding, and of the description of
// inputs. Must be raised when one of them gives other blocks for the same text
// and options, or another description: a build keeps no blocks of another
// version.
inline constexpr uint32_t kBuildVersion = 10;

// Options for resuming a build that was stopped or killed.
struct ResumeOptions {
  // Lines that describe all inputs of the blocks: a build with equal lines,
  // sources and options keeps the blocks of an unfinished one. Empty: no build
  // resumes, and nothing remains of a failed one.
  std::string parameters;
  // Adds a line for each input to the parameters: a build whose inputs have
  // other documents is refused and names them
  // (resume_parameters.h).
  bool describes_inputs = false;
  // Called if an earlier build of another version left blocks, which are
  // dropped; may be empty.
  std::function<void()> on_dropped;
  // Drop the blocks of an earlier build.
  bool restart = false;
  // If not null, the archive of the only source's text, which must outlive the
  // build. Equal blocks are copied from it.
  const Archive* copied = nullptr;
};

// Files that are kept byte for byte next to the documents read from them.
enum class DepositMode {
  kOff,
  // WARCs and ARCs of which almost nothing must be stored a second time, and
  // those of archives.
  kAuto,
  // All WARCs and ARCs.
  kAll,
};

struct BuildOptions {
  // Affects the archive.
  ArchiveWriterOptions archive;
  // Set by GrowArchive(): the archive whose dictionary and symbol table encode
  // the blocks. Null: the build chooses them.
  const Archive* like = nullptr;
  // Determines the settings of the dictionary and of kAuto (build_choice.h).
  AutoObjective objective = AutoObjective::kBalanced;
  // Upper bound, 1 to kDictionarySizeBytesMax; unset: that of the objective.
  // Codecs without dictionary ignore this and the next.
  std::optional<uint64_t> dictionary_size_bytes;
  DictionaryMethod dictionary_method = DictionaryMethod::kCoverage;
  // Needs a temporary file of about the size of the text next to the archive,
  // two with kFull, three with kAuto.
  ReorderMode reorder = ReorderMode::kOff;
  // Memory limit of its tables, which does not affect the archive
  // (ReorderOptions).
  uint64_t build_memory_bytes = kBuildMemoryBytesDefault;
  // Seek cost of the archive's drive; 0 if seeks cost nothing (ReorderOptions).
  uint64_t seek_cost_bytes = 0;
  // Stores zlib and gzip members inside documents as text, in blocks that are
  // cut around them (block_cutter.h). No effect if the members are under 1/512
  // of the text. Needs a file of about the size of the inflated text next to
  // the archive while the dictionary is chosen; without that space the members
  // stay compressed.
  bool inflate = false;
  // Members with more text stay compressed: a read of any part of a member
  // reproduces all of it. At most kInflatedLargeSizeMax.
  size_t inflate_member_size_bytes_max = kInflatedBlockSizeMax;
  // Trains a symbol table for answers in FSST, on a sample from a pass that
  // reads the inputs anyway. Must be true for codecs that use the table.
  bool symbol_table = true;
  DepositMode deposits = DepositMode::kOff;
  // A segment ends with the document that reaches this size, in bytes of text.
  // At least 1.
  uint64_t segment_size_bytes = uint64_t{64} << 30;
  ResumeOptions resume;
  // Limit on the documents of all inputs together, in bytes; unset: the limits
  // of input_limits.h.
  std::optional<uint64_t> input_size_bytes_max;

  // If not null, unreadable inputs are skipped and counted here, and the
  // archive records their number; must outlive the build. The first pass then
  // reads all inputs to their end. A failing document is omitted as a whole, as
  // is the rest of a container that cannot be read further. A failure that the
  // first pass did not find ends the build. Null: the first failure ends it.
  InputFailures* failures = nullptr;

  // Affects performance: encoding threads, at least 1. Each takes two blocks,
  // raw and stored. If members are inflated, each also takes some 50 MiB (70
  // MiB with the largest) during the search, and blocks of 1 MiB and five times
  // the longest text.
  uint32_t threads = 1;

  // Called on the calling thread, some hundred times per gigabyte; may be
  // empty.
  std::function<void(const BuildProgress&)> on_progress;
  // Receives notes about the entries of all inputs, on the calling thread, in
  // the first pass; may be empty.
  NoteListener on_note;
  // When it becomes true the build ends with Cancelled, as soon as the current
  // block is encoded or, in kIndex, the index is built. May be null.
  const std::atomic<bool>* cancel = nullptr;

  // True if dictionary and symbol table are those of an archive.
  bool keeps_encoding() const { return like != nullptr; }

  bool is_resumable() const { return !resume.parameters.empty(); }
};

}  // namespace quire

#endif  // QUIRE_SERVER_INGEST_BUILD_OPTIONS_H_
