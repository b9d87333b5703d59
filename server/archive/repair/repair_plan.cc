// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/archive/repair/repair_plan.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

#include "codecs/base/checksum.h"
#include "server/archive/format/archive_format.h"
#include "server/archive/format/block_frame.h"
#include "server/archive/format/column.h"
#include "server/archive/format/section_compression.h"

namespace quire {

bool FileCopies::Read(size_t index, uint64_t offset,
                      MutableByteView out) const {
  const std::optional<ReadableFile>& file = files_[index];
  return file.has_value() && offset <= file->size_bytes() &&
         out.size() <= file->size_bytes() - offset &&
         ReadExactly(file->fd.get(), offset, out, file->path).ok();
}

std::optional<uint64_t> FileCopies::ChecksumOf(size_t index, uint64_t offset,
                                               uint64_t size_bytes) const {
  Checksummer64 checksum;
  std::vector<uint8_t> buffer;
  while (size_bytes > 0) {
    buffer.resize(std::min(size_bytes, kRepairPieceBytes));
    if (!Read(index, offset, buffer)) {
      return std::nullopt;
    }
    checksum.Add(buffer);
    offset += buffer.size();
    size_bytes -= buffer.size();
  }
  return checksum.Get();
}

void FilePlan::Replace(uint64_t offset, uint64_t size_bytes, size_t source) {
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

void FilePlan::Require(uint64_t offset, std::string bytes,
                       const FileCopies& copies) {
  std::string found(bytes.size(), '\0');
  if (copies.Read(0, offset, AsMutableBytes(found)) && found == bytes) {
    return;
  }
  Count(bytes.size());
  const uint64_t size_bytes = bytes.size();
  patches_.push_back(
      {.offset = offset, .size_bytes = size_bytes, .bytes = std::move(bytes)});
}

bool FilePlan::IsWhole(const FileCopies& copies) const {
  return patches_.empty() && file_.missing.empty() && copies[0].has_value() &&
         copies[0]->size_bytes() == size_bytes_;
}

namespace {

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

}  // namespace

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
    // A copy may end within the magic.
    if (!copies.Read(i, offset,
                     AsMutableBytes(bytes).first(size_bytes -
                                                 kSegmentEndMagic.size()))) {
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
    for (const std::string& name : NameBlocks(missing)) {
      plan.AddMissing(name);
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

}  // namespace quire
