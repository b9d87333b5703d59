// SPDX-License-Identifier: GPL-3.0-or-later
//
// Collects the documents of a segment while it is written, and makes its index
// sections.
#ifndef QUIRE_SERVER_ARCHIVE_INDEX_DOCUMENT_INDEX_BUILDER_H_
#define QUIRE_SERVER_ARCHIVE_INDEX_DOCUMENT_INDEX_BUILDER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"

#include "codecs/filter/field_value.h"
#include "server/archive/format/archive_description.h"
#include "server/archive/format/segment_format.h"
#include "server/archive/index/container_builder.h"
#include "server/archive/index/decimal_range.h"
#include "server/archive/index/id_runs.h"

namespace quire {

// A column of strings with few different values.
class StringColumnBuilder {
 public:
  // Sets the value of document `index`, which increases with each call. Skipped
  // documents have the empty string.
  void Set(uint64_t index, absl::string_view value);
  // Errors: InvalidArgument  the value is too long.
  static absl::Status Check(absl::string_view value, absl::string_view what);

  bool empty() const { return strings_.empty(); }

  // Returns the column (FORMAT.md, "String columns").
  std::string Build(uint64_t count) &&;

 private:
  // In order of first appearance, numbered from 1.
  std::vector<std::string> strings_;
  absl::flat_hash_map<std::string, uint64_t> numbers_;
  std::vector<uint64_t> values_;
};

// Holds about 45 bytes plus the id for each document until the segment ends,
// and 8 bytes for each in a run of ids (FORMAT.md, "Id runs").
// Thread-compatible.
class DocumentIndexBuilder {
 public:
  // Errors: InvalidArgument  over a limit of the format; Internal.
  absl::Status Add(const NewDocument& document);

  // Fields of the documents, and others of what is in the container. The
  // columns of fields come first; its sections at the end, if there are
  // documents.
  ContainerBuilder& container() { return container_; }

  // Adds columns. Errors: those of FieldsBuilder::AddColumn().
  absl::Status AddFieldColumns(std::span<const FieldColumn> columns);

  uint64_t count() const { return sizes_.size(); }

  // Total size of all documents added.
  uint64_t size_bytes() const { return size_bytes_; }

  // Emits each section except those of id runs and container, uncompressed, in
  // order of type; stops at the first error. Omits sections without
  // information. Sets `id_size_bytes` to the total length of the ids in their
  // section. The builder is unusable afterwards, except for the container and
  // the two next.
  using Emit = std::function<absl::Status(SectionType, std::string)>;
  absl::Status Build(const Emit& emit, uint64_t& id_size_bytes);

  // Runs for EncodeIdRuns(); their section has a higher type than others.
  const std::vector<IdRun>& id_runs() const { return id_runs_; }

  uint32_t derived_id_count() const { return derived_id_count_; }

 private:
  // A shorter run of ids would save less than it takes.
  static constexpr uint32_t kRunSizeMin = 64;

  // Documents whose ids are a prefix and consecutive numbers, or one document.
  struct Entry {
    // The first id; of a run, once it has ended, the lowest.
    absl::string_view id;
    uint64_t first_number = 0;
    uint32_t count = 1;
    // Size of the number at the end of `id`; 0 without one.
    uint32_t digit_count = 0;

    bool is_run() const { return count >= kRunSizeMin; }

    absl::string_view prefix() const {
      return id.substr(0, id.size() - digit_count);
    }

    DecimalRange numbers() const { return {first_number, count}; }
  };

  absl::string_view Keep(absl::string_view id);
  void AddId(absl::string_view id);
  // Splits the last entry into ids if the run is too short.
  void EndRun();
  // Replaces the runs that are in `split` by an entry for each of their ids.
  void SplitRuns(const std::vector<bool>& split);
  void AppendIds(const Entry& run, std::vector<Entry>& entries);
  // Splits runs that other ids lie between.
  void SplitMixedRuns();
  // Indexes of entries in order of (id, index); empty if that is their order.
  std::vector<uint32_t> SortedEntries() const;
  std::string BuildCaptureTimes();

  // Chunks, so that ids never move.
  std::vector<std::unique_ptr<char[]>> chunks_;
  size_t chunk_used_ = 0;
  // In order of ordinals.
  std::vector<Entry> entries_;
  std::vector<IdRun> id_runs_;
  uint32_t derived_id_count_ = 0;
  std::vector<uint64_t> sizes_;
  uint64_t size_bytes_ = 0;
  // Empty, or up to the last document with a time; absent times are
  // kNoCaptureTime.
  std::vector<int64_t> capture_times_;
  StringColumnBuilder media_types_;
  StringColumnBuilder record_types_;
  ContainerBuilder container_;
};

}  // namespace quire

#endif  // QUIRE_SERVER_ARCHIVE_INDEX_DOCUMENT_INDEX_BUILDER_H_
