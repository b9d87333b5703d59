// SPDX-License-Identifier: GPL-3.0-or-later
//
// The output of a salvage that is an archive.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

#include "codecs/base/bytes.h"
#include "codecs/base/status_macros.h"
#include "codecs/block_codec.h"
#include "codecs/filter/field_value.h"
#include "codecs/filter/filter.h"
#include "codecs/payload/payload_codec.h"
#include "server/archive/archive_writer.h"
#include "server/archive/files/file_io.h"
#include "server/archive/format/archive_description.h"
#include "server/archive/repair/archive_salvage.h"
#include "server/archive/repair/salvage_output.h"

namespace quire {
namespace {

constexpr size_t kSalvagedBlockSizeBytes = size_t{64} << 10;

ArchiveWriterOptions OptionsOfSalvaged() {
  ArchiveWriterOptions options;
  options.codec = DefaultCodecSpec(*FindCodec(CodecId::kZstd));
  options.block_size_bytes = kSalvagedBlockSizeBytes;
  return options;
}

class SalvagedArchive final : public SalvageOutput {
 public:
  SalvagedArchive(std::unique_ptr<ArchiveWriter> writer,
                  std::unique_ptr<const PayloadCodec> codec,
                  std::string directory)
      : writer_(std::move(writer)),
        codec_(std::move(codec)),
        scratch_(codec_->NewScratch()),
        stored_(codec_->StoredSizeMax(kSalvagedBlockSizeBytes)),
        directory_(std::move(directory)) {}

  bool keeps_fields() const override { return true; }

  absl::Status BeginSegment(absl::Span<const FieldColumn> fields) override {
    QUIRE_RETURN_IF_ERROR(FinishSegment());
    return writer_->SetFields({fields.begin(), fields.end()});
  }

  absl::StatusOr<std::string> Begin(
      const Document& document, bool has_id,
      absl::Span<const FieldValue> fields) override {
    document_ = document;
    if (!has_id) {
      document_.id = SalvagedName(document);
    }
    fields_.assign(fields.begin(), fields.end());
    text_start_ = text_.size();
    // It may be dropped after a part of it was written, and blocks stay.
    if (document.range.size_bytes > kSalvageHeldSizeBytesMax) {
      QUIRE_ASSIGN_OR_RETURN(spool_, FileWriter::CreateUnnamed(directory_));
    }
    return document_.id;
  }

  absl::Status Write(ByteView bytes) override {
    if (spool_.has_value()) {
      return spool_->Append(bytes);
    }
    text_.insert(text_.end(), bytes.begin(), bytes.end());
    return absl::OkStatus();
  }

  absl::Status End() override {
    if (spool_.has_value()) {
      QUIRE_RETURN_IF_ERROR(TakeSpool());
      spool_.reset();
    }
    QUIRE_RETURN_IF_ERROR(
        writer_->AddDocument({.id = document_.id,
                              .size_bytes = document_.range.size_bytes,
                              .capture_time_ms = document_.capture_time_ms,
                              .record_type = document_.record_type,
                              .media_type = document_.media_type,
                              .fields = fields_}));
    return CutBlocks(kSalvagedBlockSizeBytes);
  }

  absl::Status Drop() override {
    spool_.reset();
    text_.resize(text_start_);
    return absl::OkStatus();
  }

  absl::Status Finish(uint64_t lost_count) override {
    QUIRE_RETURN_IF_ERROR(FinishSegment());
    writer_->AddUnreadInputs(lost_count, {});
    return writer_->Commit().status();
  }

 private:
  // Moves the document from the file to blocks.
  absl::Status TakeSpool() {
    QUIRE_RETURN_IF_ERROR(spool_->Flush());
    std::vector<uint8_t> piece(kSalvageHeldSizeBytesMax);
    for (uint64_t offset = 0; offset < spool_->size_bytes();
         offset += piece.size()) {
      piece.resize(
          std::min<uint64_t>(piece.size(), spool_->size_bytes() - offset));
      QUIRE_RETURN_IF_ERROR(
          ReadExactly(spool_->fd(), offset, piece, directory_));
      text_.insert(text_.end(), piece.begin(), piece.end());
      QUIRE_RETURN_IF_ERROR(CutBlocks(kSalvagedBlockSizeBytes));
    }
    return absl::OkStatus();
  }

  // Writes blocks while there are at least `size_bytes_min` of text.
  absl::Status CutBlocks(size_t size_bytes_min) {
    ByteView left = text_;
    while (left.size() >= size_bytes_min) {
      const ByteView raw =
          left.first(std::min(left.size(), kSalvagedBlockSizeBytes));
      QUIRE_ASSIGN_OR_RETURN(const Payload payload,
                             codec_->Encode(raw, stored_, *scratch_));
      QUIRE_RETURN_IF_ERROR(writer_->AppendBlock(raw, payload));
      left = left.subspan(raw.size());
    }
    text_.erase(text_.begin(),
                text_.end() - static_cast<ptrdiff_t>(left.size()));
    return absl::OkStatus();
  }

  absl::Status FinishSegment() {
    if (!text_.empty()) {
      QUIRE_RETURN_IF_ERROR(CutBlocks(1));
    }
    return writer_->FinishSegment();
  }

  const std::unique_ptr<ArchiveWriter> writer_;
  const std::unique_ptr<const PayloadCodec> codec_;
  const std::unique_ptr<PayloadCodec::Scratch> scratch_;
  std::vector<uint8_t> stored_;
  // That of the archive.
  const std::string directory_;
  // Text that is in no block yet, and where the current document starts in it.
  std::vector<uint8_t> text_;
  size_t text_start_ = 0;
  Document document_;
  std::vector<FieldValue> fields_;
  // Text of a large document.
  std::optional<FileWriter> spool_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<SalvageOutput>> MakeSalvageArchive(
    const std::string& path) {
  const ArchiveWriterOptions options = OptionsOfSalvaged();
  QUIRE_ASSIGN_OR_RETURN(
      std::unique_ptr<const PayloadCodec> codec,
      MakePayloadCodec(options.codec, nullptr, CodecUse::kEncodeAndDecode, 0));
  QUIRE_ASSIGN_OR_RETURN(std::unique_ptr<ArchiveWriter> writer,
                         ArchiveWriter::Create(path, options, nullptr));
  // Creating the writer has refused a path without a name.
  const std::filesystem::path named =
      std::filesystem::path(path).has_filename()
          ? std::filesystem::path(path)
          : std::filesystem::path(path).parent_path();
  const std::string parent = named.parent_path().string();
  return std::make_unique<SalvagedArchive>(std::move(writer), std::move(codec),
                                           parent.empty() ? "." : parent);
}

}  // namespace quire
