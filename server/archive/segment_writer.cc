// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/archive/segment_writer.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

#include "codecs/base/checksum.h"
#include "codecs/base/status_macros.h"
#include "server/archive/carried_documents.h"
#include "server/archive/format/column.h"
#include "server/archive/format/section_compression.h"
#include "server/archive/index/id_runs.h"
#include "server/archive/index/slice_counter.h"

namespace quire {

absl::StatusOr<SegmentWriter> SegmentWriter::Create(
    int directory_fd, const std::string& directory,
    const SegmentHeader& header) {
  const std::string name = SegmentFileName(header.number);
  std::string file = absl::StrCat(directory, "/", name);
  QUIRE_ASSIGN_OR_RETURN(FileWriter writer,
                         FileWriter::Create(directory_fd, name, file));
  QUIRE_RETURN_IF_ERROR(writer.Append(AsBytes(EncodeSegmentHeader(header))));
  return SegmentWriter(header, std::move(file), std::move(writer));
}

absl::StatusOr<SegmentWriter> SegmentWriter::Continue(
    int directory_fd, const std::string& directory, const SegmentHeader& header,
    KeptBlocks kept) {
  const std::string name = SegmentFileName(header.number);
  std::string file = absl::StrCat(directory, "/", name);
  QUIRE_ASSIGN_OR_RETURN(
      FileWriter writer,
      FileWriter::Continue(directory_fd, name, file, kept.end));
  SegmentWriter segment(header, std::move(file), std::move(writer));
  segment.footer_.block_chain = kept.block_chain;
  segment.kept_ = std::move(kept.blocks);
  return segment;
}

SegmentWriter::SegmentWriter(const SegmentHeader& header, std::string file,
                             FileWriter writer)
    : header_(header), file_(std::move(file)), writer_(std::move(writer)) {}

absl::Status SegmentWriter::CheckBlockSize(uint64_t size_bytes) const {
  if (size_bytes == 0 || size_bytes > kBlockSizeBytesMax) {
    return absl::InvalidArgumentError(absl::StrCat("a block of ", size_bytes,
                                                   " bytes, expected 1 to ",
                                                   kBlockSizeBytesMax));
  }
  if (block_sizes_.size() >= kSegmentBlockCountMax ||
      size_bytes > kLogicalSizeBytesMax - text_size_bytes_) {
    return absl::InvalidArgumentError("the segment is full: finish it");
  }
  return absl::OkStatus();
}

void SegmentWriter::CountBlock(uint64_t size_bytes,
                               uint64_t payload_size_bytes) {
  text_size_bytes_ += size_bytes;
  block_sizes_.push_back(payload_size_bytes);
  quire::AppendBlock(size_bytes, spans_);
  block_size_bytes_max_ =
      std::max(block_size_bytes_max_, static_cast<uint32_t>(size_bytes));
}

absl::Status SegmentWriter::KeepBlock(uint64_t size_bytes) {
  QUIRE_RETURN_IF_ERROR(CheckBlockSize(size_bytes));
  const KeptBlock& kept = *NextKept();
  if (kept.is_raw ? kept.payload_size_bytes != size_bytes
                  : kept.payload_size_bytes >= size_bytes) {
    return absl::FailedPreconditionError(absl::StrCat(
        file_, ": block ", block_sizes_.size(), " was kept with ",
        kept.payload_size_bytes, " bytes and cannot be one of ", size_bytes,
        " bytes of text; remove the directory and start again"));
  }
  CountBlock(size_bytes, kept.payload_size_bytes);
  return absl::OkStatus();
}

absl::Status SegmentWriter::CopyBlock(uint64_t size_bytes,
                                      const Payload& payload) {
  if (NextKept() != nullptr) {
    return absl::InvalidArgumentError("blocks that were kept come first");
  }
  QUIRE_RETURN_IF_ERROR(CheckBlockSize(size_bytes));
  const uint64_t checksum =
      EncodeFrame({header_.number, block_sizes_.size()}, payload, frame_);
  QUIRE_RETURN_IF_ERROR(writer_.Append(frame_));
  footer_.block_chain = ExtendBlockChain(footer_.block_chain, checksum);
  CountBlock(size_bytes, payload.bytes.size());
  return absl::OkStatus();
}

absl::Status SegmentWriter::AddDocument(const NewDocument& document) {
  return documents_.Add(document);
}

absl::Status SegmentWriter::CarryDocuments(const SegmentReader& from,
                                           const LeftOut& left_out) {
  return quire::CarryDocuments(from, left_out, documents_);
}

absl::Status SegmentWriter::AppendSection(SectionType type, ByteView raw) {
  const auto compressed = CompressStrongly(raw, kSectionEffort);
  QUIRE_RETURN_IF_ERROR(InFile(file_, compressed.status()));
  return AppendStored(type, compressed->method, raw.size(),
                      AsBytes(compressed->bytes));
}

absl::Status SegmentWriter::AppendStored(SectionType type,
                                         CompressionMethod method,
                                         uint64_t size_bytes, ByteView stored) {
  SectionEntry entry;
  entry.type = static_cast<uint32_t>(type);
  entry.method = method;
  entry.offset = writer_.size_bytes();
  entry.stored_size_bytes = stored.size();
  entry.size_bytes = size_bytes;
  entry.checksum = Checksum64(stored);
  footer_.sections.push_back(entry);
  return writer_.Append(stored);
}

absl::Status SegmentWriter::AppendContainer() {
  if (documents_.count() == 0) {
    return absl::OkStatus();
  }
  const absl::StatusOr<std::optional<ContainerBuilder::Sections>> container =
      documents_.container().Build();
  QUIRE_RETURN_IF_ERROR(InFile(file_, container.status()));
  if (!container->has_value()) {
    return absl::OkStatus();
  }
  const std::string& data = (*container)->data;
  QUIRE_RETURN_IF_ERROR(AppendSection(SectionType::kContainerDirectory,
                                      AsBytes((*container)->directory)));
  return AppendStored(SectionType::kContainerData, CompressionMethod::kNone,
                      data.size(), AsBytes(data));
}

absl::Status SegmentWriter::SetLayout(LayoutSection layout,
                                      DocumentIndexBuilder documents) {
  if (documents_.count() > 0 || layout_.has_value()) {
    return absl::InvalidArgumentError(
        "a layout comes once, with all documents of its segment");
  }
  layout_ = std::move(layout);
  documents_ = std::move(documents);
  return absl::OkStatus();
}

absl::Status SegmentWriter::CheckSizes() const {
  if (NextKept() != nullptr) {
    return absl::FailedPreconditionError(
        absl::StrCat(file_, ": ", kept_.size(), " blocks were kept and only ",
                     block_sizes_.size(),
                     " belong here; remove the directory and start again"));
  }
  uint64_t stored_bytes = documents_.size_bytes();
  uint64_t run_bytes = documents_.size_bytes();
  if (layout_.has_value()) {
    stored_bytes = layout_->stored_text_size_bytes;
    run_bytes = 0;
    for (const StoredRun& run : layout_->runs) {
      run_bytes += run.size_bytes;
    }
  }
  if (text_size_bytes_ != stored_bytes ||
      run_bytes != documents_.size_bytes()) {
    return absl::InvalidArgumentError(
        absl::StrCat(file_, ": has blocks of ", text_size_bytes_,
                     " bytes, expected ", stored_bytes, ", and documents of ",
                     documents_.size_bytes(), " bytes, expected ", run_bytes,
                     "; documents lie wholly in one segment"));
  }
  return absl::OkStatus();
}

void SegmentWriter::CountSlices(bool has_layout) {
  const BlockSpans blocks(spans_);
  SliceCounter slices(blocks);
  if (has_layout) {
    for (const StoredRun& run : layout_->runs) {
      slices.AddRun(run.stored_offset, run.size_bytes);
    }
  }
  slices_per_mib_max_ = slices.most();
}

absl::Status SegmentWriter::AppendSections(bool has_layout) {
  if (!block_sizes_.empty()) {
    std::string sizes;
    AppendColumn(block_sizes_, sizes);
    QUIRE_RETURN_IF_ERROR(
        AppendSection(SectionType::kBlockSizes, AsBytes(sizes)));
  }
  QUIRE_RETURN_IF_ERROR(documents_.Build(
      [this](SectionType type, const std::string& raw) {
        return AppendSection(type, AsBytes(raw));
      },
      footer_.id_size_bytes));
  footer_.derived_id_count = documents_.derived_id_count();
  if (has_layout) {
    QUIRE_RETURN_IF_ERROR(
        AppendSection(SectionType::kLayout, AsBytes(EncodeLayout(*layout_))));
  }
  if (!spans_.empty()) {
    QUIRE_RETURN_IF_ERROR(AppendSection(SectionType::kBlockSpans,
                                        AsBytes(EncodeBlockSpans(spans_))));
  }
  if (!documents_.id_runs().empty()) {
    QUIRE_RETURN_IF_ERROR(AppendSection(
        SectionType::kIdRuns, AsBytes(EncodeIdRuns(documents_.id_runs()))));
  }
  if (has_layout && !layout_->checksums.empty()) {
    QUIRE_RETURN_IF_ERROR(
        AppendSection(SectionType::kTextChecksums,
                      AsBytes(EncodeTextChecksums(layout_->checksums))));
  }
  return AppendContainer();
}

absl::StatusOr<ManifestSegment> SegmentWriter::Finish() {
  QUIRE_RETURN_IF_ERROR(CheckSizes());
  footer_.size_bytes = documents_.size_bytes();
  footer_.blocks_end = writer_.size_bytes();
  footer_.block_count = block_sizes_.size();
  footer_.document_count = documents_.count();
  // Text in its own order needs no layout.
  const bool has_layout = layout_.has_value() && layout_->runs.size() > 1;
  QUIRE_RETURN_IF_ERROR(AppendSections(has_layout));
  CountSlices(has_layout);
  QUIRE_RETURN_IF_ERROR(
      writer_.Append(AsBytes(EncodeSegmentFooter(footer_, header_.number))));
  QUIRE_RETURN_IF_ERROR(writer_.Finish());

  ManifestSegment segment;
  segment.number = header_.number;
  segment.file_size_bytes = writer_.size_bytes();
  segment.block_count = footer_.block_count;
  segment.document_count = footer_.document_count;
  segment.size_bytes = footer_.size_bytes;
  segment.id_size_bytes = footer_.id_size_bytes;
  segment.footer_checksum = footer_.checksum;
  segment.stored_text_size_bytes = text_size_bytes_;
  segment.run_count =
      has_layout ? layout_->runs.size() : (text_size_bytes_ == 0 ? 0 : 1);
  segment.span_count = spans_.size();
  segment.derived_id_count = footer_.derived_id_count;
  for (const SectionEntry& entry : footer_.sections) {
    segment.sections.push_back(
        {entry.type, entry.size_bytes, entry.stored_size_bytes});
  }
  return segment;
}

}  // namespace quire
