// SPDX-License-Identifier: GPL-3.0-or-later
//
// Archive: opening, and parts taken from an archive opened earlier.
#include <algorithm>
#include <atomic>
#include <iterator>
#include <numeric>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"

#include "codecs/base/printable_text.h"
#include "codecs/base/status_macros.h"
#include "server/archive/archive.h"
#include "server/archive/archive_parts.h"
#include "server/archive/deposited_files.h"
#include "server/archive/files/dictionary_file.h"
#include "server/archive/files/ordered_openings.h"
#include "server/archive/format/section_compression.h"

namespace quire {
namespace {

// Memory of a decoder's tables and of the objects around the indexes.
constexpr uint64_t kFixedMemoryBytes = 64 << 10;
// An earlier state with its uuid and its place in the order.
constexpr uint64_t kStateMemoryBytes = 160;

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
  size_bytes += (manifest.history.size() + manifest.redacted_states.size()) *
                kStateMemoryBytes;
  size_bytes += FilterBytes(manifest);
  return size_bytes;
}

}  // namespace

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
  states_.resize(info_.history.size() + info_.redacted_states.size());
  std::iota(states_.begin(), states_.end(), 0);
  // The history precedes redacted states of the same uuid.
  std::ranges::sort(states_, {}, [this](uint32_t i) {
    return std::pair(absl::string_view(StateAt(i).uuid), i);
  });
  memory_bytes_max_ = PlannedMemoryBytes(manifest);
  QUIRE_RETURN_IF_ERROR(LoadCodec(manifest, files, options));
  QUIRE_RETURN_IF_ERROR(OpenSegments(manifest, files, options));
  uint64_t redacted_end = 0;
  for (const ArchiveState& state : info_.redacted_states) {
    redacted_end = std::max(redacted_end, state.document_count);
  }
  uint64_t start = 0;
  uint64_t first_ordinal = 0;
  for (uint32_t i = 0; i < segments_.size(); ++i) {
    Segment& segment = segments_[i];
    index_of_number_.emplace(segment.opened->description.number, i);
    segment.start = start;
    segment.first_ordinal = first_ordinal;
    segment.redacted_end = redacted_end;
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
  JoinDeposits();
  const absl::Status fields = JoinFields();
  if (!fields.ok() && options.without_damaged_indexes) {
    index_damages_.push_back(fields);
    return absl::OkStatus();
  }
  return fields;
}

void Archive::JoinDeposits() {
  for (uint32_t i = 0; i < segments_.size(); ++i) {
    deposited_files_->Add(i, segments_[i].start,
                          segments_[i].reader().deposits());
  }
  deposited_files_->Finish();
  memory_.document_attributes_bytes += deposited_files_->MemoryBytes();
}

absl::Status Archive::JoinFields() {
  absl::Status problem;
  for (const Segment& segment : segments_) {
    if (segment.reader().container().has_unknown_parts &&
        info_.unknown_part.empty()) {
      info_.unknown_part =
          absl::StrCat("segment ", segment.opened->description.number,
                       " has a container with parts");
    }
    for (const FieldColumn& column : segment.reader().fields().columns()) {
      problem.Update(InFile(
          SegmentPath(static_cast<uint32_t>(&segment - segments_.data())),
          JoinColumn(column, fields_)));
    }
  }
  for (const FieldColumn& column : fields_) {
    memory_.document_attributes_bytes +=
        sizeof(FieldColumn) + column.name.capacity();
  }
  return problem;
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

}  // namespace quire
