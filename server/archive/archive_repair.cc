// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/archive/archive_repair.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <system_error>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

#include "codecs/base/checksum.h"
#include "codecs/base/status_macros.h"
#include "server/archive/files/archive_directory.h"
#include "server/archive/files/file_io.h"
#include "server/archive/files/partial_directory.h"
#include "server/archive/format/archive_format.h"
#include "server/archive/format/block_frame.h"
#include "server/archive/format/column.h"
#include "server/archive/format/manifest.h"
#include "server/archive/format/section_compression.h"
#include "server/archive/format/segment_format.h"

namespace quire {
namespace {

constexpr uint64_t kCopyChunkSizeBytes = uint64_t{1} << 20;

// The archive to repair, or a copy of it.
struct Place {
  ArchiveDirectory directory;
  // OK if MANIFEST is undamaged.
  absl::Status manifest_status;
  // MANIFEST.
  std::string manifest_bytes;
};

absl::StatusOr<Place> OpenPlace(const std::string& path) {
  Place place;
  QUIRE_ASSIGN_OR_RETURN(place.directory, OpenDirectoryOnly(path));
  place.manifest_status = ReadManifest(place.directory, &place.manifest_bytes);
  const Manifest& manifest = place.directory.manifest;
  if (place.manifest_status.ok() && manifest.DeriveUuid() != manifest.uuid) {
    place.manifest_status =
        InFile(absl::StrCat(path, "/", kManifestFileName),
               Damaged("the uuid is not the one that the contents have"));
  }
  return place;
}

// One file in all places, the one to repair first. Reads never fail with an
// error: bytes that cannot be read are damaged.
class FileCopies {
 public:
  void Add(std::optional<ReadableFile> file) {
    files_.push_back(std::move(file));
  }

  size_t count() const { return files_.size(); }

  const std::optional<ReadableFile>& operator[](size_t index) const {
    return files_[index];
  }

  bool Read(size_t index, uint64_t offset, MutableByteView out) const {
    const std::optional<ReadableFile>& file = files_[index];
    return file.has_value() && offset <= file->size_bytes() &&
           out.size() <= file->size_bytes() - offset &&
           ReadExactly(file->fd.get(), offset, out, file->path).ok();
  }

  // Unset if bytes cannot be read.
  std::optional<uint64_t> ChecksumOf(size_t index, uint64_t offset,
                                     uint64_t size_bytes) const {
    Checksummer64 checksum;
    std::vector<uint8_t> buffer;
    while (size_bytes > 0) {
      buffer.resize(std::min(size_bytes, kCopyChunkSizeBytes));
      if (!Read(index, offset, buffer)) {
        return std::nullopt;
      }
      checksum.Add(buffer);
      offset += buffer.size();
      size_bytes -= buffer.size();
    }
    return checksum.Get();
  }

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

// The repaired form of a damaged file.
class FilePlan {
 public:
  FilePlan(std::string name, uint64_t size_bytes)
      : size_bytes_(size_bytes), file_({.name = std::move(name)}) {}

  // Takes a part from a copy.
  void Replace(uint64_t offset, uint64_t size_bytes, size_t source) {
    Count(size_bytes);
    if (!patches_.empty() && patches_.back().source == source &&
        patches_.back().bytes.empty() &&
        patches_.back().offset + patches_.back().size_bytes == offset) {
      patches_.back().size_bytes += size_bytes;
      return;
    }
    patches_.push_back(
        {.offset = offset, .size_bytes = size_bytes, .source = source});
  }

  // Takes a part whose bytes are known; compares it with the damaged file.
  void Require(uint64_t offset, std::string bytes, const FileCopies& copies) {
    std::string found(bytes.size(), '\0');
    if (copies.Read(0, offset, AsMutableBytes(found)) && found == bytes) {
      return;
    }
    Count(bytes.size());
    const uint64_t size_bytes = bytes.size();
    patches_.push_back({.offset = offset,
                        .size_bytes = size_bytes,
                        .bytes = std::move(bytes)});
  }

