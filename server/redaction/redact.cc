// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/redaction/redact.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

#include "codecs/base/bytes.h"
#include "codecs/base/checksum.h"
#include "codecs/base/printable_text.h"
#include "codecs/base/status_macros.h"
#include "codecs/payload/payload_codec.h"
#include "codecs/payload/recipe.h"
#include "server/archive/archive.h"
#include "server/archive/archive_part.h"
#include "server/archive/archive_writer.h"
#include "server/archive/carried_documents.h"
#include "server/archive/deposited_files.h"
#include "server/archive/files/archive_change.h"
#include "server/archive/files/archive_directory.h"
#include "server/archive/format/layout_section.h"
#include "server/archive/format/manifest.h"
#include "server/archive/index/document_index_builder.h"
#include "server/archive/segment_reader.h"
#include "server/ingest/blocks/block_stage.h"
#include "server/redaction/inflated_block.h"
#include "server/redaction/removed_documents.h"
#include "server/redaction/segment_redaction.h"

namespace quire {
namespace {

// Zeros the parts of a text that begins at `begin`.
void ZeroIn(std::span<const TextInterval> intervals, uint64_t begin,
            MutableByteView text) {
  const uint64_t end = begin + text.size();
  for (auto interval =
           std::ranges::upper_bound(intervals, begin, {}, &TextInterval::end);
       interval != intervals.end() && interval->begin < end; ++interval) {
    const uint64_t from = std::max(interval->begin, begin);
    const uint64_t to = std::min(interval->end, end);
    std::ranges::fill(text.subspan(from - begin, to - from), uint8_t{0});
  }
}

// Reports progress. Errors: Cancelled.
absl::Status Report(const RedactOptions& options,
                    const RedactProgress& progress) {
  if (options.on_progress) {
    options.on_progress(progress);
  }
  return progress.phase != RedactPhase::kProve && options.cancel != nullptr &&
                 *options.cancel
             ? absl::CancelledError(
                   "the redaction was interrupted; nothing was changed")
             : absl::OkStatus();
}

// One removal. Used once.
class Redactor {
 public:
  Redactor(const Archive& archive, Manifest manifest, RemovedDocuments removed,
           const RedactOptions& options)
      : archive_(archive),
        manifest_(std::move(manifest)),
        removed_(std::move(removed)),
        options_(options),
        block_(archive) {}

  const RemovedDocuments& removed() const { return removed_; }

  // Decides which files change.
  absl::Status Prepare();
  // Counts the blocks that would change.
  absl::Status CountBlocks();
  // Writes the new segments: blocks with unchanged text are copied, except
  // those that the new dictionary decodes to another text. `writer` is that of
  // ArchiveWriter::Redact() with new_context().
  absl::Status Write(ArchiveWriter& writer);

  // With the new dictionary; null if the old one stays.
  const std::shared_ptr<const CodecContext>& new_context() const {
    return new_context_;
  }

  RedactReport& report() { return report_; }

  // Returns a callback that reports progress in a phase and observes the
  // cancellation.
  OnTextRead Reader(RedactPhase phase) {
    return [this, phase, done = uint64_t{0}](uint64_t size_bytes) mutable {
      done += size_bytes;
      return Report(options_, {.phase = phase, .done_bytes = done});
    };
  }

 private:
  bool IsDictionaryNew() const { return new_context_ != nullptr; }

  // Finds the deposited files that have removed text, or may have: a part of an
  // incomplete file may have bytes of documents of the next segment.
  void FindDeposits();
  // Indexes of their portions in a segment.
  std::vector<size_t> DepositsIn(uint32_t segment_index) const;
  // Segments that are written anew.
  std::vector<uint32_t> Segments() const;
  // The ordinal of the first document of a segment.
  uint64_t FirstOrdinal(uint32_t segment_index) const;
  std::span<const uint64_t> RemovedIn(uint32_t segment_index) const;
  absl::Status RedactTheDictionary();
  absl::StatusOr<std::unique_ptr<PayloadCodec>> NewCodec(CodecUse use) const;
  // True if the block has the same text with both codecs.
  absl::StatusOr<bool> DecodesAlike(InflatedBlock& block, BlockAddress address,
                                    const PayloadCodec& codec,
                                    PayloadCodec::Scratch& scratch);

