// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/archive/archive_writer.h"

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"

#include "codecs/base/status_macros.h"
#include "server/archive/archive_format.h"
#include "server/archive/dictionary_file.h"
#include "server/archive/manifest.h"
#include "server/archive/partial_folder.h"
#include "server/archive/segment_format.h"
#include "server/archive/segment_writer.h"
#include "server/archive/symbol_table_file.h"

namespace quire {
namespace {

class ArchiveWriterImpl final : public ArchiveWriter {
 public:
  ArchiveWriterImpl(PartialFolder folder, const ArchiveWriterOptions& options,
                    std::shared_ptr<const CodecContext> dictionary)
      : folder_(std::move(folder)) {
    manifest_.codec = options.codec;
    manifest_.block_size_bytes = options.block_size_bytes;
    if (dictionary != nullptr) {
      dictionary_.emplace(folder_.fd(), folder_.name(), std::move(dictionary));
    }
  }

  absl::Status AppendBlock(ByteView raw, ByteView stored) override {
    QUIRE_RETURN_IF_ERROR(StartSegment());
    return Keep(segment_->AppendBlock(raw, stored));
  }

  absl::Status AddDocument(const NewDocument& document) override {
    QUIRE_RETURN_IF_ERROR(StartSegment());
    return Keep(segment_->AddDocument(document));
  }

  absl::Status FinishSegment() override {
    QUIRE_RETURN_IF_ERROR(status_);
    if (!segment_.has_value()) {
      return absl::OkStatus();
    }
    absl::StatusOr<ManifestSegment> segment = segment_->Finish();
    segment_.reset();
    QUIRE_RETURN_IF_ERROR(Keep(segment.status()));
    manifest_.segments.push_back(*std::move(segment));
    return absl::OkStatus();
  }

  absl::Status SetSymbolTable(absl::string_view serialised) override {
    QUIRE_RETURN_IF_ERROR(status_);
    if (manifest_.symbol_table.has_value()) {
      return Keep(
          absl::InvalidArgumentError("an archive has one symbol table"));
    }
    const auto entry =
        WriteSymbolTableFile(folder_.fd(), folder_.name(), AsBytes(serialised));
    QUIRE_RETURN_IF_ERROR(Keep(entry.status()));
    manifest_.symbol_table = *entry;
    return absl::OkStatus();
  }

  absl::StatusOr<ArchiveInfo> Commit() override {
    QUIRE_RETURN_IF_ERROR(FinishSegment());
    if (dictionary_.has_value()) {
      absl::StatusOr<ManifestDictionary> dictionary = dictionary_->Finish();
      QUIRE_RETURN_IF_ERROR(Keep(dictionary.status()));
      manifest_.dictionary = *dictionary;
    }
    manifest_.uuid = manifest_.DeriveUuid();
    const std::string file = EncodeManifest(manifest_);
    // What no reader would take is not published.
    QUIRE_RETURN_IF_ERROR(Keep(ParseManifest(AsBytes(file)).status()));
    const absl::Status status = folder_.Publish(AsBytes(file));
    Keep(absl::FailedPreconditionError("the archive is written already"))
        .IgnoreError();
    QUIRE_RETURN_IF_ERROR(status);
    return manifest_.Describe(file.size());
  }

 private:
  absl::Status StartSegment() {
    QUIRE_RETURN_IF_ERROR(status_);
    if (segment_.has_value()) {
      return absl::OkStatus();
    }
    if (manifest_.segments.size() == kSegmentCountMax) {
      return absl::InvalidArgumentError(absl::StrCat(
          "an archive has at most ", kSegmentCountMax, " segments"));
    }
    const SegmentHeader header = {
        .number = static_cast<uint32_t>(manifest_.segments.size()),
        .block_size_bytes = manifest_.block_size_bytes,
        .codec_id = static_cast<uint32_t>(manifest_.codec.id)};
    absl::StatusOr<SegmentWriter> segment =
        SegmentWriter::Create(folder_.fd(), folder_.name(), header);
    QUIRE_RETURN_IF_ERROR(Keep(segment.status()));
    segment_.emplace(*std::move(segment));
    return absl::OkStatus();
  }

  // After one failure no other call may make an archive of what is there.
  absl::Status Keep(const absl::Status& status) {
    if (status_.ok()) {
      status_ = status;
    }
    return status;
  }

  // First, so that it outlives those who write into it.
  PartialFolder folder_;
  Manifest manifest_;
  std::optional<DictionaryFileWriter> dictionary_;
  std::optional<SegmentWriter> segment_;
  absl::Status status_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<ArchiveWriter>> ArchiveWriter::Create(
    const std::string& path, const ArchiveWriterOptions& options,
    std::shared_ptr<const CodecContext> context) {
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
  if (!codec->needs_dictionary) {
    context = nullptr;
  } else if (context == nullptr ||
             context->dictionary.size() > kDictionarySizeBytesMax) {
    return absl::InvalidArgumentError(
        absl::StrCat("codec ", codec->name, " needs a dictionary of at most ",
                     kDictionarySizeBytesMax, " bytes"));
  }
  QUIRE_ASSIGN_OR_RETURN(PartialFolder folder,
                         PartialFolder::Create(path, options.replace));
  return std::make_unique<ArchiveWriterImpl>(std::move(folder), options,
                                             std::move(context));
}

}  // namespace quire