  void AddMissing(std::string part) {
    file_.missing.push_back(std::move(part));
  }

  // True if the file needs no repair.
  bool IsWhole(const FileCopies& copies) const {
    return patches_.empty() && file_.missing.empty() && copies[0].has_value() &&
           copies[0]->size_bytes() == size_bytes_;
  }

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

// Reads frames of one segment, the preferred copy first.
class FrameFinder {
 public:
  struct Found {
    size_t source = 0;
    uint64_t checksum = 0;
  };

  FrameFinder(uint32_t segment_number, const FileCopies& copies,
              size_t preferred)
      : segment_number_(segment_number),
        copies_(copies),
        preferred_(preferred) {}

  // Returns a copy with an undamaged frame; the first one if its frame is the
  // same.
  std::optional<Found> Find(uint64_t block_index, uint64_t offset,
                            uint64_t size_bytes) {
    frame_.resize(size_bytes);
    std::optional<Found> found = Check(preferred_, block_index, offset);
    for (size_t i = 0; i < copies_.count() && !found.has_value(); ++i) {
      found = Check(i, block_index, offset);
    }
    if (found.has_value() && found->source != 0 && preferred_ != 0) {
      const std::optional<Found> own = Check(0, block_index, offset);
      if (own.has_value() && own->checksum == found->checksum) {
        return own;
      }
    }
    return found;
  }

 private:
  std::optional<Found> Check(size_t source, uint64_t block_index,
                             uint64_t offset) {
    if (!copies_.Read(source, offset, frame_)) {
      return std::nullopt;
    }
    const auto checksum = CheckFrame({segment_number_, block_index}, frame_);
    if (!checksum.ok()) {
      return std::nullopt;
    }
    return Found{.source = source, .checksum = *checksum};
  }

