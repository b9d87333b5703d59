// SPDX-License-Identifier: GPL-3.0-or-later
//
// From inputs to an archive.
#ifndef QUIRE_SERVER_INGEST_BUILD_PIPELINE_H_
#define QUIRE_SERVER_INGEST_BUILD_PIPELINE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "codecs/payload/recipe.h"
#include "server/archive/archive.h"
#include "server/archive/archive_writer.h"
#include "server/ingest/build_choice.h"
#include "server/ingest/build_memory.h"
#include "server/ingest/dictionary_choice.h"
#include "server/ingest/input_failures.h"
#include "server/ingest/sources/input_limits.h"
#include "server/ingest/sources/source.h"

namespace quire {

enum class BuildPhase {
  // Going over all inputs to learn their size.
  kCount,
  // Reading all inputs to find duplicates, unless the text stays as it is. What
  // follows reads what is to be stored, not the inputs.
  kReorder,
  // Reading all of it to inflate compressed members, for codecs that do: the
  // dictionary and the symbol table are chosen from what that leaves.
  kInflate,
  // Reading all inputs, perhaps twice, to choose the dictionary.
  kDictionary,
  // Reading all inputs to train the symbol table: where the codec uses it.
  kSymbolTable,
  // Reading what may be stored, to learn the archive's size: with kAuto.
  kTrial,
  // Building what the codec needs to search the dictionary.
  kIndex,
  // Reading the blocks that an earlier build left; their number is not known.
  kCheckKept,
  // Reading all inputs, encoding and writing.
  kEncode,
  // Writing the indexes, and waiting for the device.
  kFinish,
};

struct BuildProgress {
  BuildPhase phase = BuildPhase::kCount;
  // Of text, in this phase, or pass of it where kDictionary takes several (each
  // begins at 0 again); 0 in kIndex and kFinish; stored bytes in kCheckKept.
  uint64_t done_bytes = 0;
  // Of text; unset while counting.
  std::optional<uint64_t> total_bytes;
  // How many of done_bytes an earlier build had encoded, in kEncode.
  uint64_t kept_bytes = 0;
  // What the others became.
  uint64_t stored_bytes = 0;
};

// Version of cutting, reordering and encoding. Must be raised when one of them
// makes other blocks of the same text and options: a build keeps no blocks of
// another version.
inline constexpr uint32_t kBuildVersion = 3;

// How a build can be gone on with after it was stopped or killed.
struct ResumeOptions {
  // Lines that say what is built from what: a build with the same ones, sources
  // and options keeps the blocks of one that did not end. Empty: no build does,
  // and nothing stays of one that fails.
  std::string parameters;
  // Called where an earlier build of another version left blocks, which are
  // dropped; may be empty.
  std::function<void()> on_dropped;
  // Drops what an earlier build left.
  bool restart = false;
  // Not null: the archive whose text the only source has, which must outlive
  // the build. Where a block would be one of its blocks, that is copied.
  const Archive* copied = nullptr;
  // Stored instead of one that would be trained; empty: trained as always, but
  // before anything is encoded.
  std::string symbol_table;
  // Noted in the archive besides those of this build.
  uint64_t unread_input_count = 0;
  std::vector<std::string> unread_inputs;
};

struct BuildOptions {
  // Affects the archive.
  ArchiveWriterOptions archive;
  // Decides the settings of the dictionary and of kAuto (build_choice.h).
  AutoObjective objective = AutoObjective::kBalanced;
  // Upper bound, 1 to kDictionarySizeBytesMax; unset: that of the objective.
  // Codecs without dictionary ignore this and the next.
  std::optional<uint64_t> dictionary_size_bytes;
  DictionaryMethod dictionary_method = DictionaryMethod::kCoverage;
  // Needs a file of about the size of the text, two with kAuto and kFull, next
  // to the archive, while the build runs.
  ReorderMode reorder = ReorderMode::kOff;
  // What the tables of that may take; the archive does not depend on it
  // (ReorderOptions).
  uint64_t build_memory_bytes = kBuildMemoryBytesDefault;
  // Of the drive that the archive goes to; 0 if seeks cost nothing there
  // (ReorderOptions).
  uint64_t seek_cost_bytes = 0;
  // Stores what is compressed inside documents by zlib or gzip as its text, in
  // blocks that are cut around it (block_cutter.h); an archive with few such
  // members, under 1/512 of the text, is the same without. Needs a file of
  // about the size of the inflated text next to the archive, while the
  // dictionary is chosen; without that space the members stay as they are.
  bool inflate = false;
  // Members of more text stay as they are: a read of any part of one makes all
  // of it again. At most kInflatedLargeSizeMax.
  size_t inflate_member_size_bytes_max = kInflatedBlockSizeMax;
  // Trains a symbol table for answers in FSST, on a sample that is taken while
  // the inputs are read anyway. Must be true for codecs that use the table.
  bool symbol_table = true;
  // A segment ends with the document that makes it this large, in bytes of
  // text. At least 1.
  uint64_t segment_size_bytes = uint64_t{64} << 30;
  ResumeOptions resume;
  // What all inputs together may hold, in bytes of documents; unset: the bounds
  // of input_limits.h.
  std::optional<uint64_t> input_size_bytes_max;

