// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/archive/archive.h"

#include <fcntl.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <iterator>
#include <numeric>
#include <queue>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

#include "codecs/base/status_macros.h"
#include "server/archive/files/archive_directory.h"
#include "server/archive/files/dictionary_file.h"
#include "server/archive/files/file_io.h"
#include "server/archive/files/ordered_openings.h"
#include "server/archive/files/symbol_table_file.h"
#include "server/archive/format/archive_format.h"
#include "server/archive/format/manifest.h"
#include "server/archive/format/section_compression.h"
#include "server/archive/index/id_filter.h"
#include "server/archive/segment_reader.h"

namespace quire {
namespace {

// Memory of a decoder's tables and of the objects around the indexes.
constexpr uint64_t kFixedMemoryBytes = 64 << 10;
// An earlier state with its uuid and its place in the order.
constexpr uint64_t kStateMemoryBytes = 160;

// Archives of more segments have filters: a look-up by id then searches only
// few segments.
constexpr size_t kUnfilteredSegmentsMax = 4;

// Upper bound on the filters of an archive.
uint64_t FilterBytes(const Manifest& manifest) {
  uint64_t size_bytes = 0;
  if (manifest.segments.size() > kUnfilteredSegmentsMax) {
    for (const ManifestSegment& segment : manifest.segments) {
      size_bytes += IdFilter::EstimateBytes(segment.document_count);
    }
  }
  return size_bytes;
}

// ArchiveOutline::memory_bytes and Archive::memory_bytes_max().
uint64_t PlannedMemoryBytes(const Manifest& manifest) {
  uint64_t size_bytes = kFixedMemoryBytes;
  if (manifest.dictionary.has_value()) {
    size_bytes += manifest.dictionary->size_bytes;
  }
  if (manifest.symbol_table.has_value()) {
    size_bytes += kSymbolTableMemoryBytes;
  }
  for (const ManifestSegment& segment : manifest.segments) {
    size_bytes += SegmentReader::EstimateMemoryBytes(segment);
  }
  size_bytes += manifest.history.size() * kStateMemoryBytes;
  size_bytes += FilterBytes(manifest);
  return size_bytes;
}

}  // namespace

// A segment as archives share it. Immutable.
struct Archive::OpenedSegment {
  SegmentFile file;
  // Reader of `file`.
  SegmentReader reader;
  ManifestSegment description;
  // Indexes that it was opened without.
  std::vector<absl::Status> index_damages;
  uint64_t id = 0;

  uint64_t memory_bytes_max() const {
    return SegmentReader::EstimateMemoryBytes(description);
  }
};

// The codec of the blocks, with its context. Immutable.
struct Archive::Codec {
  // The fields and files that a codec depends on; equal ones share it.
  struct Origin {
    CodecId id = CodecId::kUnspecified;
    uint32_t partition_size_bytes = 0;
    bool has_recipes = false;
    // Hashes, 0 without a file, and files.
    uint64_t dictionary_hash = 0;
    uint64_t symbol_table_hash = 0;
    FileIdentity dictionary_file = {};
    FileIdentity symbol_table_file = {};

    bool operator==(const Origin&) const = default;
  };

  // Returns the origin by a manifest and the opened files.
  static Origin OriginOf(const Manifest& manifest, const ArchiveFiles& files) {
    Origin origin = {
        .id = manifest.codec.id,
        .partition_size_bytes = manifest.codec.partition_size_bytes,
        .has_recipes = manifest.has_recipes};
    if (manifest.dictionary.has_value()) {
      origin.dictionary_hash = manifest.dictionary->hash;
      origin.dictionary_file = (*files.dictionary)->identity;
    }
    if (manifest.symbol_table.has_value()) {
      origin.symbol_table_hash = manifest.symbol_table->hash;
      origin.symbol_table_file = (*files.symbol_table)->identity;
    }
    return origin;
  }

  static uint64_t MemoryBytesMax(const Manifest& manifest) {
    return (manifest.dictionary.has_value() ? manifest.dictionary->size_bytes
                                            : 0) +
           (manifest.symbol_table.has_value() ? kSymbolTableMemoryBytes : 0);
  }

  Origin origin;
  std::shared_ptr<const CodecContext> context;
  std::unique_ptr<const PayloadCodec> codec;
  uint64_t memory_bytes_max = 0;
};

struct Archive::Segment {
  std::shared_ptr<const OpenedSegment> opened;
  // Filter of its ids; null in an archive of few segments.
  std::shared_ptr<const IdFilter> filter;
  // Start of the segment in the logical space and among the ordinals.
  uint64_t start = 0;
  uint64_t first_ordinal = 0;

  const SegmentReader& reader() const { return opened->reader; }

  Document Describe(uint64_t local_ordinal) const;

  // Calls `visit` with each segment that may have the id, in order.
  static void VisitMayHave(const std::vector<Segment>& segments,
                           absl::string_view id,
                           absl::FunctionRef<void(const Segment&)> visit);