  const uint32_t segment_number_;
  const FileCopies& copies_;
  const size_t preferred_;
  std::vector<uint8_t> frame_;
};

FilePlan RepairPlanner::PlanSegment(const ManifestSegment& expected,
                                    const FileCopies& copies) {
  FilePlan plan(SegmentFileName(expected.number), expected.file_size_bytes);
  plan.Require(
      0,
      EncodeSegmentHeader(
          {.number = expected.number,
           .block_size_bytes = manifest_.block_size_bytes,
           .codec_id = static_cast<uint32_t>(manifest_.codec.id),
           .partition_size_bytes = manifest_.codec.partition_size_bytes,
           .dictionary_hash =
               manifest_.dictionary ? manifest_.dictionary->hash : 0}),
      copies);
  const std::optional<SegmentFooter> footer =
      PlanFooter(expected, copies, plan);
  if (!footer.has_value()) {
    plan.AddMissing(
        "section table and trailer, without which the other parts cannot be "
        "checked");
    return plan;
  }
  std::optional<size_t> sizes_source;
  for (const SectionEntry& entry : footer->sections) {
    const std::optional<size_t> source = PlanSection(entry, copies, plan);
    if (entry.type == static_cast<uint32_t>(SectionType::kBlockSizes)) {
      sizes_source = source;
    }
  }
  if (sizes_source.has_value()) {
    PlanBlocks(expected, *footer, *sizes_source, copies, plan);
  } else if (footer->block_count > 0) {
    plan.AddMissing("offsets of the blocks, which cannot be checked");
  }
  plan.Sort();
  return plan;
}

std::optional<SegmentFooter> RepairPlanner::PlanFooter(
    const ManifestSegment& expected, const FileCopies& copies, FilePlan& plan) {
  const size_t size_bytes =
      expected.sections.size() * kSectionEntrySizeBytes + kTrailerSizeBytes;
  if (expected.file_size_bytes < kSegmentHeaderSizeBytes + size_bytes) {
    return std::nullopt;
  }
  const uint64_t offset = expected.file_size_bytes - size_bytes;
  for (size_t i = 0; i < copies.count(); ++i) {
    std::string bytes(size_bytes, '\0');
    if (!copies.Read(i, offset, AsMutableBytes(bytes))) {
      continue;
    }
    RestoreEndMagic(AsMutableBytes(bytes));
    const ByteView view = AsBytes(bytes);
    const auto found = SegmentFooterSizeBytes(view.last(kTrailerSizeBytes));
    if (!found.ok() || *found != size_bytes) {
      continue;
    }
    auto footer =
        ParseSegmentFooter(view, expected.file_size_bytes, expected.number);
    if (footer.ok() && footer->checksum != expected.footer_checksum) {
      foreign_footer_count_ += i == 0 ? 1 : 0;
    } else if (footer.ok()) {
      own_footer_count_ += i == 0 ? 1 : 0;
      plan.Require(offset, std::move(bytes), copies);
      return *std::move(footer);
    }
  }
  return std::nullopt;
}

std::optional<size_t> RepairPlanner::PlanSection(const SectionEntry& entry,
                                                 const FileCopies& copies,
                                                 FilePlan& plan) {
  on_bytes_(entry.stored_size_bytes);
  for (size_t i = 0; i < copies.count(); ++i) {
    if (copies.ChecksumOf(i, entry.offset, entry.stored_size_bytes) ==
        entry.checksum) {
      AddPart(entry.offset, entry.stored_size_bytes, i, plan);
      return i;
    }
  }
  plan.AddMissing(IsKnownSectionType(entry.type)
                      ? std::string(SectionName(entry.type))
                      : absl::StrCat("section of type ", entry.type));
  return std::nullopt;
}

// "block 3", "blocks 3 to 7".
std::vector<std::string> NameBlocks(const std::vector<uint64_t>& blocks) {
  std::vector<std::string> names;
  for (size_t i = 0; i < blocks.size();) {
    size_t end = i + 1;
    while (end < blocks.size() && blocks[end] == blocks[end - 1] + 1) {
      ++end;
    }
    names.push_back(end == i + 1 ? absl::StrCat("block ", blocks[i])
                                 : absl::StrCat("blocks ", blocks[i], " to ",
                                                blocks[end - 1]));
    i = end;
  }
  return names;
}

void RepairPlanner::PlanBlocks(const ManifestSegment& expected,
                               const SegmentFooter& footer, size_t sizes_source,
                               const FileCopies& copies, FilePlan& plan) {
  const SectionEntry& entry = *footer.Find(SectionType::kBlockSizes);
  std::string stored(entry.stored_size_bytes, '\0');
  if (!copies.Read(sizes_source, entry.offset, AsMutableBytes(stored))) {
    plan.AddMissing("offsets of the blocks, which cannot be checked");
    return;
  }
  const auto section =
      Decompress(entry.method, AsBytes(stored), entry.size_bytes);
  const auto sizes =
      section.ok() ? ColumnView::Parse(AsBytes(*section), footer.block_count)
                   : section.status();

  struct Taken {
    uint64_t offset;
    uint64_t size_bytes;
    size_t source;
  };

  for (size_t preferred = 0; sizes.ok() && preferred < copies.count();
       ++preferred) {
    FrameFinder finder(expected.number, copies, preferred);
    std::vector<Taken> taken;
    std::vector<uint64_t> missing;
    uint64_t chain = 0;
    uint64_t offset = kSegmentHeaderSizeBytes;
    for (uint64_t i = 0; i < footer.block_count; ++i) {
      const uint64_t size_bytes = (*sizes)[i] + kFrameOverheadSizeBytes;
      if ((*sizes)[i] > kPayloadSizeBytesMax ||
          size_bytes > footer.blocks_end - offset) {
        plan.AddMissing(absl::StrCat("block ", i, " within the segment"));
        return;
      }
      const auto found = finder.Find(i, offset, size_bytes);
      if (!found.has_value()) {
        missing.push_back(i);
      } else {
        chain = ExtendBlockChain(chain, found->checksum);
        if (found->source != 0) {
          taken.push_back({offset, size_bytes, found->source});
        }
      }
      offset += size_bytes;
      on_bytes_(preferred == 0 ? size_bytes : 0);
    }
    const bool is_last = preferred + 1 == copies.count();
    if (missing.empty() && chain != footer.block_chain && !is_last) {
      // A block that some copy has in another form: prefer the next copy.
      continue;
    }
    for (const Taken& part : taken) {
      plan.Replace(part.offset, part.size_bytes, part.source);
    }
    for (std::string& name : NameBlocks(missing)) {
      plan.AddMissing(std::move(name));
    }
    if (missing.empty() && chain != footer.block_chain) {
      plan.AddMissing("blocks with the checksum that the trailer has");
    }
    return;
  }
  plan.AddMissing("offsets of the blocks in a known form");
}

FilePlan RepairPlanner::PlanDictionary(const FileCopies& copies) {
  const ManifestDictionary& expected = *manifest_.dictionary;
  FilePlan plan(DictionaryFileName(expected.hash), expected.file_size_bytes);
  on_bytes_(expected.file_size_bytes);
  bool has_header = false;
  for (size_t i = 0; i < copies.count(); ++i) {
    std::string bytes(kDictionaryHeaderSizeBytes, '\0');
    if (!copies.Read(i, 0, AsMutableBytes(bytes))) {
      continue;
    }
    const auto header = ParseDictionaryHeader(AsBytes(bytes));
    if (!header.ok() || header->hash != expected.hash ||
        header->size_bytes != expected.size_bytes ||
        header->stored_size_bytes !=
            expected.file_size_bytes - kDictionaryHeaderSizeBytes) {
      continue;
    }
    has_header = true;
    for (size_t source = 0; source < copies.count(); ++source) {
      if (copies.ChecksumOf(source, kDictionaryHeaderSizeBytes,
                            header->stored_size_bytes) ==
          header->stored_checksum) {
        plan.Require(0, std::move(bytes), copies);
        AddPart(kDictionaryHeaderSizeBytes, header->stored_size_bytes, source,
                plan);
        return plan;
      }
    }
  }
  plan.AddMissing(has_header ? "text of the dictionary"
                             : "header of the dictionary");
  return plan;
}

FilePlan RepairPlanner::PlanSymbolTable(const FileCopies& copies) {
  const ManifestSymbolTable& expected = *manifest_.symbol_table;
  const uint64_t size_bytes = kSymbolTableOverheadBytes + expected.size_bytes;
  FilePlan plan(SymbolTableFileName(expected.hash), size_bytes);
  on_bytes_(size_bytes);
  for (size_t i = 0; i < copies.count(); ++i) {
    std::vector<uint8_t> table(expected.size_bytes);
    // Magic, version and size stand before the table.
    if (copies.Read(i, kSymbolTableOverheadBytes - sizeof(uint64_t), table) &&
        Checksum64(table) == expected.hash) {
      plan.Require(0, EncodeSymbolTableFile(table), copies);
      return plan;
    }
  }
  plan.AddMissing("symbol table");
  return plan;
}

absl::Status WriteAt(int fd, uint64_t offset, ByteView bytes,
                     const std::string& file) {
  while (!bytes.empty()) {
    const ssize_t size =
        pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (size < 0 && errno == EINTR) {
      continue;
    }
    if (size <= 0) {
      return ErrnoStatus(size < 0 ? errno : EIO, file, "write");
    }
    offset += static_cast<uint64_t>(size);
    bytes = bytes.subspan(static_cast<size_t>(size));
  }
  return absl::OkStatus();
}

// The repair of one archive.
class Repair {
 public:
  Repair(std::vector<Place> places, const Manifest& manifest,
         std::string manifest_bytes, const RepairOptions& options)
      : places_(std::move(places)),
        manifest_(manifest),
        manifest_bytes_(std::move(manifest_bytes)),
        options_(options),
        planner_(manifest_,
                 [this](uint64_t size_bytes) { AddProgress(size_bytes); }) {}