  // Not null: what of the inputs cannot be read is left out and counted here,
  // and the archive says how many that were; must outlive the build. Then the
  // first pass reads all inputs to their end. A document that fails is left out
  // as a whole; where a container cannot be read on from there, so is what
  // follows it. A failure that was not there in the first pass ends the build.
  // Null: the first failure ends it.
  InputFailures* failures = nullptr;

  // Affects performance: threads that encode, at least 1. Memory grows by two
  // blocks, raw and stored, with each; where members are inflated by some 50
  // MiB while they are looked for (70 MiB with the largest), and by blocks of 1
  // MiB and five times the longest text.
  uint32_t threads = 1;

  // Called on the calling thread, some hundred times a gigabyte; may be empty.
  std::function<void(const BuildProgress&)> on_progress;
  // Told of the entries of all inputs, on the calling thread, in the first
  // pass; may be empty.
  NoteListener on_note;
  // When it becomes true the build ends with Cancelled, as soon as the current
  // block is encoded or, in kIndex, the index is built. May be null.
  const std::atomic<bool>* cancel = nullptr;
};

struct BuildSummary {
  ArchiveInfo info;
  BuildChoice choice;
  // What was to be done, and was not as space or memory was missing; for
  // people.
  std::vector<std::string> omissions;
  SkippedEntries skipped;
  DroppedAttributes dropped_attributes;
  // Blocks stored as they are because encoding did not make them smaller.
  uint64_t raw_block_count = 0;
  // Blocks of an earlier build, and of ResumeOptions::copied.
  uint64_t kept_block_count = 0;
  uint64_t copied_block_count = 0;
  // Blocks stored as they are because what the codec made of them did not
  // decode to their text: a bug of the codec.
  uint64_t mismatched_block_count = 0;
  // Compressed members that stay as they are because they are too large
  // (BuildOptions::inflate_member_size_bytes_max). Counted where the codec
  // inflates.
  FoundMembers::Refused oversized_members;
};

// Chooses how BuildArchive() would build the archive at `path`, by its first
// passes, and writes no archive: also of a sample of a text, to plan by.
// Blocks. Errors: as BuildArchive().
absl::StatusOr<BuildChoice> ChooseBuild(
    const std::string& path, std::span<const std::unique_ptr<Source>> sources,
    const BuildOptions& options);

// Builds the archive at `path` from the documents of `sources`, one source
// after the other. Takes a pass over all sources to count, as many as the
// dictionary's builder asks for, one for the symbol table if the codec uses it,
// and one to encode. What the last pass reads is
// what the archive holds and counts, so a source that changes meanwhile costs
// compression at worst; but if it lost bytes before its dictionary was sampled,
// that is an error.
//
// The archive depends on documents, options and their order only, not on
// threads or timing, nor on where an earlier build was stopped. On any error,
// and on a kill at any moment, `path` is what it was before. Blocks. Errors:
// those of Source, DictionaryBuilder, MakeBlockCodec() and ArchiveWriter;
// Cancelled; with ResumeOptions those of UnfinishedArchive::Open(); and, in the
// first pass already where the inputs do not change meanwhile, those of
// InputLimits: InvalidArgument, ResourceExhausted.
absl::StatusOr<BuildSummary> BuildArchive(
    const std::string& path, std::span<const std::unique_ptr<Source>> sources,
    const BuildOptions& options);

}  // namespace quire

#endif  // QUIRE_SERVER_INGEST_BUILD_PIPELINE_H_