  absl::Status WriteBlocks(uint32_t segment_index, const SegmentRedaction& plan,
                           const OnTextRead& on_read, BlockStage& stage,
                           ArchiveWriter& writer);
  absl::Status WriteBlock(uint64_t begin, const SegmentRedaction& plan,
                          uint32_t size_bytes, BlockStage& stage);
  absl::Status WriteDocuments(uint32_t segment_index,
                              const SegmentRedaction& plan,
                              ArchiveWriter& writer);
  // Returns the checksums of the text of the new segment; none if the old one
  // has none.
  absl::StatusOr<std::vector<TextChecksum>> ChecksumText(
      uint32_t segment_index, std::span<const TextInterval> removed);

  const Archive& archive_;
  const Manifest manifest_;
  const RemovedDocuments removed_;
  const RedactOptions& options_;
  std::shared_ptr<const CodecContext> new_context_;
  // Segments and indexes of the portions of deposited files that are left out.
  std::vector<std::pair<uint32_t, size_t>> deposits_;
  InflatedBlock block_;
  RedactReport report_;
};

std::span<const uint64_t> Redactor::RemovedIn(uint32_t segment_index) const {
  const uint64_t begin = FirstOrdinal(segment_index);
  return removed_.OrdinalsIn(
      begin, begin + manifest_.segments[segment_index].document_count);
}

uint64_t Redactor::FirstOrdinal(uint32_t segment_index) const {
  uint64_t ordinal = 0;
  for (uint32_t i = 0; i < segment_index; ++i) {
    ordinal += manifest_.segments[i].document_count;
  }
  return ordinal;
}

void Redactor::FindDeposits() {
  const auto leave_out = [this](const DepositedFile& file) {
    for (const DepositedFile::Portion& portion : file.portions) {
      deposits_.emplace_back(portion.segment_index, portion.index);
    }
  };
  for (const DepositedFile& file : archive_.deposited_files().files()) {
    if (file.state == DepositState::kKept &&
        removed_.HasDocumentIn(file.text)) {
      ++report_.withdrawn_file_count;
      leave_out(file);
    }
  }
  for (const DepositedFile& file :
       archive_.deposited_files().incomplete_files()) {
    if (HasDepositPages(archive_, file)) {
      leave_out(file);
    }
  }
  std::ranges::sort(deposits_);
}

std::vector<size_t> Redactor::DepositsIn(uint32_t segment_index) const {
  std::vector<size_t> indexes;
  for (const auto& [segment, index] : deposits_) {
    if (segment == segment_index) {
      indexes.push_back(index);
    }
  }
  return indexes;
}

std::vector<uint32_t> Redactor::Segments() const {
  std::vector<uint32_t> segments;
  for (uint32_t i = 0; i < manifest_.segments.size(); ++i) {
    if (IsDictionaryNew() || !RemovedIn(i).empty() || !DepositsIn(i).empty()) {
      segments.push_back(i);
    }
  }
  return segments;
}

absl::Status Redactor::Prepare() {
  report_.before = archive_.info();
  report_.document_count = removed_.ordinals().size();
  report_.named_count = removed_.named_count();
  report_.matched_count = removed_.matched_count();
  report_.renumbered_id_count = removed_.renumbered_id_count();
  report_.size_bytes = removed_.size_bytes();
  if (options_.with_items) {
    QUIRE_ASSIGN_OR_RETURN(report_.items, removed_.Items(archive_));
  }
  FindDeposits();
  QUIRE_ASSIGN_OR_RETURN(
      report_.references,
      FindKeptReferences(
          archive_,
          {.is_removed =
               [this](DocumentOrdinal ordinal) {
                 return !removed_.OrdinalsIn(ordinal.value, ordinal.value + 1)
                             .empty();
               },
           .with_unlocated = options_.where.has_value(),
           .load = BlockingPartLoader(archive_),
           .check =
               [this] {
                 return Report(options_, {.phase = RedactPhase::kSelect});
               }}));
  if (manifest_.dictionary.has_value()) {
    QUIRE_RETURN_IF_ERROR(RedactTheDictionary());
  }
  for (const uint32_t segment : Segments()) {
    const SegmentRedaction plan = removed_.PlanFor(archive_, segment);
    ++report_.segment_count;
    report_.shared_size_bytes += plan.shared_size_bytes;
    report_.stored_text_size_bytes += plan.stored_text_size_bytes;
  }
  return absl::OkStatus();
}

absl::Status Redactor::RedactTheDictionary() {
  const OnTextRead on_read = Reader(RedactPhase::kCompare);
  QUIRE_ASSIGN_OR_RETURN(
      RedactedDictionary dictionary,
      RedactDictionary(
          archive_.dictionary(),
          [&](TextSink& sink) {
            return AddRemovedText(archive_, removed_, on_read, sink);
          },
          [&](std::span<TextSink* const> sinks) {
            for (uint32_t i = 0; i < manifest_.segments.size(); ++i) {
              QUIRE_RETURN_IF_ERROR(
                  AddKeptText(archive_, i, removed_.PlanFor(archive_, i),
                              /*with_raw=*/false, on_read, sinks));
            }
            return absl::OkStatus();
          },
          options_.windows_per_pass, options_.threads));
  report_.dictionary_zeroed_bytes = dictionary.zeroed_size_bytes;
  if (dictionary.zeroed_size_bytes > 0) {
    new_context_ = std::make_shared<const CodecContext>(CodecContext{
        .dictionary = std::move(dictionary.text),
        .symbol_table = std::string(AsText(archive_.symbol_table()))});
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<PayloadCodec>> Redactor::NewCodec(
    CodecUse use) const {
  std::shared_ptr<const CodecContext> context = new_context_;
  if (context == nullptr) {
    context = std::make_shared<const CodecContext>(CodecContext{
        .dictionary = std::string(AsText(archive_.dictionary())),
        .symbol_table = std::string(AsText(archive_.symbol_table()))});
  }
  return MakePayloadCodec(manifest_.codec, std::move(context), use,
                          manifest_.has_recipes ? kInflatedLargeSizeMax : 0);
}

absl::StatusOr<bool> Redactor::DecodesAlike(InflatedBlock& block,
                                            BlockAddress address,
                                            const PayloadCodec& codec,
                                            PayloadCodec::Scratch& scratch) {
  QUIRE_RETURN_IF_ERROR(block.Read(address));
  QUIRE_ASSIGN_OR_RETURN(const ByteView raw, block.Raw());
  std::vector<uint8_t> decoded(raw.size());
  return codec.Decode(block.payload(), decoded, scratch).ok() &&
         AsText(decoded) == AsText(raw);
}

absl::Status Redactor::CountBlocks() {
  QUIRE_ASSIGN_OR_RETURN(const auto codec, NewCodec(CodecUse::kDecode));
  const OnTextRead on_read = Reader(RedactPhase::kRewrite);
  std::atomic<uint64_t> changed_count = 0;
  std::atomic<uint64_t> reencoded_count = 0;
  for (const uint32_t segment : Segments()) {
    const SegmentRedaction plan = removed_.PlanFor(archive_, segment);
    const auto count_part =
        [&](size_t, const StoredPart& part,
            const OnTextRead& on_part_read) -> absl::Status {
      const auto scratch = codec->NewScratch();
      InflatedBlock block(archive_);
      uint64_t begin = part.begin;
      for (uint64_t i = part.first_block; i < part.end_block; ++i) {
        const BlockAddress address{segment, i};
        const uint64_t end = begin + archive_.BlockSizeBytes(address);
        if (plan.Changes(begin, end)) {
          ++changed_count;
        } else if (IsDictionaryNew()) {
          QUIRE_ASSIGN_OR_RETURN(
              const bool is_alike,
              DecodesAlike(block, address, *codec, *scratch));
          reencoded_count += is_alike ? 0 : 1;
        }
        QUIRE_RETURN_IF_ERROR(on_part_read(end - begin));
        begin = end;
      }
      return absl::OkStatus();
    };
    QUIRE_RETURN_IF_ERROR(
        ForEachPart(archive_, segment, options_.threads, on_read, count_part));
  }
  report_.changed_block_count = changed_count;
  report_.reencoded_block_count = reencoded_count;
  return absl::OkStatus();
}

absl::Status Redactor::Write(ArchiveWriter& writer) {
  QUIRE_ASSIGN_OR_RETURN(const auto codec,
                         NewCodec(CodecUse::kEncodeAndDecode));
  QUIRE_ASSIGN_OR_RETURN(
      const std::unique_ptr<BlockStage> stage,
      BlockStage::Create(
          *codec, writer,
          {.block_size_bytes = archive_.info().block_size_bytes_max,
           .threads = options_.threads},
          [](const StagedBlock&) {}));
  const OnTextRead on_read = Reader(RedactPhase::kRewrite);
  for (const uint32_t segment : Segments()) {
    const SegmentRedaction plan = removed_.PlanFor(archive_, segment);
    QUIRE_RETURN_IF_ERROR(writer.ReplaceSegment(segment));
    QUIRE_RETURN_IF_ERROR(WriteBlocks(segment, plan, on_read, *stage, writer));
    QUIRE_RETURN_IF_ERROR(WriteDocuments(segment, plan, writer));
    QUIRE_RETURN_IF_ERROR(writer.FinishSegment());
  }
  report_.reencoded_block_count = stage->reencoded_block_count();
  return absl::OkStatus();
}

absl::Status Redactor::WriteBlocks(uint32_t segment_index,
                                   const SegmentRedaction& plan,
                                   const OnTextRead& on_read, BlockStage& stage,
                                   ArchiveWriter& writer) {
  uint64_t begin = 0;
  for (uint64_t i = 0; i < archive_.SegmentBlockCount(segment_index); ++i) {
    const BlockAddress block{segment_index, i};
    const uint32_t size_bytes = archive_.BlockSizeBytes(block);
    QUIRE_RETURN_IF_ERROR(block_.Read(block));
    QUIRE_RETURN_IF_ERROR(writer.UncountBlock(size_bytes, block_.payload()));
    QUIRE_RETURN_IF_ERROR(WriteBlock(begin, plan, size_bytes, stage));
    begin += size_bytes;
    QUIRE_RETURN_IF_ERROR(on_read(size_bytes));
  }
  QUIRE_RETURN_IF_ERROR(
      stage.EncodeText(std::vector<uint8_t>(plan.end_zeros_size_bytes, 0)));
  return stage.EndSegment();
}

absl::Status Redactor::WriteBlock(uint64_t begin, const SegmentRedaction& plan,
                                  uint32_t size_bytes, BlockStage& stage) {
  if (plan.Changes(begin, begin + size_bytes)) {
    ++report_.changed_block_count;
    QUIRE_ASSIGN_OR_RETURN(const ByteView raw, block_.Raw());
    return stage.EncodeText(plan.Apply(begin, raw));
  }
  if (IsDictionaryNew()) {
    QUIRE_ASSIGN_OR_RETURN(const ByteView raw, block_.Raw());
    return stage.CopyIfDecodable(raw, block_.payload());
  }
  return stage.Copy(size_bytes, block_.payload());
}

absl::Status Redactor::WriteDocuments(uint32_t segment_index,
                                      const SegmentRedaction& plan,
                                      ArchiveWriter& writer) {
  const uint64_t first = FirstOrdinal(segment_index);
  // In the segment.
  std::vector<uint64_t> removed;
  std::vector<TextInterval> ranges;
  for (const uint64_t ordinal : RemovedIn(segment_index)) {
    removed.push_back(ordinal - first);
    QUIRE_ASSIGN_OR_RETURN(const LogicalRange range,
                           archive_.GetDocumentRange({ordinal}));
    const uint64_t begin =
        range.offset.value - archive_.SegmentStart(segment_index);
    ranges.push_back({begin, begin + range.size_bytes});
  }
  const SegmentReader& segment = archive_.ReaderOf(segment_index);
  const std::vector<size_t> deposits = DepositsIn(segment_index);
  const LeftOut left_out = {.documents = removed, .deposits = deposits};
  if (plan.runs.empty()) {
    return writer.CarryDocuments(segment, left_out);
  }
  DocumentIndexBuilder documents;
  QUIRE_RETURN_IF_ERROR(CarryDocuments(segment, left_out, documents));
  QUIRE_ASSIGN_OR_RETURN(std::vector<TextChecksum> checksums,
                         ChecksumText(segment_index, ranges));
  return writer.SetLayout(
      {.stored_text_size_bytes = plan.stored_text_size_bytes,
       .runs = plan.runs,
       .checksums = std::move(checksums)},
      std::move(documents));
}

absl::StatusOr<std::vector<TextChecksum>> Redactor::ChecksumText(
    uint32_t segment_index, std::span<const TextInterval> removed) {
  QUIRE_ASSIGN_OR_RETURN(std::vector<TextChecksum> checksums,
                         archive_.ReadTextChecksums(segment_index));
  uint64_t begin = 0;
  for (TextChecksum& piece : checksums) {
    const uint64_t end = begin + piece.size_bytes;
    const auto first =
        std::ranges::upper_bound(removed, begin, {}, &TextInterval::end);
    if (first != removed.end() && first->begin < end) {
      QUIRE_ASSIGN_OR_RETURN(
          const std::vector<BlockSlice> slices,
          archive_.Plan({{archive_.SegmentStart(segment_index) + begin},
                         piece.size_bytes}));
      Checksummer64 checksum;
      uint64_t at = begin;
      for (const BlockSlice& slice : slices) {
        QUIRE_RETURN_IF_ERROR(block_.Read(slice.block));
        QUIRE_ASSIGN_OR_RETURN(const ByteView raw, block_.Raw());
        const ByteView part =
            raw.subspan(slice.offset_in_block, slice.size_bytes);
        std::vector<uint8_t> text(part.begin(), part.end());
        ZeroIn(removed, at, text);
        checksum.Add(text);
        at += slice.size_bytes;
      }
      piece.checksum = checksum.Get();
    }
    begin = end;
  }
  return checksums;
}

// Errors: as RemovedDocuments::Find(); FailedPrecondition  the archive has
// another uuid, or one is required.
absl::StatusOr<RemovedDocuments> FindRemoved(const Archive& archive,
                                             std::span<const std::string> items,
                                             const RedactOptions& options) {
  const std::string& uuid = archive.info().uuid;
  if (!options.archive_uuid.empty() && options.archive_uuid != uuid) {
    return absl::FailedPreconditionError(
        absl::StrCat(archive.path(), ": expected uuid ",
                     QuotedText(options.archive_uuid), ", found ", uuid,
                     "; list its documents again, and nothing was changed"));
  }
  if (!archive.info().unknown_part.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat(archive.path(), ": ", archive.info().unknown_part,
                     " that this program does not know: use a newer one"));
  }
  QUIRE_ASSIGN_OR_RETURN(
      RemovedDocuments removed,
      RemovedDocuments::Find(
          archive, items, options.where.has_value() ? &*options.where : nullptr,
          [&options] {
            return Report(options, {.phase = RedactPhase::kSelect});
          }));
  if (!removed.reused_item().empty() && options.archive_uuid.empty()) {
    return absl::FailedPreconditionError(absl::StrCat(
        archive.path(), ": ", QuotedText(removed.reused_item()),
        " would name another document afterwards, which a repeated command "
        "would remove; nothing was changed; to remove the present one give "
        "--uuid ",
        uuid));
  }
  return removed;
}

absl::StatusOr<RedactReport> DryRun(const std::string& path,
                                    std::span<const std::string> items,
                                    const RedactOptions& options) {
  QUIRE_ASSIGN_OR_RETURN(ArchiveDirectory directory, OpenKnownArchive(path));
  Manifest& manifest = directory.manifest;
  QUIRE_ASSIGN_OR_RETURN(const auto archive, Archive::OpenAs(path, manifest));
  QUIRE_ASSIGN_OR_RETURN(RemovedDocuments removed,
                         FindRemoved(*archive, items, options));
  Redactor redactor(*archive, std::move(manifest), std::move(removed), options);
  QUIRE_RETURN_IF_ERROR(redactor.Prepare());
  QUIRE_RETURN_IF_ERROR(redactor.CountBlocks());
  return std::move(redactor.report());
}

}  // namespace

absl::StatusOr<RedactReport> RedactArchive(const std::string& path,
                                           std::span<const std::string> items,
                                           const RedactOptions& options) {
  if (items.empty() && !options.where.has_value()) {
    return absl::InvalidArgumentError("no ids and no filter of what to remove");
  }
  if (options.dry_run) {
    return DryRun(path, items, options);
  }
  QUIRE_ASSIGN_OR_RETURN(ArchiveChange change, ArchiveChange::Begin(path));
  QUIRE_ASSIGN_OR_RETURN(const auto archive,
                         Archive::OpenAs(change.path(), change.manifest()));
  QUIRE_ASSIGN_OR_RETURN(RemovedDocuments removed,
                         FindRemoved(*archive, items, options));
  Redactor redactor(*archive, change.manifest(), std::move(removed), options);
  QUIRE_RETURN_IF_ERROR(redactor.Prepare());
  const std::unique_ptr<ArchiveWriter> writer =
      ArchiveWriter::Redact(std::move(change), redactor.new_context());
  QUIRE_RETURN_IF_ERROR(redactor.Write(*writer));
  RedactReport& report = redactor.report();
  QUIRE_ASSIGN_OR_RETURN(report.after, writer->Commit());
  report.old_files = writer->committed().old_files;
  if (options.prove) {
    // As others see it.
    absl::StatusOr<std::shared_ptr<const Archive>> after =
        Archive::OpenAs(archive->path(), writer->committed().manifest);
    absl::StatusOr<RedactionProof> proof =
        after.ok() ? ProveRedaction(*archive, **after, redactor.removed(),
                                    options.windows_per_pass,
                                    redactor.Reader(RedactPhase::kProve),
                                    options.threads)
                   : after.status();
    if (!proof.ok()) {
      return absl::Status(
          proof.status().code(),
          absl::StrCat(
              proof.status().message(),
              "; the documents were removed, and this is not proved",
              report.old_files.ok()
                  ? ""
                  : absl::StrCat("; files of the old archive may still "
                                 "have their text: ",
                                 report.old_files.message())));
    }
    report.proof = *std::move(proof);
  }
  return std::move(report);
}

}  // namespace quire