  absl::StatusOr<RepairReport> Run();

 private:
  enum class Kind { kManifest, kDictionary, kSymbolTable, kSegment };

  struct File {
    Kind kind = Kind::kSegment;
    std::string name = {};
    // For segments.
    const ManifestSegment* segment = nullptr;
  };

  void AddProgress(uint64_t size_bytes) {
    progress_.bytes_done += size_bytes;
    if (options_.on_progress) {
      options_.on_progress(progress_);
    }
  }

  // All files in the order of their repair.
  std::vector<File> Files() const;
  FilePlan Plan(const File& file, const FileCopies& copies,
                RepairPlanner& planner) const;
  FileCopies OpenCopies(const std::string& name) const;
  // Checks that a directory without MANIFEST is a copy of the archive, once all
  // files were planned. Errors: FailedPrecondition.
  absl::Status CheckIsSameArchive() const;
  // Makes the new file, checks it and puts it in place.
  absl::Status Replace(const File& file, const FilePlan& plan,
                       PartialDirectory& partial) const;
  // Writes and syncs the new file: the parts of the old one, and the patches.
  // `share` takes them by sharing their storage.
  absl::Status Write(const FilePlan& plan, const FileCopies& copies, bool share,
                     int directory_fd, const std::string& path) const;

  const std::vector<Place> places_;
  const Manifest& manifest_;
  const std::string manifest_bytes_;
  const RepairOptions& options_;
  RepairProgress progress_;
  RepairPlanner planner_;
};

std::vector<Repair::File> Repair::Files() const {
  std::vector<File> files;
  if (manifest_.dictionary.has_value()) {
    files.push_back({.kind = Kind::kDictionary,
                     .name = DictionaryFileName(manifest_.dictionary->hash)});
  }
  if (manifest_.symbol_table.has_value()) {
    files.push_back(
        {.kind = Kind::kSymbolTable,
         .name = SymbolTableFileName(manifest_.symbol_table->hash)});
  }
  for (const ManifestSegment& segment : manifest_.segments) {
    files.push_back({.kind = Kind::kSegment,
                     .name = SegmentFileName(segment.number),
                     .segment = &segment});
  }
  files.push_back({.kind = Kind::kManifest, .name = kManifestFileName});
  return files;
}

FilePlan Repair::Plan(const File& file, const FileCopies& copies,
                      RepairPlanner& planner) const {
  switch (file.kind) {
    case Kind::kDictionary:
      return planner.PlanDictionary(copies);
    case Kind::kSymbolTable:
      return planner.PlanSymbolTable(copies);
    case Kind::kSegment:
      return planner.PlanSegment(*file.segment, copies);
    case Kind::kManifest:
      break;
  }
  FilePlan plan(file.name, manifest_bytes_.size());
  plan.Require(0, manifest_bytes_, copies);
  return plan;
}

FileCopies Repair::OpenCopies(const std::string& name) const {
  FileCopies copies;
  for (const Place& place : places_) {
    auto file = OpenReadableFile(place.directory.fd.get(), name,
                                 absl::StrCat(place.directory.path, "/", name));
    copies.Add(file.ok() ? std::optional(*std::move(file)) : std::nullopt);
  }
  return copies;
}

absl::StatusOr<RepairReport> Repair::Run() {
  RepairReport report;
  const ArchiveInfo info = manifest_.Describe(manifest_bytes_.size());
  report.uuid = info.uuid;
  progress_.bytes_total = info.stored_size_bytes;
  std::optional<PartialDirectory> partial;
  if (!options_.dry_run) {
    // Also keeps writers away while the files are compared.
    QUIRE_ASSIGN_OR_RETURN(
        PartialDirectory acquired,
        PartialDirectory::CreateForFiles(places_[0].directory.path));
    partial.emplace(std::move(acquired));
  }
  const std::vector<File> files = Files();
  report.file_count = files.size();
  std::vector<std::pair<const File*, FilePlan>> plans;
  for (const File& file : files) {
    const FileCopies copies = OpenCopies(file.name);
    FilePlan plan = Plan(file, copies, planner_);
    if (!plan.IsWhole(copies)) {
      plans.emplace_back(&file, std::move(plan));
    }
  }
  if (!places_[0].manifest_status.ok()) {
    QUIRE_RETURN_IF_ERROR(CheckIsSameArchive());
  }
  for (const auto& [file, plan] : plans) {
    if (plan.file().missing.empty() && partial.has_value()) {
      QUIRE_RETURN_IF_ERROR(Replace(*file, plan, *partial));
    }
    report.files.push_back(plan.file());
  }
  return report;
}

absl::Status Repair::CheckIsSameArchive() const {
  const ArchiveDirectory& own = places_[0].directory;
  const auto refuse = [&](absl::string_view why) {
    return absl::FailedPreconditionError(
        absl::StrCat(places_[0].manifest_status.message(), "; ", why,
                     ": copy the whole directory instead"));
  };
  if (!manifest_.segments.empty() && planner_.own_footer_count() == 0) {
    return refuse(absl::StrCat("no segment in ", own.path,
                               " shows that it is a copy of the same archive"));
  }
  if (planner_.foreign_footer_count() > 0) {
    return refuse(absl::StrCat(own.path, " has a segment of another archive"));
  }
  std::set<std::string> names;
  for (const File& file : Files()) {
    names.insert(file.name);
  }
  std::error_code error;
  for (auto entry = std::filesystem::directory_iterator(own.path, error);
       !error && entry != std::filesystem::directory_iterator();
       entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (IsSegmentFileName(name) && !names.contains(name)) {
      return refuse(absl::StrCat(own.path, " has ", name,
                                 ", which the copy does not have: it may be "
                                 "an earlier state of the archive"));
    }
  }
  return error ? ErrnoStatus(error.value(), own.path, "list")
               : absl::OkStatus();
}

absl::Status Repair::Replace(const File& file, const FilePlan& plan,
                             PartialDirectory& partial) const {
  const std::string path = absl::StrCat(partial.name(), "/", plan.name());
  const FileCopies copies = OpenCopies(plan.name());
  if (!Write(plan, copies, /*share=*/true, partial.fd(), path).ok()) {
    QUIRE_RETURN_IF_ERROR(
        Write(plan, copies, /*share=*/false, partial.fd(), path));
  }
  FileCopies written;
  QUIRE_ASSIGN_OR_RETURN(ReadableFile opened,
                         OpenReadableFile(partial.fd(), plan.name(), path));
  written.Add(std::move(opened));
  RepairPlanner planner(manifest_, [](uint64_t) {});
  if (!Plan(file, written, planner).IsWhole(written)) {
    return absl::UnavailableError(
        absl::StrCat(path,
                     ": differs from what was written to it; check the "
                     "device"));
  }
  return partial.MoveFile(plan.name());
}

absl::Status Repair::Write(const FilePlan& plan, const FileCopies& copies,
                           bool share, int directory_fd,
                           const std::string& path) const {
  const UniqueFd fd(openat(directory_fd, plan.name().c_str(),
                           O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC,
                           0600));
  if (!fd.is_open()) {
    return ErrnoStatus(errno, path, "create");
  }
  const std::optional<ReadableFile>& old = copies[0];
  if (share &&
      (!old.has_value() || ioctl(fd.get(), FICLONE, old->fd.get()) != 0 ||
       ftruncate(fd.get(), static_cast<off_t>(plan.size_bytes())) != 0)) {
    return absl::UnavailableError("storage cannot be shared");
  }
  std::string buffer;
  const auto copy = [&](size_t source, uint64_t offset,
                        uint64_t end) -> absl::Status {
    while (offset < end) {
      buffer.resize(std::min(end - offset, kCopyChunkSizeBytes));
      const auto& from = copies[source];
      if (!copies.Read(source, offset, AsMutableBytes(buffer))) {
        return absl::UnavailableError(
            absl::StrCat(from.has_value() ? from->path : plan.name(),
                         ": changed or became unreadable; try again"));
      }
      QUIRE_RETURN_IF_ERROR(WriteAt(fd.get(), offset, AsBytes(buffer), path));
      offset += buffer.size();
    }
    return absl::OkStatus();
  };
  uint64_t done = 0;
  for (const Patch& patch : plan.patches()) {
    if (!share) {
      QUIRE_RETURN_IF_ERROR(copy(0, done, patch.offset));
    }
    done = patch.offset + patch.size_bytes;
    QUIRE_RETURN_IF_ERROR(
        patch.bytes.empty()
            ? copy(patch.source, patch.offset, done)
            : WriteAt(fd.get(), patch.offset, AsBytes(patch.bytes), path));
  }
  if (!share) {
    QUIRE_RETURN_IF_ERROR(copy(0, done, plan.size_bytes()));
  }
  // The new file has owner and rights of the old one, or of the copy.
  for (size_t i = 0; i < copies.count(); ++i) {
    struct stat status;
    if (copies[i].has_value() && fstat(copies[i]->fd.get(), &status) == 0) {
      // Only root can give files to others.
      static_cast<void>(fchown(fd.get(), status.st_uid, status.st_gid) == 0);
      if (fchmod(fd.get(), status.st_mode & 07777) != 0) {
        return ErrnoStatus(errno, path, "set the rights of");
      }
      break;
    }
  }
  if (fsync(fd.get()) != 0) {
    return ErrnoStatus(errno, path, "sync");
  }
  // The file is then read back from the device.
  posix_fadvise(fd.get(), 0, 0, POSIX_FADV_DONTNEED);
  return absl::OkStatus();
}

std::string UuidOf(const Manifest& manifest) {
  return manifest.Describe(0).uuid;
}

}  // namespace

bool RepairReport::IsWhole() const {
  return std::ranges::all_of(
      files, [](const RepairedFile& file) { return file.missing.empty(); });
}

absl::StatusOr<RepairReport> RepairArchive(const std::string& path,
                                           std::span<const std::string> copies,
                                           const RepairOptions& options) {
  std::error_code error;
  // Files are made next to the directory itself, not next to a link to it.
  std::string real_path = std::filesystem::canonical(path, error).string();
  if (error) {
    return ErrnoStatus(error.value(), path, "open the directory");
  }
  std::vector<Place> places;
  QUIRE_ASSIGN_OR_RETURN(Place target, OpenPlace(real_path));
  places.push_back(std::move(target));
  for (const std::string& copy : copies) {
    if (std::filesystem::equivalent(real_path, copy, error)) {
      return absl::FailedPreconditionError(absl::StrCat(
          copy, ": is the archive to repair itself; give a copy of it"));
    }
    QUIRE_ASSIGN_OR_RETURN(Place place, OpenPlace(copy));
    if (absl::IsNotFound(place.manifest_status)) {
      return place.manifest_status;
    }
    places.push_back(std::move(place));
  }
  const Place* chosen = nullptr;
  for (const Place& place : places) {
    if (!place.manifest_status.ok()) {
      continue;
    }
    const Manifest& manifest = place.directory.manifest;
    if (chosen == nullptr) {
      chosen = &place;
    } else if (manifest.uuid != chosen->directory.manifest.uuid) {
      return absl::FailedPreconditionError(absl::StrCat(
          place.directory.path, ": has the uuid ", UuidOf(manifest),
          ", expected that of ", chosen->directory.path, ", ",
          UuidOf(chosen->directory.manifest),
          ": it is not a copy of the same archive"));
    }
  }
  if (chosen == nullptr) {
    for (const Place& place : places) {
      if (absl::IsFailedPrecondition(place.manifest_status)) {
        return place.manifest_status;
      }
    }
    return absl::DataLossError(absl::StrCat(
        places[0].manifest_status.message(),
        "; nor has a copy an undamaged MANIFEST: quired salvage saves "
        "documents without it"));
  }
  const Manifest manifest = chosen->directory.manifest;
  std::string manifest_bytes = chosen->manifest_bytes;
  return Repair(std::move(places), manifest, std::move(manifest_bytes), options)
      .Run();
}

}  // namespace quire
