// SPDX-License-Identifier: GPL-3.0-or-later
//
// Deposited files of a build: which are kept, and their parts.
#ifndef QUIRE_SERVER_INGEST_DEPOSIT_TRACKER_H_
#define QUIRE_SERVER_INGEST_DEPOSIT_TRACKER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"

#include "codecs/base/bytes.h"
#include "codecs/base/checksum.h"
#include "server/archive/deposits/deposit_draft.h"
#include "server/ingest/build_options.h"
#include "server/ingest/sources/deposit_source.h"
#include "server/ingest/sources/source.h"

namespace quire {

struct DepositSummary {
  // Files that are kept, their bytes, and those of them that are stored a
  // second time.
  uint64_t file_count = 0;
  uint64_t size_bytes = 0;
  uint64_t literal_size_bytes = 0;
  // Over these files.
  DepositSource::Counts members;
  // Files that are not kept, and why: sentences about the first of them.
  uint64_t refused_count = 0;
  std::vector<std::string> refusals;
  // Files that were to be kept, and that are not: those of an archive, and all
  // with DepositMode::kAll.
  uint64_t lost_count = 0;
};

// Makes a draft of each file when its first document is added, and compares the
// text of its documents with that of the file. Memory: that of one draft, and a
// path and 32 bytes for each file. Thread-compatible.
class DepositTracker {
 public:
  static constexpr size_t kKeptMessageCount = 20;

  // `options` must outlive it.
  explicit DepositTracker(const BuildOptions& options) : options_(options) {}

  // Counts a document of the first pass.
  void Count(size_t source_index, const SourceDocument& document,
             uint64_t size_bytes);

  // Starts a pass that adds documents.
  void StartPass();
  // Starts the next document. Errors: those of DepositSource::Draft().
  absl::Status Begin(size_t source_index, const SourceDocument& document);

  // The file that the current document is part of; null if none is kept.
  const std::shared_ptr<DepositDraft>& draft() const { return draft_; }

  // Takes the next text of the document; or notes that it is not read, as an
  // earlier build has it.
  void AddText(ByteView piece);

  void SkipText() { has_skipped_text_ = true; }

  // Ends the document.
  void End(uint64_t size_bytes);

  // Ends the pass, before its last segment ends.
  void EndPass();

  // Counts of the last pass.
  const DepositSummary& summary() const { return summary_; }

 private:
  // Files of an input that have the same path, as those of an archive can.
  struct TextSizes {
    // In the order of the files.
    std::vector<uint64_t> size_bytes;
    // Number of files that the pass has begun.
    size_t begun_count = 0;
  };

  // Returns true if the document is the first of a file or of none.
  bool Moves(const SourceDocument& document);
  void Refuse(const std::string& path, const std::string& why, bool is_lost);
  // Drops the draft of a file that the pass has changed or left out.
  void Abandon(const std::string& why);
  void EndFile();

  const BuildOptions& options_;
  // Sizes of the text of the documents of each file, by input and path.
  absl::flat_hash_map<std::pair<size_t, std::string>, TextSizes> text_sizes_;
  // The file that Count() or Begin() has met last.
  std::shared_ptr<const DepositSource> source_;
  std::shared_ptr<DepositDraft> draft_;
  std::optional<uint64_t> expected_checksum_;
  bool has_skipped_text_ = false;
  Checksummer64 checksum_;
  uint64_t text_size_bytes_ = 0;
  DepositSummary summary_;
};

}  // namespace quire

#endif  // QUIRE_SERVER_INGEST_DEPOSIT_TRACKER_H_
