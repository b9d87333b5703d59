// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/redaction/redact.h"

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
#include "server/archive/archive_writer.h"
#include "server/archive/files/archive_change.h"
#include "server/archive/files/archive_directory.h"
#include "server/archive/files/dictionary_file.h"
#include "server/redaction/inflated_block.h"
#include "server/redaction/removed_documents.h"
#include "server/redaction/segment_rewriter.h"

namespace quire {
namespace {

// One removal. Used once.
class Redactor {
 public:
  Redactor(const Archive& archive, Manifest manifest, RemovedDocuments removed,
           const RedactOptions& options)
      : archive_(archive),
        manifest_(std::move(manifest)),
        removed_(std::move(removed)),
        options_(options) {}

  const RemovedDocuments& removed() const { return removed_; }

  // Decides which files change.
  absl::Status Prepare();
  // Counts the blocks that would change.
  absl::Status CountBlocks();
  // Writes the new files, and returns the new manifest.
  absl::StatusOr<Manifest> Write(const ArchiveChange& change);

  RedactReport& report() { return report_; }

  // Returns a callback that reports progress in a phase and observes the
  // cancellation.
  OnTextRead Reader(RedactPhase phase) {
    return [this, phase, done = uint64_t{0}](uint64_t size_bytes) mutable {
      done += size_bytes;
      if (options_.on_progress) {
        options_.on_progress({.phase = phase, .done_bytes = done});
      }
      return phase != RedactPhase::kProve && options_.cancel != nullptr &&
                     *options_.cancel
                 ? absl::CancelledError(
                       "the redaction was interrupted; nothing was changed")
                 : absl::OkStatus();
    };
  }

 private:
  bool IsDictionaryNew() const { return new_context_ != nullptr; }

  // Segments that are written anew.
  std::vector<uint32_t> Segments() const;
  std::span<const uint64_t> RemovedIn(uint32_t segment_index) const;
  absl::Status RedactTheDictionary();
  absl::StatusOr<std::unique_ptr<PayloadCodec>> NewCodec(CodecUse use) const;
  // True if the block has the same text with both codecs.
  absl::StatusOr<bool> DecodesAlike(InflatedBlock& block, BlockAddress address,
                                    const PayloadCodec& codec,
                                    PayloadCodec::Scratch& scratch);

  const Archive& archive_;
  Manifest manifest_;
  const RemovedDocuments removed_;
  const RedactOptions& options_;
  // With the new dictionary; null if the old one stays.
  std::shared_ptr<const CodecContext> new_context_;
  RedactReport report_;
};

std::span<const uint64_t> Redactor::RemovedIn(uint32_t segment_index) const {
  uint64_t begin = 0;
  for (uint32_t i = 0; i < segment_index; ++i) {
    begin += manifest_.segments[i].document_count;
  }
  return removed_.OrdinalsIn(
      begin, begin + manifest_.segments[segment_index].document_count);
}

std::vector<uint32_t> Redactor::Segments() const {
  std::vector<uint32_t> segments;
  for (uint32_t i = 0; i < manifest_.segments.size(); ++i) {
    if (IsDictionaryNew() || !RemovedIn(i).empty()) {
      segments.push_back(i);
    }
  }
  return segments;
}

absl::Status Redactor::Prepare() {
  report_.before = archive_.info();
  report_.document_count = removed_.ordinals().size();
  report_.renumbered_id_count = removed_.renumbered_id_count();
  report_.size_bytes = removed_.size_bytes();
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

absl::StatusOr<Manifest> Redactor::Write(const ArchiveChange& change) {
  Manifest manifest = manifest_;
  manifest.writer = DefaultWriter();
  // They may have the id of a document that was added later. Their number
  // stays.
  manifest.unread_inputs.clear();
  std::optional<DictionaryFileWriter> dictionary;
  if (IsDictionaryNew()) {
    manifest.dictionary->hash = Checksum64(AsBytes(new_context_->dictionary));
    dictionary.emplace(change.fd(), change.name(), manifest.codec,
                       new_context_);
  }
  QUIRE_ASSIGN_OR_RETURN(const auto codec,
                         NewCodec(CodecUse::kEncodeAndDecode));
  SegmentRewriter rewriter({.archive = archive_,
                            .codec = *codec,
                            .is_dictionary_new = IsDictionaryNew(),
                            .threads = options_.threads,
                            .on_read = Reader(RedactPhase::kRewrite)},
                           change, manifest);
  for (const uint32_t segment : Segments()) {
    QUIRE_RETURN_IF_ERROR(rewriter.Rewrite(
        segment, removed_.PlanFor(archive_, segment), RemovedIn(segment)));
  }
  const RewrittenBlocks blocks = rewriter.Finish();
  report_.changed_block_count = blocks.changed_count;
  report_.reencoded_block_count = blocks.reencoded_count;
  if (dictionary.has_value()) {
    QUIRE_ASSIGN_OR_RETURN(manifest.dictionary, dictionary->Finish());
  }
  return manifest;
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
  QUIRE_ASSIGN_OR_RETURN(RemovedDocuments removed,
                         RemovedDocuments::Find(archive, items));
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
  if (items.empty()) {
    return absl::InvalidArgumentError("no ids to remove");
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
  QUIRE_ASSIGN_OR_RETURN(Manifest manifest, redactor.Write(change));
  QUIRE_ASSIGN_OR_RETURN(
      ArchiveChange::Committed committed,
      change.Commit(std::move(manifest), EarlierStates::kRedact));
  RedactReport& report = redactor.report();
  report.after = committed.manifest.Describe(committed.file_size_bytes);
  report.old_files = committed.old_files;
  if (options.prove) {
    // As others see it.
    absl::StatusOr<std::shared_ptr<const Archive>> after =
        Archive::OpenAs(change.path(), committed.manifest);
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