  // Number of its documents below the ordinal `end`.
  uint64_t CountBelow(uint64_t end) const {
    return end <= first_ordinal
               ? 0
               : std::min(end - first_ordinal, reader().documents().count());
  }

  // Returns the ranks of the documents of an id below the ordinal `end`.
  IdIndex::Ranks Find(absl::string_view id, uint64_t end) const;
  // Calls `visit` with them, divided where the index of captures does not cover
  // a part of an id's documents.
  void VisitRanks(absl::string_view id, uint64_t end,
                  absl::FunctionRef<void(IdIndex::Ranks)> visit) const;
};

absl::StatusOr<std::shared_ptr<const Archive>> Archive::Open(
    const std::string& path, const ArchiveOpenOptions& options) {
  std::shared_ptr<const Archive> opened;
  QUIRE_RETURN_IF_ERROR(
      WithArchiveDirectory(path, [&](const ArchiveDirectory& directory) {
        const std::shared_ptr<Archive> archive(new Archive(path));
        opened = archive;
        return archive->Load(directory, options);
      }));
  return opened;
}

absl::StatusOr<std::shared_ptr<const Archive>> Archive::OpenAs(
    const std::string& path, const Manifest& manifest,
    const ArchiveOpenOptions& options) {
  QUIRE_ASSIGN_OR_RETURN(std::shared_ptr<const Archive> archive,
                         Open(path, options));
  if (archive->info().uuid != manifest.Describe(0).uuid) {
    return absl::FailedPreconditionError(
        absl::StrCat(path, ": was replaced while it was opened; try again"));
  }
  return archive;
}

absl::StatusOr<ArchiveOutline> Archive::ReadOutline(const std::string& path,
                                                    const Archive* shared,
                                                    bool has_sparse_segments) {
  ArchiveOutline outline;
  const absl::Status status =
      WithArchiveDirectory(path, [&](const ArchiveDirectory& directory) {
        const Manifest& manifest = directory.manifest;
        ArchiveFiles files = OpenArchiveFiles(directory, DirectIo::kOff);
        QUIRE_RETURN_IF_ERROR(files.FirstFault(manifest));
        if (has_sparse_segments) {
          files.IgnoreTimes();
        }
        outline = {
            .info = manifest.Describe(directory.manifest_file.size_bytes),
            .files = files.Identify(directory),
            .memory_bytes = PlannedMemoryBytes(manifest)};
        outline.new_memory_bytes = outline.memory_bytes;
        if (shared != nullptr) {
          outline.new_memory_bytes -= shared->SharedBytes(manifest, files);
        }
        if (manifest.dictionary.has_value()) {
          const ManifestDictionary& dictionary = *manifest.dictionary;
          outline.opening_bytes = dictionary.file_size_bytes +
                                  DecompressionBytes(dictionary.size_bytes);
        }
        for (const ManifestSegment& segment : manifest.segments) {
          outline.opening_bytes =
              std::max(outline.opening_bytes,
                       SegmentReader::EstimateOpeningBytes(manifest, segment));
        }
        return absl::OkStatus();
      });
  QUIRE_RETURN_IF_ERROR(status);
  return outline;
}

Archive::Archive(std::string path) : path_(std::move(path)) {}

Archive::~Archive() = default;

const std::string& Archive::SegmentPath(uint32_t segment_index) const {
  return segments_[segment_index].opened->file.file.path;
}

absl::Status Archive::Load(const ArchiveDirectory& directory,
                           const ArchiveOpenOptions& options) {
  const Manifest& manifest = directory.manifest;
  ArchiveFiles files = OpenArchiveFiles(directory, options.direct_io);
  QUIRE_RETURN_IF_ERROR(files.FirstFault(manifest));
  if (options.has_sparse_segments) {
    files.IgnoreTimes();
  }
  files_ = files.Identify(directory);
  direct_io_note_ = std::move(files.direct_io_note);
  info_ = manifest.Describe(directory.manifest_file.size_bytes);
  states_.resize(info_.history.size());
  std::iota(states_.begin(), states_.end(), 0);
  std::ranges::sort(states_, {}, [this](uint32_t i) {
    return absl::string_view(info_.history[i].uuid);
  });
  memory_bytes_max_ = PlannedMemoryBytes(manifest);
  QUIRE_RETURN_IF_ERROR(LoadCodec(manifest, files, options));
  QUIRE_RETURN_IF_ERROR(OpenSegments(manifest, files, options));
  uint64_t start = 0;
  uint64_t first_ordinal = 0;
  for (uint32_t i = 0; i < segments_.size(); ++i) {
    Segment& segment = segments_[i];
    index_of_number_.emplace(segment.opened->description.number, i);
    segment.start = start;
    segment.first_ordinal = first_ordinal;
    start += segment.opened->description.size_bytes;
    first_ordinal += segment.opened->description.document_count;
    segment.reader().AddMemory(memory_);
    memory_.id_filters_bytes +=
        segment.filter == nullptr ? 0 : segment.filter->MemoryBytes();
    std::ranges::copy(segment.opened->index_damages,
                      std::back_inserter(index_damages_));
    description_size_bytes_max_ =
        std::max(description_size_bytes_max_,
                 segment.reader().documents().DescriptionSizeBytesMax());
  }
  return absl::OkStatus();
}

absl::Status Archive::OpenSegments(const Manifest& manifest,
                                   ArchiveFiles& files,
                                   const ArchiveOpenOptions& options) {
  const size_t count = manifest.segments.size();
  const bool has_filters = count > kUnfilteredSegmentsMax;
  absl::flat_hash_map<uint64_t, std::shared_ptr<const IdFilter>> filters;
  if (options.shared != nullptr) {
    for (const Segment& segment : options.shared->segments_) {
      filters.emplace(segment.opened->id, segment.filter);
    }
  }
  segments_.resize(count);
  // Indices of segments with something to do, and the memory for it.
  std::vector<size_t> left;
  std::vector<uint64_t> working_bytes;
  for (size_t i = 0; i < count; ++i) {
    Segment& segment = segments_[i];
    const ManifestSegment& expected = manifest.segments[i];
    if (options.shared != nullptr) {
      segment.opened = options.shared->FindOpened(
          manifest, expected, files.segments[i]->file.identity);
    }
    if (segment.opened != nullptr && has_filters) {
      segment.filter = filters[segment.opened->id];
    }
    if (segment.opened == nullptr ||
        (has_filters && segment.filter == nullptr)) {
      left.push_back(i);
      working_bytes.push_back(
          segment.opened != nullptr
              ? 0
              : SegmentReader::EstimateOpeningBytes(manifest, expected));
    }
  }
  return OpenInOrder(
      working_bytes, options.helpers, [&](size_t task) -> absl::Status {
        if (options.cancel != nullptr && *options.cancel) {
          return absl::CancelledError(
              absl::StrCat(path_, ": opening it was cancelled"));
        }
        const size_t i = left[task];
        Segment& segment = segments_[i];
        if (segment.opened == nullptr) {
          QUIRE_ASSIGN_OR_RETURN(
              segment.opened,
              OpenSegment(*std::move(files.segments[i]), manifest,
                          manifest.segments[i], options));
        }
        if (has_filters) {
          segment.filter = std::make_shared<const IdFilter>(
              segment.reader().documents().ids());
        }
        return absl::OkStatus();
      });
}

absl::StatusOr<std::shared_ptr<const Archive::OpenedSegment>>
Archive::OpenSegment(SegmentFile file, const Manifest& manifest,
                     const ManifestSegment& description,
                     const ArchiveOpenOptions& options) {
  static std::atomic<uint64_t> next_id{1};
  std::vector<absl::Status> index_damages;
  QUIRE_ASSIGN_OR_RETURN(
      SegmentReader reader,
      SegmentReader::Open(
          file, manifest, description, options.cancel,
          options.without_damaged_indexes ? &index_damages : nullptr));
  return std::make_shared<const OpenedSegment>(
      OpenedSegment{.file = std::move(file),
                    .reader = std::move(reader),
                    .description = description,
                    .index_damages = std::move(index_damages),
                    .id = next_id.fetch_add(1, std::memory_order_relaxed)});
}

absl::Status Archive::LoadCodec(const Manifest& manifest,
                                const ArchiveFiles& files,
                                const ArchiveOpenOptions& options) {
  const Codec::Origin origin = Codec::OriginOf(manifest, files);
  if (options.shared != nullptr && options.shared->codec_->origin == origin) {
    codec_ = options.shared->codec_;
  } else {
    auto context = std::make_shared<CodecContext>();
    if (files.dictionary.has_value()) {
      QUIRE_ASSIGN_OR_RETURN(
          context->dictionary,
          ReadDictionaryFile(**files.dictionary, *manifest.dictionary,
                             options.cancel));
      // Blocks copy from random offsets of it.
      PreferHugePages(AsMutableBytes(context->dictionary));
    }
    if (files.symbol_table.has_value()) {
      QUIRE_ASSIGN_OR_RETURN(
          context->symbol_table,
          ReadSymbolTableFile(**files.symbol_table, *manifest.symbol_table));
    }
    auto codec =
        MakePayloadCodec(manifest.codec, context, CodecUse::kDecode,
                         manifest.has_recipes ? kInflatedLargeSizeMax : 0);
    QUIRE_RETURN_IF_ERROR(InFile(path_, codec.status()));
    codec_ = std::make_shared<const Codec>(
        Codec{.origin = origin,
              .context = std::move(context),
              .codec = *std::move(codec),
              .memory_bytes_max = Codec::MemoryBytesMax(manifest)});
  }
  if (manifest.dictionary.has_value()) {
    memory_.dictionary_bytes = context().dictionary.capacity();
  }
  if (manifest.symbol_table.has_value()) {
    memory_.symbol_table_bytes = kSymbolTableMemoryBytes;
  }
  memory_.codec_bytes = codec().MemoryBytes();
  return absl::OkStatus();
}

const CodecContext& Archive::context() const {
  return *codec_->context;
}

const PayloadCodec& Archive::codec() const {
  return *codec_->codec;
}

absl::Status Archive::CheckIndexes(const BeforeRead& before_read,
                                   std::vector<absl::Status>& damages) const {
  QUIRE_RETURN_IF_ERROR(CheckManifest(before_read, damages));
  for (const Segment& segment : segments_) {
    QUIRE_RETURN_IF_ERROR(segment.reader().CheckIndexes(before_read, damages));
  }
  const auto check =
      [&](const std::string& name, const FileIdentity& identity,
          const std::function<absl::Status(const ReadableFile&)>& read)
      -> absl::Status {
    const std::string path = absl::StrCat(path_, "/", name);
    const auto file = OpenReadableFile(AT_FDCWD, path, path);
    // Another archive at the same path has a check of its own.
    if (!file.ok() || file->identity != identity) {
      return absl::OkStatus();
    }
    return NoteDamage(read(*file), damages);
  };
  const Codec::Origin& origin = codec_->origin;
  if (origin.dictionary_hash != 0) {
    QUIRE_RETURN_IF_ERROR(check(
        DictionaryFileName(origin.dictionary_hash), origin.dictionary_file,
        [&](const ReadableFile& file) {
          return CheckDictionaryFile(file, origin.dictionary_hash, before_read);
        }));
  }
  if (origin.symbol_table_hash == 0) {
    return absl::OkStatus();
  }
  return check(
      SymbolTableFileName(origin.symbol_table_hash), origin.symbol_table_file,
      [&](const ReadableFile& file) -> absl::Status {
        QUIRE_RETURN_IF_ERROR(before_read(file.fd.get(), 0, file.size_bytes()));
        return ReadSymbolTableFile(file, {.hash = origin.symbol_table_hash,
                                          .size_bytes = static_cast<uint32_t>(
                                              info_.symbol_table_size_bytes)})
            .status();
      });
}

absl::Status Archive::CheckManifest(const BeforeRead& before_read,
                                    std::vector<absl::Status>& damages) const {
  auto directory = OpenDirectoryOnly(path_);
  if (!directory.ok()) {
    // The archive was removed.
    return absl::OkStatus();
  }
  const std::string path = absl::StrCat(path_, "/", kManifestFileName);
  const auto file =
      OpenReadableFile(directory->fd.get(), kManifestFileName, path);
  if (absl::IsNotFound(file.status())) {
    return NoteDamage(InFile(path, Damaged("it is missing")), damages);
  }
  QUIRE_RETURN_IF_ERROR(file.status());
  QUIRE_RETURN_IF_ERROR(before_read(file->fd.get(), 0, file->size_bytes()));
  // That of a later state is as good.
  return NoteDamage(ReadManifest(*directory), damages);
}

std::shared_ptr<const Archive::OpenedSegment> Archive::FindOpened(
    const Manifest& manifest, const ManifestSegment& segment,
    const FileIdentity& file) const {
  // These fields were checked against another manifest.
  if (manifest.codec.id != info_.codec.id ||
      manifest.codec.partition_size_bytes != info_.codec.partition_size_bytes ||
      manifest.block_size_bytes != info_.block_size_bytes ||
      manifest.block_size_bytes_max < info_.block_size_bytes_max ||
      manifest.slices_per_mib_max < info_.slices_per_mib_max ||
      (manifest.dictionary.has_value() ? manifest.dictionary->hash : 0) !=
          codec_->origin.dictionary_hash) {
    return nullptr;
  }
  const auto index = index_of_number_.find(segment.number);
  if (index == index_of_number_.end()) {
    return nullptr;
  }
  const std::shared_ptr<const OpenedSegment>& opened =
      segments_[index->second].opened;
  return opened->description == segment && opened->file.file.identity == file
             ? opened
             : nullptr;
}

uint64_t Archive::SharedBytes(const Manifest& manifest,
                              const ArchiveFiles& files) const {
  uint64_t shared_bytes = 0;
  if (codec_->origin == Codec::OriginOf(manifest, files)) {
    shared_bytes += codec_->memory_bytes_max;
  }
  for (size_t i = 0; i < manifest.segments.size(); ++i) {
    const auto opened = FindOpened(manifest, manifest.segments[i],
                                   files.segments[i]->file.identity);
    if (opened == nullptr) {
      continue;
    }
    shared_bytes += opened->memory_bytes_max();
    if (segments_.size() > kUnfilteredSegmentsMax &&
        manifest.segments.size() > kUnfilteredSegmentsMax) {
      shared_bytes +=
          IdFilter::EstimateBytes(manifest.segments[i].document_count);
    }
  }
  return shared_bytes;
}

void Archive::VisitMemoryParts(
    absl::FunctionRef<void(const void* object, uint64_t bytes_max)> visit)
    const {
  uint64_t own_bytes = memory_bytes_max_;
  const auto visit_part = [&](const void* object, uint64_t bytes_max) {
    own_bytes -= bytes_max;
    visit(object, bytes_max);
  };
  visit_part(codec_.get(), codec_->memory_bytes_max);
  for (const Segment& segment : segments_) {
    visit_part(segment.opened.get(), segment.opened->memory_bytes_max());
    if (segment.filter != nullptr) {
      visit_part(
          segment.filter.get(),
          IdFilter::EstimateBytes(segment.opened->description.document_count));
    }
  }
  visit(this, own_bytes);
}

uint32_t Archive::SegmentNumber(uint32_t segment_index) const {
  return segments_[segment_index].opened->description.number;
}

uint64_t Archive::OpenedSegmentId(uint32_t segment_index) const {
  return segments_[segment_index].opened->id;
}

bool Archive::MayHaveChanged(const Archive& archive) {
  const std::string file = absl::StrCat(archive.path(), "/", kManifestFileName);
  const absl::StatusOr<ReadableFile> manifest =
      OpenReadableFile(AT_FDCWD, file, file);
  return !manifest.ok() || manifest->identity != archive.files_.front();
}

std::optional<ArchiveView> Archive::FindState(absl::string_view uuid) const {
  if (uuid == info_.uuid) {
    return *this;
  }
  const auto uuid_of = [this](uint32_t i) {
    return absl::string_view(info_.history[i].uuid);
  };
  const auto found = std::ranges::lower_bound(states_, uuid, {}, uuid_of);
  if (found == states_.end() || uuid_of(*found) != uuid) {
    return std::nullopt;
  }
  return ArchiveView(*this, info_.history[*found]);
}

const SegmentReader& Archive::SegmentOf(BlockAddress block) const {
  return segments_[block.segment_index].reader();
}

uint32_t Archive::BlockSizeBytes(BlockAddress block) const {
  return SegmentOf(block).BlockSizeBytes(block.block_index);
}

Extent Archive::BlockExtent(BlockAddress block) const {
  return SegmentOf(block).BlockExtent(block.block_index);
}

uint64_t Archive::SegmentBlockCount(uint32_t segment_index) const {
  return segments_[segment_index].reader().block_count();
}

uint64_t Archive::SegmentStart(uint32_t segment_index) const {
  return segments_[segment_index].start;
}

const SegmentLayout& Archive::SegmentLayoutOf(uint32_t segment_index) const {
  return segments_[segment_index].reader().layout();
}

absl::Status Archive::DecodeBlock(BlockAddress block, ByteView frame,
                                  std::span<const BlockPart> parts,
                                  PayloadCodec::Scratch& scratch) const {
  return SegmentOf(block).DecodeBlock(block.block_index, frame, parts, codec(),
                                      scratch);
}

absl::Status Archive::CheckBlock(BlockAddress block, ByteView frame) const {
  return SegmentOf(block).CheckBlock(block.block_index, frame);
}

absl::Status Archive::ReadBlock(BlockAddress block, MutableByteView raw,
                                PayloadCodec::Scratch& scratch) const {
  const SegmentReader& segment = SegmentOf(block);
  std::vector<uint8_t> frame;
  QUIRE_RETURN_IF_ERROR(segment.ReadFrame(block.block_index, frame).status());
  return segment.DecodeCheckedFrame(block.block_index, frame, raw, codec(),
                                    scratch);
}

absl::StatusOr<Payload> Archive::ReadPayload(
    BlockAddress block, std::vector<uint8_t>& frame) const {
  QUIRE_RETURN_IF_ERROR(
      SegmentOf(block).ReadFrame(block.block_index, frame).status());
  return ParseFrame(frame, BlockSizeBytes(block));
}

Document Archive::Segment::Describe(uint64_t local_ordinal) const {
  Document document = reader().documents().Describe(local_ordinal);
  document.ordinal.value = first_ordinal + local_ordinal;
  document.range.offset.value += start;
  return document;
}

void Archive::Segment::VisitMayHave(
    const std::vector<Segment>& segments, absl::string_view id,
    absl::FunctionRef<void(const Segment&)> visit) {
  if (segments.size() <= kUnfilteredSegmentsMax) {
    std::ranges::for_each(segments, visit);
    return;
  }
  const uint64_t hash = IdFilter::Hash(id);
  // The accesses to memory overlap.
  constexpr size_t kPrefetchedCount = 16;
  for (size_t i = 0; i < std::min(kPrefetchedCount, segments.size()); ++i) {
    segments[i].filter->Prefetch(hash);
  }
  for (size_t i = 0; i < segments.size(); ++i) {
    if (i + kPrefetchedCount < segments.size()) {
      segments[i + kPrefetchedCount].filter->Prefetch(hash);
    }
    if (segments[i].filter->MayHave(hash)) {
      visit(segments[i]);
    }
  }
}

IdIndex::Ranks Archive::Segment::Find(absl::string_view id,
                                      uint64_t end) const {
  const DocumentIndex& documents = reader().documents();
  const uint64_t count = CountBelow(end);
  if (count == 0) {
    return {};
  }
  IdIndex::Ranks ranks = documents.ids().Find(id);
  if (count == documents.count()) {
    return ranks;
  }
  // Among equal ids, ordinals ascend.
  uint64_t low = ranks.begin;
  uint64_t high = ranks.end;
  while (low < high) {
    const uint64_t middle = low + (high - low) / 2;
    if (documents.OrdinalAtRank(middle) < count) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  ranks.end = low;
  return ranks;
}

void Archive::Segment::VisitRanks(
    absl::string_view id, uint64_t end,
    absl::FunctionRef<void(IdIndex::Ranks)> visit) const {
  IdIndex::Ranks ranks = Find(id, end);
  if (CountBelow(end) == reader().documents().count()) {
    visit(ranks);
    return;
  }
  while (ranks.begin < ranks.end) {
    IdIndex::Ranks part = ranks;
    part.end = std::min(ranks.end, ranks.begin + CaptureOrder::kScannedMax);
    visit(part);
    ranks.begin = part.end;
  }
}

const Archive::Segment& Archive::SegmentOfDocument(uint64_t ordinal) const {
  const auto after = std::upper_bound(
      segments_.begin(), segments_.end(), ordinal,
      [](uint64_t value, const Segment& s) { return value < s.first_ordinal; });
  // If several segments begin with the same ordinal, only the last has
  // documents.
  return *std::prev(after);
}

size_t Archive::SegmentIndexAt(uint64_t offset) const {
  const auto after = std::upper_bound(
      segments_.begin(), segments_.end(), offset,
      [](uint64_t value, const Segment& s) { return value < s.start; });
  return static_cast<size_t>(std::prev(after) - segments_.begin());
}

absl::StatusOr<std::vector<BlockSlice>> Archive::Plan(
    LogicalRange range) const {
  if (range.offset.value > info_.size_bytes ||
      range.size_bytes > info_.size_bytes - range.offset.value) {
    return absl::OutOfRangeError(
        absl::StrCat("bytes ", range.offset.value, " + ", range.size_bytes,
                     " end past the archive's ", info_.size_bytes, " bytes"));
  }
  std::vector<BlockSlice> slices;
  if (range.size_bytes == 0) {
    return slices;
  }
  size_t segment_index = SegmentIndexAt(range.offset.value);
  uint64_t offset = range.offset.value - segments_[segment_index].start;
  uint64_t left = range.size_bytes;
  for (; left > 0; ++segment_index, offset = 0) {
    const SegmentReader& reader = segments_[segment_index].reader();
    const uint64_t size_bytes = std::min(left, reader.size_bytes() - offset);
    PlanInSegment(segment_index, offset, size_bytes, slices);
    left -= size_bytes;
  }
  return slices;
}

void Archive::PlanInSegment(size_t segment_index, uint64_t offset,
                            uint64_t size_bytes,
                            std::vector<BlockSlice>& slices) const {
  const SegmentReader& reader = segments_[segment_index].reader();
  const SegmentLayout& layout = reader.layout();
  const uint64_t end = offset + size_bytes;
  for (uint64_t run = layout.RunAt(offset); offset < end; ++run) {
    SegmentLayout::StoredPiece piece = layout.PieceOf(run, offset);
    piece.size_bytes = std::min(piece.size_bytes, end - offset);
    offset += piece.size_bytes;
    uint64_t block_index = reader.blocks().BlockAt(piece.stored_offset);
    uint64_t offset_in_block =
        piece.stored_offset - reader.blocks().StartOf(block_index);
    for (; piece.size_bytes > 0; ++block_index, offset_in_block = 0) {
      BlockSlice slice;
      slice.block.segment_index = static_cast<uint32_t>(segment_index);
      slice.block.block_index = block_index;
      slice.offset_in_block = static_cast<uint32_t>(offset_in_block);
      slice.size_bytes = static_cast<uint32_t>(std::min<uint64_t>(
          piece.size_bytes,
          reader.BlockSizeBytes(block_index) - offset_in_block));
      slices.push_back(slice);
      piece.size_bytes -= slice.size_bytes;
    }
  }
}

absl::Status Archive::CheckOrdinal(DocumentOrdinal ordinal) const {
  if (ordinal.value >= info_.document_count) {
    return absl::OutOfRangeError(
        absl::StrCat("document ", ordinal.value, " of an archive of ",
                     info_.document_count, " documents"));
  }
  return absl::OkStatus();
}

absl::StatusOr<Document> Archive::GetDocument(DocumentOrdinal ordinal) const {
  QUIRE_RETURN_IF_ERROR(CheckOrdinal(ordinal));
  const Segment& segment = SegmentOfDocument(ordinal.value);
  const uint64_t local = ordinal.value - segment.first_ordinal;
  Document document = segment.Describe(local);
  document.id = segment.reader().documents().Id(local);
  return document;
}

absl::StatusOr<LogicalRange> Archive::GetDocumentRange(
    DocumentOrdinal ordinal) const {
  QUIRE_RETURN_IF_ERROR(CheckOrdinal(ordinal));
  const Segment& segment = SegmentOfDocument(ordinal.value);
  LogicalRange range =
      segment.reader().documents().Range(ordinal.value - segment.first_ordinal);
  range.offset.value += segment.start;
  return range;
}

absl::StatusOr<std::vector<DocumentOrdinal>> Archive::FindDocuments(
    absl::string_view id) const {
  std::vector<DocumentOrdinal> found;
  Segment::VisitMayHave(segments_, id, [&](const Segment& segment) {
    const DocumentIndex& documents = segment.reader().documents();
    const IdIndex::Ranks ranks = documents.ids().Find(id);
    for (uint64_t rank = ranks.begin; rank < ranks.end; ++rank) {
      found.push_back({segment.first_ordinal + documents.OrdinalAtRank(rank)});
    }
  });
  if (found.empty()) {
    return absl::NotFoundError(
        absl::StrCat("there is no document \"", id, "\""));
  }
  return found;
}

Archive::FoundDocument Archive::FindDocument(absl::string_view id,
                                             std::optional<uint64_t> occurrence,
                                             uint64_t end) const {
  FoundDocument found;
  Segment::VisitMayHave(segments_, id, [&](const Segment& segment) {
    const DocumentIndex& documents = segment.reader().documents();
    const IdIndex::Ranks ranks = segment.Find(id, end);
    // An occurrence in an earlier segment wraps to a rank far above the number
    // of documents.
    const uint64_t count = found.count + ranks.count();
    const uint64_t rank = ranks.end - (count - occurrence.value_or(count - 1));
    if (rank - ranks.begin < ranks.count()) {
      found.ordinal = {segment.first_ordinal + documents.OrdinalAtRank(rank)};
    }
    found.count = count;
  });
  return found;
}

Archive::FoundDocument Archive::FindCapture(absl::string_view id,
                                            const DocumentSelection& selection,
                                            uint64_t end) const {
  FoundDocument found;
  std::optional<Capture> best;
  Segment::VisitMayHave(segments_, id, [&](const Segment& segment) {
    segment.VisitRanks(id, end, [&](IdIndex::Ranks ranks) {
      found.count += ranks.count();
      std::optional<Capture> capture =
          segment.reader().documents().FindCapture(ranks, selection);
      if (capture.has_value()) {
        capture->ordinal += segment.first_ordinal;
        if (!best.has_value() || capture->IsBetterThan(*best, selection)) {
          best = capture;
        }
      }
    });
  });
  if (best.has_value()) {
    found.ordinal = {best->ordinal};
  }
  return found;
}

std::vector<std::string> Archive::RecordTypesOf(absl::string_view id,
                                                size_t count_max,
                                                uint64_t end) const {
  std::vector<std::string> types;
  Segment::VisitMayHave(segments_, id, [&](const Segment& segment) {
    segment.VisitRanks(id, end, [&](IdIndex::Ranks ranks) {
      segment.reader().documents().AddRecordTypes(ranks, count_max, types);
    });
  });
  return types;
}

absl::StatusOr<DocumentOrdinal> Archive::DocumentAt(
    LogicalOffset offset) const {
  if (offset.value >= info_.size_bytes) {
    return absl::OutOfRangeError(absl::StrCat("byte ", offset.value,
                                              " of an archive of ",
                                              info_.size_bytes, " bytes"));
  }
  const Segment& segment = segments_[SegmentIndexAt(offset.value)];
  return DocumentOrdinal{
      segment.first_ordinal +
      segment.reader().documents().At(offset.value - segment.start)};
}

// Ids of all segments from the start of a listing on, merged. Borrows the
// segments.
class Archive::ListingWalk {
 public:
  ListingWalk(const std::vector<Segment>& segments, const Listing& listing)
      : prefix_(listing.prefix), end_(listing.end), next_(ComesLater{this}) {
    cursors_.reserve(segments.size());
    for (const Segment& segment : segments) {
      if (segment.CountBelow(end_) == 0) {
        break;
      }
      segments_.push_back(&segment);
      cursors_.emplace_back(IdsOf(segment), FirstRank(segment, listing.after));
      if (!PushIfListed(cursors_.size() - 1)) {
        segments_.pop_back();
        cursors_.pop_back();
      }
    }
  }

  ListingWalk(const ListingWalk&) = delete;
  ListingWalk& operator=(const ListingWalk&) = delete;

  bool at_end() const { return next_.empty(); }

  const ListingCost& cost() const { return cost_; }

  // REQUIRES for the following: !at_end(). Valid until the next change.
  absl::string_view id() const { return cursors_[next_.top()].id(); }

  Document document() const {
    const Segment& segment = *segments_[next_.top()];
    const IdIndex::Cursor& cursor = cursors_[next_.top()];
    Document document = segment.Describe(
        segment.reader().documents().OrdinalAtRank(cursor.rank()));
    document.id = std::string(cursor.id());
    return document;
  }

  void Next() {
    const size_t i = next_.top();
    next_.pop();
    cursors_[i].Next();
    PushIfListed(i);
  }

  // Passes all ids that start with `prefix`. REQUIRES: id() does.
  void Pass(absl::string_view prefix) {
    while (!at_end() && absl::StartsWith(id(), prefix)) {
      const size_t i = next_.top();
      next_.pop();
      const IdIndex& ids = IdsOf(*segments_[i]);
      cursors_[i] = IdIndex::Cursor(ids, RankPast(ids, prefix));
      PushIfListed(i);
    }
  }

 private:
  // All ordinals of a later segment are higher.
  struct ComesLater {
    const ListingWalk* walk;

    bool operator()(size_t a, size_t b) const {
      const int order = walk->cursors_[a].id().compare(walk->cursors_[b].id());
      return order > 0 || (order == 0 && a > b);
    }
  };

  static const IdIndex& IdsOf(const Segment& segment) {
    return segment.reader().documents().ids();
  }

  uint64_t FirstRank(const Segment& segment, const IdCursor* after) {
    ++cost_.search_count;
    const uint64_t rank = IdsOf(segment).LowerBound(prefix_);
    if (after == nullptr) {
      return rank;
    }
    if (after->is_common_prefix) {
      return std::max(rank, RankPast(IdsOf(segment), after->id));
    }
    ++cost_.search_count;
    return std::max(
        rank, segment.reader().documents().RankAbove(after->id, after->ordinal,
                                                     segment.first_ordinal));
  }

  // The rank of the first id after all that start with `prefix`.
  uint64_t RankPast(const IdIndex& ids, absl::string_view prefix) {
    ++cost_.search_count;
    while (absl::ConsumeSuffix(&prefix, "\xFF")) {
    }
    if (prefix.empty()) {
      return ids.size();
    }
    std::string next(prefix);
    next.back() =
        static_cast<char>(static_cast<unsigned char>(next.back()) + 1);
    return ids.LowerBound(next);
  }

  // Returns false after the last id of the segment that is listed.
  bool PushIfListed(size_t i) {
    PassLater(i);
    if (cursors_[i].at_end()) {
      return false;
    }
    ++cost_.id_count;
    if (!absl::StartsWith(cursors_[i].id(), prefix_)) {
      return false;
    }
    next_.push(i);
    return true;
  }

  // Passes documents of the prefix at or above `end_`.
  void PassLater(size_t i) {
    const DocumentIndex& documents = segments_[i]->reader().documents();
    const uint64_t count = segments_[i]->CountBelow(end_);
    IdIndex::Cursor& cursor = cursors_[i];
    while (count < documents.count() && !cursor.at_end() &&
           documents.OrdinalAtRank(cursor.rank()) >= count &&
           absl::StartsWith(cursor.id(), prefix_)) {
      ++cost_.id_count;
      cursor.Next();
    }
  }

  const absl::string_view prefix_;
  const uint64_t end_;
  ListingCost cost_;
  // One for each of segments_.
  std::vector<const Segment*> segments_;
  std::vector<IdIndex::Cursor> cursors_;
  // Indexes of cursors at listed ids, the first id on top.
  std::priority_queue<size_t, std::vector<size_t>, ComesLater> next_;
};

Archive::ListingCost Archive::VisitListing(
    const Listing& listing,
    absl::FunctionRef<bool(const Document&)> visit_document,
    absl::FunctionRef<bool(absl::string_view common_prefix)> visit_prefix)
    const {
  ListingWalk walk(segments_, listing);
  while (!walk.at_end()) {
    const absl::string_view id = walk.id();
    const size_t found =
        listing.delimiter.empty()
            ? absl::string_view::npos
            : id.find(listing.delimiter, listing.prefix.size());
    if (found == absl::string_view::npos) {
      if (!visit_document(walk.document())) {
        break;
      }
      walk.Next();
    } else {
      const std::string common(id.substr(0, found + listing.delimiter.size()));
      if (!visit_prefix(common)) {
        break;
      }
      walk.Pass(common);
    }
  }
  return walk.cost();
}

void Archive::VisitDocuments(
    absl::string_view prefix, const std::optional<IdCursor>& after,
    absl::FunctionRef<bool(const Document&)> visit) const {
  VisitListing({.prefix = prefix, .after = after ? &*after : nullptr}, visit,
               [](absl::string_view) { return true; });
}

}  // namespace quire
