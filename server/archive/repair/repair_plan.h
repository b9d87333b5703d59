// SPDX-License-Identifier: GPL-3.0-or-later
//
// Finds the damaged parts of the files of one archive, and the copies that have
// them undamaged. Nothing here writes files.
#ifndef QUIRE_SERVER_ARCHIVE_REPAIR_REPAIR_PLAN_H_
#define QUIRE_SERVER_ARCHIVE_REPAIR_REPAIR_PLAN_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"

#include "codecs/base/bytes.h"
#include "server/archive/files/file_io.h"
#include "server/archive/format/manifest.h"
#include "server/archive/format/segment_format.h"
#include "server/archive/repair/archive_repair.h"

namespace quire {

// Files are read in pieces of at most this size.
inline constexpr uint64_t kRepairPieceBytes = uint64_t{1} << 20;

// One file in all places, the one to repair first: index 0, later called the
// damaged one. Owns the open files. Reads never fail with an error: bytes that
// cannot be read are damaged. Reads block on I/O. Thread-compatible.
class FileCopies {
 public:
  void Add(std::optional<ReadableFile> file) {
    files_.push_back(std::move(file));
  }

  size_t count() const { return files_.size(); }

  const std::optional<ReadableFile>& operator[](size_t index) const {
    return files_[index];
  }

  // Returns false if the file, or a part of `out`, cannot be read.
  bool Read(size_t index, uint64_t offset, MutableByteView out) const;

  // Unset if bytes cannot be read.
  std::optional<uint64_t> ChecksumOf(size_t index, uint64_t offset,
                                     uint64_t size_bytes) const;

 private:
  std::vector<std::optional<ReadableFile>> files_;
};

// Bytes of a file that replace those of the damaged one.
struct Patch {
  uint64_t offset = 0;
  uint64_t size_bytes = 0;
  // The copy to read them from, unless `bytes` has them.
  size_t source = 0;
  std::string bytes = {};
};

// The repaired form of a damaged file. Thread-compatible.
class FilePlan {
 public:
  FilePlan(std::string name, uint64_t size_bytes)
      : size_bytes_(size_bytes), file_({.name = std::move(name)}) {}

  // Takes a part from a copy.
  void Replace(uint64_t offset, uint64_t size_bytes, size_t source);
  // Takes a part whose bytes are known; compares it with the damaged file.
  void Require(uint64_t offset, std::string bytes, const FileCopies& copies);

  void AddMissing(absl::string_view part) { file_.missing.emplace_back(part); }

  // True if the file needs no repair.
  bool IsWhole(const FileCopies& copies) const;

  uint64_t size_bytes() const { return size_bytes_; }

  const std::string& name() const { return file_.name; }

  const RepairedFile& file() const { return file_; }

  // By offset once Sort() was called; they do not overlap.
  const std::vector<Patch>& patches() const { return patches_; }

  void Sort() { std::ranges::sort(patches_, {}, &Patch::offset); }

 private:
  void Count(uint64_t size_bytes) {
    ++file_.replaced_count;
    file_.replaced_size_bytes += size_bytes;
  }

  const uint64_t size_bytes_;
  RepairedFile file_;
  std::vector<Patch> patches_;
};

// Compares the files of one archive with their checksums. Thread-compatible.
class RepairPlanner {
 public:
  // Called with the size of each part of a segment that was read.
  using OnBytes = std::function<void(uint64_t size_bytes)>;

  // `manifest` must outlive it.
  RepairPlanner(const Manifest& manifest, OnBytes on_bytes)
      : manifest_(manifest), on_bytes_(std::move(on_bytes)) {}

  FilePlan PlanSegment(const ManifestSegment& expected,
                       const FileCopies& copies);
  FilePlan PlanDictionary(const FileCopies& copies);
  FilePlan PlanSymbolTable(const FileCopies& copies);

  // Segments whose first file has the table and trailer of the manifest, and
  // those where it has undamaged ones of another segment.
  uint64_t own_footer_count() const { return own_footer_count_; }

  uint64_t foreign_footer_count() const { return foreign_footer_count_; }

 private:
  std::optional<SegmentFooter> PlanFooter(const ManifestSegment& expected,
                                          const FileCopies& copies,
                                          FilePlan& plan);
  // Returns the copy that has the section undamaged.
  std::optional<size_t> PlanSection(const SectionEntry& entry,
                                    const FileCopies& copies, FilePlan& plan);
  void PlanBlocks(const ManifestSegment& expected, const SegmentFooter& footer,
                  size_t sizes_source, const FileCopies& copies,
                  FilePlan& plan);

  // Adds a part found in the copy `source`.
  static void AddPart(uint64_t offset, uint64_t size_bytes, size_t source,
                      FilePlan& plan) {
    if (source != 0) {
      plan.Replace(offset, size_bytes, source);
    }
  }

  const Manifest& manifest_;
  const OnBytes on_bytes_;
  uint64_t own_footer_count_ = 0;
  uint64_t foreign_footer_count_ = 0;
};

}  // namespace quire

#endif  // QUIRE_SERVER_ARCHIVE_REPAIR_REPAIR_PLAN_H_
