// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/archive/archive_writer.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

#include "codecs/base/checksum.h"
#include "codecs/base/status_macros.h"
#include "server/archive/files/symbol_table_file.h"
#include "server/archive/format/archive_format.h"
#include "server/archive/format/block_frame.h"
#include "server/archive/format/manifest.h"
#include "server/archive/format/segment_format.h"
#include "server/archive/segment_merger.h"
#include "server/archive/segment_reader.h"
#include "server/archive/segment_writer.h"

namespace quire {
namespace {

bool HasGoodFrames(const SegmentReader& segment) {
  std::vector<uint8_t> frame;
  for (uint64_t i = 0; i < segment.block_count(); ++i) {
    if (!segment.ReadFrame(i, frame).ok()) {
      return false;
    }
  }
  return true;
}

}  // namespace

std::string DefaultWriter() {
  return "quired " QUIRE_VERSION;
}

absl::Status ArchiveWriter::Check(
    const ArchiveWriterOptions& options,
    std::shared_ptr<const CodecContext>& context) {
  const CodecInfo* codec = FindCodec(options.codec.id);
  if (codec == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat(
        "there is no codec ", static_cast<uint32_t>(options.codec.id)));
  }
  if (options.codec.level < codec->level_min ||
      options.codec.level > codec->level_max) {
    return absl::InvalidArgumentError(absl::StrCat(
        "level ", options.codec.level, " of codec ", codec->name, ", expected ",
        codec->level_min, " to ", codec->level_max));
  }
  if (!IsBlockSize(options.block_size_bytes)) {
    return absl::InvalidArgumentError(
        absl::StrCat("block size ", options.block_size_bytes,
                     ", expected a power of two from 4 KiB to 1 MiB"));
  }
  const uint32_t partition_size = options.codec.partition_size_bytes;
  if (partition_size != 0 &&
      !(codec->takes_partitions && IsPartitionSize(partition_size))) {
    return absl::InvalidArgumentError(absl::StrCat(
        "partitions of ", partition_size, " bytes, with codec ", codec->name,
        " expected ",
        codec->takes_partitions ? "a power of two from 4 KiB to 1 MiB, or none"
                                : "none"));
  }
  if (!codec->needs_dictionary) {
    context = nullptr;
  } else if (context == nullptr ||
             context->dictionary.size() > kDictionaryTextSizeBytesMax) {
    return absl::InvalidArgumentError(
        absl::StrCat("codec ", codec->name, " needs a dictionary of at most ",
                     kDictionaryTextSizeBytesMax, " bytes"));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<ArchiveWriter>> ArchiveWriter::Create(
    const std::string& path, const ArchiveWriterOptions& options,
    std::shared_ptr<const CodecContext> context) {
  QUIRE_RETURN_IF_ERROR(Check(options, context));
  QUIRE_ASSIGN_OR_RETURN(PartialDirectory directory,
                         PartialDirectory::Create(path, options.replace));
  return std::unique_ptr<ArchiveWriter>(
      new ArchiveWriter(std::move(directory), options, std::move(context)));
}

absl::StatusOr<std::unique_ptr<ArchiveWriter>> ArchiveWriter::Continue(
    UnfinishedArchive unfinished, const ArchiveWriterOptions& options,
    std::shared_ptr<const CodecContext> context,
    const std::function<absl::Status(uint64_t size_bytes)>& on_read) {
  QUIRE_RETURN_IF_ERROR(Check(options, context));
  QUIRE_RETURN_IF_ERROR(
      unfinished.StartWriting(context != nullptr ? &*context : nullptr));
  std::unique_ptr<ArchiveWriter> writer(new ArchiveWriter(
      std::move(unfinished).Take(), options, std::move(context)));
  writer->is_resumable_ = true;
  QUIRE_RETURN_IF_ERROR(writer->ReadKept(on_read));
  return writer;
}

absl::Status ArchiveWriter::ReadKept(
    const std::function<absl::Status(uint64_t size_bytes)>& on_read) {
  for (uint32_t number = 0; number < kSegmentCountMax; ++number) {
    QUIRE_ASSIGN_OR_RETURN(KeptBlocks kept,
                           ReadKeptBlocks(directory_fd(), directory_name(),
                                          HeaderOf(number), on_read));
    if (kept.blocks.empty()) {
      break;
    }
    kept_.push_back(std::move(kept));
  }
  const std::string rest = SegmentFileName(static_cast<uint32_t>(kept_.size()));
  return directory_->RemoveFiles([&rest](absl::string_view name) {
    return IsSegmentFileName(name) && name >= rest;
  });
}

std::unique_ptr<ArchiveWriter> ArchiveWriter::Append(
    ArchiveChange change, const std::string& writer,
    decltype(ArchiveWriterOptions::on_segment) on_segment) {
  std::unique_ptr<ArchiveWriter> appending(
      new ArchiveWriter(std::move(change), nullptr));
  appending->manifest_.writer = writer.substr(0, kWriterSizeBytesMax);
  appending->on_segment_ = std::move(on_segment);
  return appending;
}

absl::StatusOr<std::unique_ptr<ArchiveWriter>> ArchiveWriter::Replace(
    ArchiveChange change, const std::string& writer, size_t first,
    const std::atomic<bool>* cancel) {
  std::unique_ptr<ArchiveWriter> replacing = Append(std::move(change), writer);
  const Manifest& manifest = replacing->manifest_;
  // Only these counts depend on blocks.
  if (manifest.codec.id == CodecId::kAuto ||
      !replacing->found_before_.empty()) {
    for (size_t i = first; i < manifest.segments.size(); ++i) {
      QUIRE_RETURN_IF_ERROR(replacing->Uncount(manifest.segments[i], cancel));
    }
  }
  replacing->RemoveSegments(first, manifest.segments.size());
  replacing->is_replacing_ = true;
  return replacing;
}

std::unique_ptr<ArchiveWriter> ArchiveWriter::Redact(
    ArchiveChange change, std::shared_ptr<const CodecContext> context) {
  std::unique_ptr<ArchiveWriter> redacting(
      new ArchiveWriter(std::move(change), std::move(context)));
  redacting->manifest_.writer = DefaultWriter();
  // They may have the id of a document that was added later. Their number
  // stays.
  redacting->manifest_.unread_inputs.clear();
  redacting->earlier_ = EarlierStates::kRedact;
  redacting->is_replacing_ = true;
  return redacting;
}

ArchiveWriter::~ArchiveWriter() {
  if (is_resumable_ && segment_.has_value()) {
    // On an error, a later writer does without the unwritten blocks.
    segment_->WriteBuffered().IgnoreError();
  }
}

absl::StatusOr<bool> ArchiveWriter::HasKeptBlock() {
  if (manifest_.segments.size() >= kept_.size()) {
    return false;
  }
  QUIRE_RETURN_IF_ERROR(StartSegment());
  return segment_->NextKept() != nullptr;
}

absl::StatusOr<KeptBlock> ArchiveWriter::KeepBlock(uint64_t size_bytes) {
  QUIRE_RETURN_IF_ERROR(StartSegment());
  const KeptBlock kept = *segment_->NextKept();
  QUIRE_RETURN_IF_ERROR(Keep(segment_->KeepBlock(size_bytes)));
  if (manifest_.codec.id == CodecId::kAuto) {
    members_.Add(kept.member, size_bytes, kept.payload_size_bytes);
  }
  return kept;
}

ArchiveWriter::ArchiveWriter(PartialDirectory directory,
                             const ArchiveWriterOptions& options,
                             std::shared_ptr<const CodecContext> dictionary)
    : directory_(std::move(directory)), on_segment_(options.on_segment) {
  manifest_.codec = options.codec;
  manifest_.block_size_bytes = options.block_size_bytes;
  manifest_.block_size_bytes_max = options.block_size_bytes;
  manifest_.writer = options.writer.substr(0, kWriterSizeBytesMax);
  next_level_ = options.codec.level;
  StartDictionary(std::move(dictionary));
}

ArchiveWriter::ArchiveWriter(ArchiveChange change,
                             std::shared_ptr<const CodecContext> dictionary)
    : change_(std::move(change)),
      manifest_(change_->manifest()),
      next_index_(manifest_.segments.size()),
      next_level_(manifest_.codec.level),
      found_before_(std::exchange(manifest_.found_members, {})),
      members_(manifest_.members) {
  if (manifest_.dictionary.has_value()) {
    dictionary_hash_ = manifest_.dictionary->hash;
  }
  StartDictionary(std::move(dictionary));
}

void ArchiveWriter::StartDictionary(
    std::shared_ptr<const CodecContext> context) {
  if (context != nullptr) {
    dictionary_hash_ = Checksum64(AsBytes(context->dictionary));
    dictionary_.emplace(directory_fd(), directory_name(), manifest_.codec,
                        std::move(context));
  }
}

int ArchiveWriter::directory_fd() const {
  return change_.has_value() ? change_->fd() : directory_->fd();
}

const std::string& ArchiveWriter::directory_name() const {
  return change_.has_value() ? change_->name() : directory_->name();
}

absl::Status ArchiveWriter::CopyBlock(uint64_t size_bytes,
                                      const Payload& payload) {
  QUIRE_RETURN_IF_ERROR(StartSegment());
  QUIRE_RETURN_IF_ERROR(Keep(segment_->CopyBlock(size_bytes, payload)));
  if (manifest_.codec.id == CodecId::kAuto) {
    members_.Add(MemberOf(payload, manifest_.codec.partition_size_bytes != 0),
                 size_bytes, payload.bytes.size());
  }
  if (payload.has_recipe) {
    manifest_.has_recipes = true;
    inflated_.Add(payload.bytes);
  }
  return absl::OkStatus();
}

absl::Status ArchiveWriter::AddDocument(const NewDocument& document) {
  QUIRE_RETURN_IF_ERROR(StartSegment());
  return Keep(segment_->AddDocument(document));
}

absl::Status ArchiveWriter::CarryDocuments(const SegmentReader& from,
                                           const LeftOut& left_out) {
  QUIRE_RETURN_IF_ERROR(StartSegment());
  return Keep(segment_->CarryDocuments(from, left_out));
}

absl::Status ArchiveWriter::SetFields(std::vector<FieldColumn> columns) {
  QUIRE_RETURN_IF_ERROR(status_);
  fields_ = std::move(columns);
  return segment_.has_value() ? Keep(segment_->AddFieldColumns(fields_))
                              : absl::OkStatus();
}

absl::Status ArchiveWriter::SetLayout(LayoutSection layout,
                                      DocumentIndexBuilder documents) {
  QUIRE_RETURN_IF_ERROR(StartSegment());
  return Keep(segment_->SetLayout(std::move(layout), std::move(documents)));
}

absl::Status ArchiveWriter::FinishSegment() {
  QUIRE_RETURN_IF_ERROR(status_);
  if (!segment_.has_value()) {
    return absl::OkStatus();
  }
  absl::StatusOr<ManifestSegment> segment = segment_->Finish();
  manifest_.block_size_bytes_max = std::max(manifest_.block_size_bytes_max,
                                            segment_->block_size_bytes_max());
  manifest_.slices_per_mib_max =
      std::max(manifest_.slices_per_mib_max, segment_->slices_per_mib_max());
  segment_.reset();
  QUIRE_RETURN_IF_ERROR(Keep(segment.status()));
  segment->codec_level = next_level_;
  const std::string name = SegmentFileName(segment->number);
  manifest_.next_segment_number = segment->number + 1;
  manifest_.segments.insert(
      manifest_.segments.begin() + static_cast<ptrdiff_t>(next_index_),
      *std::move(segment));
  ++next_index_;
  return on_segment_ == nullptr ? absl::OkStatus()
                                : Keep(on_segment_(directory_name(), name));
}

absl::Status ArchiveWriter::SetSymbolTable(absl::string_view serialised) {
  QUIRE_RETURN_IF_ERROR(status_);
  if (manifest_.symbol_table.has_value()) {
    return Keep(absl::InvalidArgumentError("an archive has one symbol table"));
  }
  const auto entry = WriteSymbolTableFile(directory_fd(), directory_name(),
                                          AsBytes(serialised));
  QUIRE_RETURN_IF_ERROR(Keep(entry.status()));
  manifest_.symbol_table = *entry;
  return absl::OkStatus();
}

absl::StatusOr<ArchiveInfo> ArchiveWriter::Commit() {
  QUIRE_RETURN_IF_ERROR(FinishSegment());
  if (manifest_.segments.size() < kept_.size()) {
    return Keep(absl::FailedPreconditionError(
        absl::StrCat(directory_name(), ": ", kept_.size(),
                     " segments were kept and only ", manifest_.segments.size(),
                     " belong here; remove the directory and start again")));
  }
  if (dictionary_.has_value()) {
    absl::StatusOr<ManifestDictionary> dictionary = dictionary_->Finish();
    QUIRE_RETURN_IF_ERROR(Keep(dictionary.status()));
    manifest_.dictionary = *dictionary;
  }
  CountMembers();
  absl::StatusOr<ArchiveInfo> published = Publish();
  Keep(published.ok()
           ? absl::FailedPreconditionError("the archive is written already")
           : published.status())
      .IgnoreError();
  return published;
}

void ArchiveWriter::CountMembers() {
  manifest_.members = members_.members();
  for (const KeptBlocks& kept : kept_) {
    manifest_.has_recipes |= kept.has_recipes;
    inflated_.Add(kept.inflated);
  }
  std::vector<FoundMembers> all = found_before_;
  for (FoundMembers& found : manifest_.found_members) {
    // Found in replaced text before.
    if (is_replacing_ && !found_before_.empty()) {
      found = {.container = found.container};
    }
    found.inflated = {};
    AddFoundMembers(found, all);
  }
  for (FoundMembers& found : all) {
    const InflatedMembers& gone = inflated_before_.of(found.container);
    const InflatedMembers& added = inflated_.of(found.container);
    InflatedMembers& left = found.inflated;
    left.count -= std::min(left.count, gone.count);
    left.count += added.count;
    left.size_bytes -= std::min(left.size_bytes, gone.size_bytes);
    left.size_bytes += added.size_bytes;
    left.stored_size_bytes -=
        std::min(left.stored_size_bytes, gone.stored_size_bytes);
    left.stored_size_bytes += added.stored_size_bytes;
  }
  manifest_.found_members = std::move(all);
}

absl::StatusOr<ArchiveInfo> ArchiveWriter::Publish() {
  if (change_.has_value()) {
    if (is_replacing_) {
      QUIRE_RETURN_IF_ERROR(CheckReplaced());
    }
    if (!HasNewSegments() && !change_->is_copy()) {
      return change_->manifest().Describe(
          EncodeManifest(change_->manifest()).size());
    }
    QUIRE_ASSIGN_OR_RETURN(committed_,
                           change_->Commit(std::move(manifest_), earlier_));
    return committed_->manifest.Describe(committed_->file_size_bytes);
  }
  manifest_.uuid = manifest_.DeriveUuid();
  const std::string file = EncodeManifest(manifest_);
  // Never publish a manifest that readers reject.
  QUIRE_RETURN_IF_ERROR(ParseManifest(AsBytes(file)).status());
  QUIRE_RETURN_IF_ERROR(directory_->WriteManifest(AsBytes(file)));
  QUIRE_RETURN_IF_ERROR(directory_->Publish());
  return manifest_.Describe(file.size());
}

bool ArchiveWriter::HasNewSegments() const {
  return manifest_.next_segment_number !=
         change_->manifest().next_segment_number;
}

ArchiveWriter::Appended ArchiveWriter::appended() const {
  Appended appended;
  for (const ManifestSegment& segment : manifest_.segments) {
    if (segment.number >= change_->manifest().next_segment_number) {
      ++appended.segment_count;
      appended.size_bytes += segment.size_bytes;
      appended.stored_text_size_bytes += segment.stored_text_size_bytes;
      appended.file_size_bytes += segment.file_size_bytes;
    }
  }
  return appended;
}

absl::StatusOr<uint32_t> ArchiveWriter::JoinSegments(
    const PayloadCodec& codec, uint64_t size_bytes_max,
    const std::atomic<bool>* cancel) {
  QUIRE_RETURN_IF_ERROR(FinishSegment());
  const size_t first =
      FirstToJoin(manifest_.segments, size_bytes_max, LayoutSegments::kStay);
  const size_t count = manifest_.segments.size() - first;
  if (!HasNewSegments() || count < 2) {
    return 0;
  }
  const std::vector<ManifestSegment> joined(
      manifest_.segments.begin() + static_cast<ptrdiff_t>(first),
      manifest_.segments.end());
  MemberCount members = members_;
  bool is_new_damaged = false;
  absl::StatusOr<ManifestSegment> segment =
      Join(joined, codec, cancel, members, is_new_damaged);
  if (absl::IsDataLoss(segment.status()) && !is_new_damaged) {
    // The new segments are whole, and all others stay as they are.
    QUIRE_RETURN_IF_ERROR(Keep(
        change_->RemoveNew(SegmentFileName(manifest_.next_segment_number))));
    return segment.status();
  }
  QUIRE_RETURN_IF_ERROR(Keep(segment.status()));
  members_ = std::move(members);
  for (const ManifestSegment& old : joined) {
    if (old.number >= change_->manifest().next_segment_number) {
      QUIRE_RETURN_IF_ERROR(
          Keep(change_->RemoveNew(SegmentFileName(old.number))));
    }
  }
  manifest_.segments.resize(first);
  manifest_.next_segment_number = segment->number + 1;
  manifest_.segments.push_back(*std::move(segment));
  next_index_ = manifest_.segments.size();
  return static_cast<uint32_t>(count);
}

absl::StatusOr<ManifestSegment> ArchiveWriter::Join(
    std::span<const ManifestSegment> joined, const PayloadCodec& codec,
    const std::atomic<bool>* cancel, MemberCount& members,
    bool& is_new_damaged) {
  QUIRE_ASSIGN_OR_RETURN(const uint32_t number, NextNumber());
  QUIRE_ASSIGN_OR_RETURN(SegmentWriter writer,
                         SegmentWriter::Create(directory_fd(), directory_name(),
                                               HeaderOf(number)));
  SegmentMerger merger(
      writer, codec, manifest_.block_size_bytes,
      manifest_.codec.id == CodecId::kAuto ? &members : nullptr, cancel);
  for (const ManifestSegment& segment : joined) {
    const bool is_new =
        segment.number >= change_->manifest().next_segment_number;
    QUIRE_ASSIGN_OR_RETURN(const SegmentFile file, OpenSegmentFile(segment));
    const auto reader = SegmentReader::Open(file, manifest_, segment, cancel);
    const absl::Status added =
        reader.ok() ? merger.Add(*reader) : reader.status();
    if (absl::IsDataLoss(added)) {
      // Also the last block before can be damaged, or its count in MANIFEST.
      is_new_damaged = is_new && !(reader.ok() && HasGoodFrames(*reader));
    }
    QUIRE_RETURN_IF_ERROR(added);
  }
  QUIRE_RETURN_IF_ERROR(merger.Finish());
  QUIRE_ASSIGN_OR_RETURN(ManifestSegment segment, writer.Finish());
  manifest_.slices_per_mib_max =
      std::max(manifest_.slices_per_mib_max, writer.slices_per_mib_max());
  segment.codec_level = manifest_.codec.level;
  return segment;
}

absl::StatusOr<SegmentFile> ArchiveWriter::OpenSegmentFile(
    const ManifestSegment& segment) const {
  const bool is_new = segment.number >= change_->manifest().next_segment_number;
  const std::string name = SegmentFileName(segment.number);
  SegmentFile file;
  QUIRE_ASSIGN_OR_RETURN(
      file.file,
      OpenReadableFile(
          is_new ? change_->fd() : change_->archive_fd(), name,
          absl::StrCat(is_new ? change_->name() : change_->path(), "/", name)));
  return file;
}

absl::Status ArchiveWriter::ReplaceSegment(size_t index) {
  QUIRE_RETURN_IF_ERROR(status_);
  RemoveSegments(index, index + 1);
  return StartSegment();
}

void ArchiveWriter::RemoveSegments(size_t first, size_t end) {
  next_index_ = first;
  if (first < end) {
    next_level_ = manifest_.segments[end - 1].codec_level;
  }
  manifest_.segments.erase(
      manifest_.segments.begin() + static_cast<ptrdiff_t>(first),
      manifest_.segments.begin() + static_cast<ptrdiff_t>(end));
}

absl::Status ArchiveWriter::Uncount(const ManifestSegment& segment,
                                    const std::atomic<bool>* cancel) {
  QUIRE_ASSIGN_OR_RETURN(const SegmentFile file, OpenSegmentFile(segment));
  QUIRE_ASSIGN_OR_RETURN(const SegmentReader reader,
                         SegmentReader::Open(file, manifest_, segment, cancel));
  std::vector<uint8_t> frame;
  for (uint64_t i = 0; i < reader.block_count(); ++i) {
    if (cancel != nullptr && *cancel) {
      return absl::CancelledError("counting replaced blocks was interrupted");
    }
    const uint32_t size_bytes = reader.BlockSizeBytes(i);
    QUIRE_RETURN_IF_ERROR(reader.ReadFrame(i, frame).status());
    QUIRE_ASSIGN_OR_RETURN(const Payload payload,
                           ParseFrame(frame, size_bytes));
    QUIRE_RETURN_IF_ERROR(UncountBlock(size_bytes, payload));
  }
  return absl::OkStatus();
}

absl::Status ArchiveWriter::UncountBlock(uint64_t size_bytes,
                                         const Payload& payload) {
  if (manifest_.codec.id == CodecId::kAuto) {
    QUIRE_RETURN_IF_ERROR(Keep(members_.Remove(
        MemberOf(payload, manifest_.codec.partition_size_bytes != 0),
        size_bytes, payload.bytes.size())));
  }
  if (payload.has_recipe) {
    inflated_before_.Add(payload.bytes);
  }
  return absl::OkStatus();
}

absl::Status ArchiveWriter::CheckReplaced() const {
  const ArchiveInfo before = change_->manifest().Describe(0);
  const ArchiveInfo after = manifest_.Describe(0);
  return before.size_bytes == after.size_bytes &&
                 before.document_count == after.document_count
             ? absl::OkStatus()
             : absl::FailedPreconditionError(absl::StrCat(
                   change_->path(), ": the new segments have ",
                   after.document_count, " documents of ", after.size_bytes,
                   " bytes with those that stay, expected ",
                   before.document_count, " of ", before.size_bytes,
                   "; the archive is unchanged"));
}

absl::StatusOr<uint32_t> ArchiveWriter::NextNumber() const {
  const uint32_t number = manifest_.next_segment_number;
  if (number > kSegmentNumberMax) {
    return absl::InvalidArgumentError(
        absl::StrCat("all segment numbers up to ", kSegmentNumberMax,
                     " are used: recompress the archive"));
  }
  return number;
}

absl::Status ArchiveWriter::StartSegment() {
  QUIRE_RETURN_IF_ERROR(status_);
  if (segment_.has_value()) {
    return absl::OkStatus();
  }
  if (manifest_.segments.size() == kSegmentCountMax) {
    return absl::InvalidArgumentError(
        absl::StrCat("an archive has at most ", kSegmentCountMax, " segments"));
  }
  QUIRE_ASSIGN_OR_RETURN(const uint32_t number, NextNumber());
  const SegmentHeader header = HeaderOf(number);
  absl::StatusOr<SegmentWriter> segment =
      number < kept_.size()
          ? SegmentWriter::Continue(directory_fd(), directory_name(), header,
                                    std::move(kept_[number]))
          : SegmentWriter::Create(directory_fd(), directory_name(), header);
  QUIRE_RETURN_IF_ERROR(Keep(segment.status()));
  segment_.emplace(*std::move(segment));
  QUIRE_RETURN_IF_ERROR(Keep(segment_->AddFieldColumns(fields_)));
  if (is_resumable_) {
    directory_->KeepUnpublished();
  }
  return absl::OkStatus();
}

SegmentHeader ArchiveWriter::HeaderOf(uint32_t segment_number) const {
  return {.number = segment_number,
          .block_size_bytes = manifest_.block_size_bytes,
          .codec_id = static_cast<uint32_t>(manifest_.codec.id),
          .partition_size_bytes = manifest_.codec.partition_size_bytes,
          .dictionary_hash = dictionary_hash_};
}

absl::Status ArchiveWriter::Keep(const absl::Status& status) {
  if (status_.ok()) {
    status_ = status;
  }
  return status;
}

}  // namespace quire
