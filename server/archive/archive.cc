// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/archive/archive.h"

#include <algorithm>
#include <queue>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

#include "codecs/base/status_macros.h"
#include "server/archive/files/archive_directory.h"
#include "server/archive/files/dictionary_file.h"
#include "server/archive/files/file_io.h"
#include "server/archive/files/symbol_table_file.h"
#include "server/archive/format/manifest.h"
#include "server/archive/format/section_compression.h"
#include "server/archive/segment_reader.h"

namespace quire {
namespace {

// Memory of a decoder's tables and of the objects around the indexes.
constexpr uint64_t kFixedMemoryBytes = 64 << 10;

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
  return size_bytes;
}

}  // namespace

struct Archive::Segment {
  SegmentFile file;
  // Reader of `file`.
  SegmentReader reader;
  // Start of the segment in the logical space and among the ordinals.
  uint64_t start = 0;
  uint64_t first_ordinal = 0;

  Document Describe(uint64_t local_ordinal) const;
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

absl::StatusOr<ArchiveOutline> Archive::ReadOutline(const std::string& path) {
  ArchiveOutline outline;
  const absl::Status status =
      WithArchiveDirectory(path, [&](const ArchiveDirectory& directory) {
        const Manifest& manifest = directory.manifest;
        const ArchiveFiles files = OpenArchiveFiles(directory, DirectIo::kOff);
        QUIRE_RETURN_IF_ERROR(files.FirstFault(manifest));
        outline = {
            .info = manifest.Describe(directory.manifest_file.size_bytes),
            .files = files.Identify(directory),
            .memory_bytes = PlannedMemoryBytes(manifest)};
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
  return segments_[segment_index].file.file.path;
}

absl::Status Archive::Load(const ArchiveDirectory& directory,
                           const ArchiveOpenOptions& options) {
  const Manifest& manifest = directory.manifest;
  ArchiveFiles files = OpenArchiveFiles(directory, options.direct_io);
  QUIRE_RETURN_IF_ERROR(files.FirstFault(manifest));
  files_ = files.Identify(directory);
  direct_io_note_ = std::move(files.direct_io_note);
  info_ = manifest.Describe(directory.manifest_file.size_bytes);
  memory_bytes_max_ = PlannedMemoryBytes(manifest);
  auto context = std::make_shared<CodecContext>();
  if (files.dictionary.has_value()) {
    QUIRE_ASSIGN_OR_RETURN(
        context->dictionary,
        ReadDictionaryFile(**files.dictionary, *manifest.dictionary,
                           options.cancel));
    // Blocks copy from random offsets of it.
    PreferHugePages(AsMutableBytes(context->dictionary));
    memory_.dictionary_bytes = context->dictionary.capacity();
  }
  if (files.symbol_table.has_value()) {
    QUIRE_ASSIGN_OR_RETURN(
        context->symbol_table,
        ReadSymbolTableFile(**files.symbol_table, *manifest.symbol_table));
    memory_.symbol_table_bytes = kSymbolTableMemoryBytes;
  }
  context_ = std::move(context);
  auto codec =
      MakePayloadCodec(manifest.codec, context_, CodecUse::kDecode,
                       manifest.has_recipes ? kInflatedLargeSizeMax : 0);
  QUIRE_RETURN_IF_ERROR(InFile(path_, codec.status()));
  codec_ = *std::move(codec);
  memory_.codec_bytes = codec_->MemoryBytes();
  uint64_t start = 0;
  uint64_t first_ordinal = 0;
  segments_.reserve(manifest.segments.size());
  for (size_t i = 0; i < manifest.segments.size(); ++i) {
    if (options.cancel != nullptr && *options.cancel) {
      return absl::CancelledError(
          absl::StrCat(path_, ": opening it was cancelled"));
    }
    const ManifestSegment& expected = manifest.segments[i];
    SegmentFile file = *std::move(files.segments[i]);
    QUIRE_ASSIGN_OR_RETURN(
        SegmentReader reader,
        SegmentReader::Open(
            file, manifest, expected, options.cancel,
            options.without_damaged_indexes ? &index_damages_ : nullptr));
    reader.AddMemory(memory_);
    description_size_bytes_max_ =
        std::max(description_size_bytes_max_,
                 reader.documents().DescriptionSizeBytesMax());
    segments_.push_back(
        {std::move(file), std::move(reader), start, first_ordinal});
    start += expected.size_bytes;
    first_ordinal += expected.document_count;
  }
  return absl::OkStatus();
}

const SegmentReader& Archive::SegmentOf(BlockAddress block) const {
  return segments_[block.segment_index].reader;
}

uint32_t Archive::BlockSizeBytes(BlockAddress block) const {
  return SegmentOf(block).BlockSizeBytes(block.block_index);
}

Extent Archive::BlockExtent(BlockAddress block) const {
  return SegmentOf(block).BlockExtent(block.block_index);
}

uint64_t Archive::SegmentBlockCount(uint32_t segment_index) const {
  return segments_[segment_index].reader.block_count();
}

uint64_t Archive::SegmentStart(uint32_t segment_index) const {
  return segments_[segment_index].start;
}

const SegmentLayout& Archive::SegmentLayoutOf(uint32_t segment_index) const {
  return segments_[segment_index].reader.layout();
}

absl::Status Archive::DecodeBlock(BlockAddress block, ByteView frame,
                                  std::span<const BlockPart> parts,
                                  PayloadCodec::Scratch& scratch) const {
  return SegmentOf(block).DecodeBlock(block.block_index, frame, parts, *codec_,
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
  return segment.DecodeCheckedFrame(block.block_index, frame, raw, *codec_,
                                    scratch);
}

absl::StatusOr<Payload> Archive::ReadPayload(
    BlockAddress block, std::vector<uint8_t>& frame) const {
  QUIRE_RETURN_IF_ERROR(
      SegmentOf(block).ReadFrame(block.block_index, frame).status());
  return ParseFrame(frame, BlockSizeBytes(block));
}

Document Archive::Segment::Describe(uint64_t local_ordinal) const {
  Document document = reader.documents().Describe(local_ordinal);
  document.ordinal.value = first_ordinal + local_ordinal;
  document.range.offset.value += start;
  return document;
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
    const SegmentReader& reader = segments_[segment_index].reader;
    const uint64_t size_bytes = std::min(left, reader.size_bytes() - offset);
    PlanInSegment(segment_index, offset, size_bytes, slices);
    left -= size_bytes;
  }
  return slices;
}

void Archive::PlanInSegment(size_t segment_index, uint64_t offset,
                            uint64_t size_bytes,
                            std::vector<BlockSlice>& slices) const {
  const SegmentReader& reader = segments_[segment_index].reader;
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
  document.id = segment.reader.documents().Id(local);
  return document;
}

absl::StatusOr<LogicalRange> Archive::GetDocumentRange(
    DocumentOrdinal ordinal) const {
  QUIRE_RETURN_IF_ERROR(CheckOrdinal(ordinal));
  const Segment& segment = SegmentOfDocument(ordinal.value);
  LogicalRange range =
      segment.reader.documents().Range(ordinal.value - segment.first_ordinal);
  range.offset.value += segment.start;
  return range;
}

absl::StatusOr<std::vector<DocumentOrdinal>> Archive::FindDocuments(
    absl::string_view id) const {
  std::vector<DocumentOrdinal> found;
  for (const Segment& segment : segments_) {
    const DocumentIndex& documents = segment.reader.documents();
    const IdIndex::Ranks ranks = documents.ids().Find(id);
    for (uint64_t rank = ranks.begin; rank < ranks.end; ++rank) {
      found.push_back({segment.first_ordinal + documents.OrdinalAtRank(rank)});
    }
  }
  if (found.empty()) {
    return absl::NotFoundError(
        absl::StrCat("there is no document \"", id, "\""));
  }
  return found;
}

Archive::FoundDocument Archive::FindDocument(
    absl::string_view id, std::optional<uint64_t> occurrence) const {
  FoundDocument found;
  for (const Segment& segment : segments_) {
    const DocumentIndex& documents = segment.reader.documents();
    const IdIndex::Ranks ranks = documents.ids().Find(id);
    // An occurrence in an earlier segment wraps to a rank far above the number
    // of documents.
    const uint64_t end = found.count + ranks.count();
    const uint64_t rank = ranks.end - (end - occurrence.value_or(end - 1));
    if (rank - ranks.begin < ranks.count()) {
      found.ordinal = {segment.first_ordinal + documents.OrdinalAtRank(rank)};
    }
    found.count = end;
  }
  return found;
}

Archive::FoundDocument Archive::FindCapture(
    absl::string_view id, const DocumentSelection& selection) const {
  FoundDocument found;
  std::optional<Capture> best;
  for (const Segment& segment : segments_) {
    const DocumentIndex& documents = segment.reader.documents();
    const IdIndex::Ranks ranks = documents.ids().Find(id);
    found.count += ranks.count();
    std::optional<Capture> capture = documents.FindCapture(ranks, selection);
    if (capture.has_value()) {
      capture->ordinal += segment.first_ordinal;
      if (!best.has_value() || capture->IsBetterThan(*best, selection)) {
        best = capture;
      }
    }
  }
  if (best.has_value()) {
    found.ordinal = {best->ordinal};
  }
  return found;
}

std::vector<std::string> Archive::RecordTypesOf(absl::string_view id,
                                                size_t count_max) const {
  std::vector<std::string> types;
  for (const Segment& segment : segments_) {
    const DocumentIndex& documents = segment.reader.documents();
    documents.AddRecordTypes(documents.ids().Find(id), count_max, types);
  }
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
      segment.reader.documents().At(offset.value - segment.start)};
}

// Ids of all segments from the start of a listing on, merged. Borrows the
// segments.
class Archive::ListingWalk {
 public:
  ListingWalk(const std::vector<Segment>& segments, const Listing& listing)
      : prefix_(listing.prefix), next_(ComesLater{this}) {
    cursors_.reserve(segments.size());
    for (const Segment& segment : segments) {
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
        segment.reader.documents().OrdinalAtRank(cursor.rank()));
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
    return segment.reader.documents().ids();
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
        rank, segment.reader.documents().RankAbove(after->id, after->ordinal,
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

  const absl::string_view prefix_;
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
