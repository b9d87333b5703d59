// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/archive/archive_verifier.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

#include "codecs/base/byte_size.h"
#include "codecs/base/endian.h"
#include "codecs/base/status_macros.h"
#include "codecs/filter/filter.h"
#include "codecs/payload/payload_codec.h"
#include "server/archive/archive.h"
#include "server/archive/container_check.h"
#include "server/archive/deposit_reader.h"
#include "server/archive/deposited_files.h"
#include "server/archive/fields/field_directory.h"
#include "server/archive/files/archive_directory.h"
#include "server/archive/files/dictionary_file.h"
#include "server/archive/files/symbol_table_file.h"
#include "server/archive/format/archive_format.h"
#include "server/archive/format/block_frame.h"
#include "server/archive/format/layout_section.h"
#include "server/archive/format/member_count.h"
#include "server/archive/format/work_in_threads.h"
#include "server/archive/segment_reader.h"
#include "server/archive/segment_text.h"

namespace quire {
namespace {

// Blocks verified by the threads per batch: bounds the memory of their results.
constexpr uint64_t kBatchBlockCount = 1024;

// For a segment whose indexes of blocks and documents are unusable.
constexpr char kSegmentEffect[] =
    "a single point of loss for this segment: the archive is not served "
    "without "
    "it; the other segments, and blocks of this one that are not named, are "
    "whole";

// Returns Checksum64() of a part of the text. Errors: as
// SegmentReader::ReadFrame().
absl::StatusOr<uint64_t> ChecksumOf(SegmentText& text, uint64_t offset,
                                    uint64_t size_bytes) {
  Checksummer64 checksum;
  QUIRE_RETURN_IF_ERROR(text.Visit(
      offset, size_bytes, [&](uint64_t, const absl::StatusOr<ByteView>& part) {
        if (part.ok()) {
          checksum.Add(*part);
        }
        return part.status();
      }));
  return checksum.Get();
}

class Verifier {
 public:
  Verifier(ArchiveDirectory directory, ArchiveFiles files,
           const VerifyOptions& options,
           const std::function<void(const ArchiveDamage&)>& on_damage)
      : directory_(std::move(directory)),
        files_(std::move(files)),
        options_(options),
        on_damage_(on_damage) {}

  VerifyReport Run();

 private:
  struct BlockResult {
    absl::Status status;
    uint64_t checksum = 0;
    // For a good block of codec auto.
    uint8_t member = 0;
    uint64_t stored_size_bytes = 0;
  };

  void MakeCodec();
  absl::StatusOr<std::string> ReadSymbolTable();
  // Returns the first block of a part, among those of all segments.
  uint64_t PartStart(uint64_t part_index) const;

  // Blocks of a segment.
  struct BlockRange {
    uint64_t begin = 0;
    uint64_t end = 0;
  };

  // Returns the blocks of the segment in the part, if that includes the
  // segment. `first_block` is the number of blocks before it.
  std::optional<BlockRange> InPart(const ManifestSegment& segment,
                                   uint64_t first_block) const;
  void VerifySegment(uint32_t segment_index, BlockRange range);
  void VerifyBlocks(uint32_t segment_index, const SegmentReader& segment,
                    BlockRange range);
  // Checks the fields and the index of captures of the documents.
  void VerifyContainer(const SegmentReader& segment);
  // Compares the names and types of fields with those of segments before.
  void JoinFields(const SegmentReader& segment);
  // Compares the counted members with the manifest.
  void VerifyMembers();
  // Checks the digests of the deposited files.
  void VerifyDeposits();
  std::vector<BlockResult> ReadBatch(const SegmentReader& segment,
                                     uint64_t first_block_index,
                                     uint64_t block_count) const;
  BlockResult ReadOne(const SegmentReader& segment, uint64_t block_index,
                      std::vector<uint8_t>& frame, std::vector<uint8_t>& raw,
                      PayloadCodec::Scratch* scratch) const;
  // Checks the text of a segment with a layout. REQUIRES: its blocks are good.
  void VerifyText(const SegmentReader& segment);
  // Reads the blocks of a segment with unusable indexes, from its start. `file`
  // is null if it cannot be opened.
  void SalvageSegment(uint32_t segment_index, const SegmentFile* file,
                      const absl::Status& why);
  // Moves `position` past the block's frame if its size can be determined.
  // `text_size_bytes` is the size of the block's text; unset if it is unknown,
  // and the block is then not decoded.
  absl::Status SalvageBlock(const ReadableFile& opened, BlockAddress block,
                            std::optional<uint32_t> text_size_bytes,
                            uint64_t& position) const;

  void Report(const ArchiveDamage& damage) {
    ++report_.damage_count;
    on_damage_(damage);
  }

  // A block is good once it has been decoded.
  void AddGood(uint64_t size_bytes) {
    if (codec_ != nullptr) {
      ++report_.good_block_count;
      report_.good_size_bytes += size_bytes;
    }
  }

  void AddProgress(uint64_t block_count);
  // Sets the lost text of a block, and its documents.
  void AddLost(const SegmentReader& segment, uint64_t block_index,
               ArchiveDamage& damage) const;
  // Adds a part of the segment's text to the lost text, with its documents from
  // `first_document` on. Returns the document after the last of them.
  // REQUIRES: calls are in the order of the parts.
  uint64_t AddLostPart(const SegmentReader& segment, uint64_t offset,
                       uint64_t size_bytes, uint64_t first_document,
                       ArchiveDamage& damage) const;

  const ArchiveDirectory directory_;
  ArchiveFiles files_;
  const VerifyOptions& options_;
  const std::function<void(const ArchiveDamage&)>& on_damage_;
  // Null if the dictionary is damaged: blocks are then checked but not decoded.
  std::unique_ptr<const PayloadCodec> codec_;
  VerifyReport report_;
  VerifyProgress progress_;
  // Counts over the decoded blocks.
  MemberCount members_;
  uint64_t member_block_count_ = 0;
  // Fields of the segments so far.
  std::vector<FieldColumn> fields_;
  // A segment of this part has a part of a deposited file.
  bool has_deposits_ = false;
  // Start of the current segment.
  uint64_t segment_start_ = 0;
  uint64_t first_ordinal_ = 0;
};

VerifyReport Verifier::Run() {
  const Manifest& manifest = directory_.manifest;
  report_.info = manifest.Describe(directory_.manifest_file.size_bytes);
  progress_.blocks_total =
      PartStart(options_.part_index + 1) - PartStart(options_.part_index);
  if (manifest.DeriveUuid() != manifest.uuid) {
    ArchiveDamage damage;
    damage.status =
        InFile(absl::StrCat(directory_.path, "/", kManifestFileName),
               Damaged("the uuid is not the one that the contents have"));
    Report(damage);
  }
  MakeCodec();
  uint64_t first_block = 0;
  for (uint32_t i = 0; i < manifest.segments.size(); ++i) {
    if (const auto range = InPart(manifest.segments[i], first_block)) {
      VerifySegment(i, *range);
    }
    first_block += manifest.segments[i].block_count;
    segment_start_ += manifest.segments[i].size_bytes;
    first_ordinal_ += manifest.segments[i].document_count;
  }
  VerifyMembers();
  if (has_deposits_) {
    VerifyDeposits();
  }
  AddProgress(0);
  return report_;
}

uint64_t Verifier::PartStart(uint64_t part_index) const {
  const uint64_t count = report_.info.block_count;
  // The product would overflow.
  return count / options_.part_count * part_index +
         std::min(count % options_.part_count, part_index);
}

std::optional<Verifier::BlockRange> Verifier::InPart(
    const ManifestSegment& segment, uint64_t first_block) const {
  const uint64_t part_begin = PartStart(options_.part_index);
  const uint64_t part_end = PartStart(options_.part_index + 1);
  const uint64_t begin = std::max(part_begin, first_block);
  const uint64_t end = std::min(part_end, first_block + segment.block_count);
  if (segment.block_count == 0 && options_.part_index == 0) {
    return BlockRange{};
  }
  return begin < end
             ? std::optional(BlockRange{begin - first_block, end - first_block})
             : std::nullopt;
}

void Verifier::MakeCodec() {
  const Manifest& manifest = directory_.manifest;
  const auto make = [&]() -> absl::StatusOr<std::unique_ptr<PayloadCodec>> {
    auto context = std::make_shared<CodecContext>();
    if (files_.dictionary.has_value()) {
      QUIRE_RETURN_IF_ERROR(files_.dictionary->status());
      QUIRE_ASSIGN_OR_RETURN(
          context->dictionary,
          ReadDictionaryFile(**files_.dictionary, *manifest.dictionary));
    }
    QUIRE_ASSIGN_OR_RETURN(context->symbol_table, ReadSymbolTable());
    auto codec =
        MakePayloadCodec(manifest.codec, context, CodecUse::kDecode,
                         manifest.has_recipes ? kInflatedLargeSizeMax : 0);
    QUIRE_RETURN_IF_ERROR(InFile(directory_.path, codec.status()));
    return codec;
  };
  auto codec = make();
  if (codec.ok()) {
    codec_ = *std::move(codec);
    return;
  }
  ArchiveDamage damage;
  damage.status =
      absl::Status(codec.status().code(),
                   absl::StrCat(codec.status().message(),
                                "; no block can be decoded without it"));
  damage.effect =
      "a single point of loss: no text can be read without it, and the archive "
      "is not served; the same file of another copy of the archive replaces it";
  damage.lost = {{0}, report_.info.size_bytes};
  damage.document_count = report_.info.document_count;
  Report(damage);
}

absl::StatusOr<std::string> Verifier::ReadSymbolTable() {
  const Manifest& manifest = directory_.manifest;
  if (!files_.symbol_table.has_value()) {
    return "";
  }
  const auto& file = *files_.symbol_table;
  auto table = file.ok() ? ReadSymbolTableFile(*file, *manifest.symbol_table)
                         : file.status();
  if (!table.ok() && !FindCodec(manifest.codec.id)->needs_symbol_table) {
    // Only answers in FSST need it.
    ArchiveDamage damage;
    damage.status = table.status();
    damage.effect =
        "nothing but answers in FSST needs it: all text can be decoded without "
        "it, but the archive is not served";
    Report(damage);
    return "";
  }
  return table;
}

void Verifier::VerifySegment(uint32_t segment_index, BlockRange range) {
  const Manifest& manifest = directory_.manifest;
  const ManifestSegment& expected = manifest.segments[segment_index];
  absl::StatusOr<SegmentFile> file = std::move(files_.segments[segment_index]);
  if (absl::IsUnavailable(file.status())) {
    // Too many files were open: those of earlier segments are closed by now.
    std::string note;
    file = OpenSegmentFile(directory_, expected.number, DirectIo::kOff, note);
  }
  if (!file.ok()) {
    SalvageSegment(segment_index, nullptr, file.status());
    return;
  }
  std::vector<absl::Status> index_damages;
  const auto segment = SegmentReader::Open(*file, manifest, expected,
                                           /*cancel=*/nullptr, &index_damages);
  if (segment.ok()) {
    for (const absl::Status& status : index_damages) {
      ArchiveDamage damage;
      damage.status = status;
      damage.effect =
          "all text of the segment can be read by range and by the number of a "
          "document: quired serve --skip-broken serves it without this index";
      Report(damage);
    }
    VerifyBlocks(segment_index, *segment, range);
    if (range.begin == 0) {
      has_deposits_ |= !segment->deposits().portions().empty();
      VerifyContainer(*segment);
      JoinFields(*segment);
    }
  } else {
    SalvageSegment(segment_index, &*file, segment.status());
  }
}

void Verifier::VerifyBlocks(uint32_t segment_index,
                            const SegmentReader& segment, BlockRange range) {
  uint64_t chain = 0;
  bool all_good = range.end - range.begin == segment.block_count();
  for (uint64_t first = range.begin; first < range.end;
       first += kBatchBlockCount) {
    const uint64_t count = std::min(kBatchBlockCount, range.end - first);
    const std::vector<BlockResult> results = ReadBatch(segment, first, count);
    for (uint64_t i = 0; i < count; ++i) {
      const BlockAddress block = {segment_index, first + i};
      if (results[i].status.ok()) {
        chain = ExtendBlockChain(chain, results[i].checksum);
        AddGood(segment.BlockSizeBytes(first + i));
        if (directory_.manifest.codec.id == CodecId::kAuto) {
          ++member_block_count_;
          members_.Add(results[i].member, segment.BlockSizeBytes(first + i),
                       results[i].stored_size_bytes);
        }
        continue;
      }
      all_good = false;
      ++report_.damaged_block_count;
      ArchiveDamage damage;
      damage.status = results[i].status;
      damage.block = block;
      AddLost(segment, block.block_index, damage);
      Report(damage);
    }
    AddProgress(count);
  }
  if (all_good && codec_ != nullptr) {
    VerifyText(segment);
  }
  if (all_good && chain != segment.footer().block_chain) {
    ArchiveDamage damage;
    damage.status = InFile(segment.file(),
                           ChecksumMismatch("checksum over all blocks", chain,
                                            segment.footer().block_chain));
    Report(damage);
  }
}

void Verifier::VerifyContainer(const SegmentReader& segment) {
  const absl::Status status = CheckContainerOf(segment);
  if (!status.ok()) {
    ArchiveDamage damage;
    damage.status = status;
    damage.effect =
        "all text of the segment can be read, but fields or captures of some "
        "of its documents cannot";
    Report(damage);
  }
}

void Verifier::JoinFields(const SegmentReader& segment) {
  for (const FieldColumn& column : segment.fields().columns()) {
    ArchiveDamage damage;
    damage.status = InFile(segment.file(), JoinColumn(column, fields_));
    damage.effect =
        "all text can be read: quired serve --skip-broken serves it without "
        "values of the field in this segment";
    if (!damage.status.ok()) {
      Report(damage);
    }
  }
}

void Verifier::VerifyMembers() {
  // The members of damaged blocks are unknown.
  if (codec_ == nullptr || member_block_count_ != report_.info.block_count ||
      members_.members() == report_.info.members) {
    return;
  }
  ArchiveDamage damage;
  damage.status = InFile(
      absl::StrCat(directory_.path, "/", kManifestFileName),
      Damaged("the members' counts and sizes are not those of the blocks"));
  Report(damage);
}

void Verifier::VerifyDeposits() {
  // Damage was reported before.
  const absl::StatusOr<std::shared_ptr<const Archive>> archive =
      Archive::OpenAs(directory_.path, directory_.manifest);
  if (!archive.ok()) {
    return;
  }
  uint64_t first_block = 0;
  std::vector<bool> is_in_part;
  for (const ManifestSegment& segment : directory_.manifest.segments) {
    const std::optional<BlockRange> range = InPart(segment, first_block);
    is_in_part.push_back(range.has_value() && range->begin == 0);
    first_block += segment.block_count;
  }
  for (const DepositedFile& file : (*archive)->deposited_files().files()) {
    if (file.state != DepositState::kKept ||
        !is_in_part[file.portions.front().segment_index]) {
      continue;
    }
    const absl::Status status =
        DepositReader(**archive, file).CheckDigest([](uint64_t) {
          return absl::OkStatus();
        });
    if (!status.ok()) {
      ArchiveDamage damage;
      damage.status = status;
      damage.effect =
          "the documents of the file can be read where their blocks are good, "
          "but not the file";
      Report(damage);
    }
  }
}

std::vector<Verifier::BlockResult> Verifier::ReadBatch(
    const SegmentReader& segment, uint64_t first_block_index,
    uint64_t block_count) const {
  std::vector<BlockResult> results(block_count);
  WorkInThreads(
      options_.thread_count, block_count, [&](const NextNumber& next) {
        const auto scratch = codec_ == nullptr ? nullptr : codec_->NewScratch();
        std::vector<uint8_t> frame;
        std::vector<uint8_t> raw;
        while (const std::optional<uint64_t> i = next()) {
          results[*i] = ReadOne(segment, first_block_index + *i, frame, raw,
                                scratch.get());
        }
      });
  return results;
}

Verifier::BlockResult Verifier::ReadOne(const SegmentReader& segment,
                                        uint64_t block_index,
                                        std::vector<uint8_t>& frame,
                                        std::vector<uint8_t>& raw,
                                        PayloadCodec::Scratch* scratch) const {
  BlockResult result;
  const auto checksum = segment.ReadFrame(block_index, frame);
  if (!checksum.ok()) {
    result.status = checksum.status();
    return result;
  }
  result.checksum = *checksum;
  if (codec_ != nullptr) {
    raw.resize(segment.BlockSizeBytes(block_index));
    result.status =
        segment.DecodeCheckedFrame(block_index, frame, raw, *codec_, *scratch);
  }
  if (const auto payload =
          ParseFrame(frame, segment.BlockSizeBytes(block_index));
      payload.ok()) {
    result.member =
        MemberOf(*payload, directory_.manifest.codec.partition_size_bytes != 0);
    result.stored_size_bytes = payload->bytes.size();
  }
  return result;
}

void Verifier::VerifyText(const SegmentReader& segment) {
  const auto checksums = segment.ReadTextChecksums();
  if (!checksums.ok()) {
    ArchiveDamage damage;
    damage.status = checksums.status();
    damage.effect = "all text of the segment can be read and is served";
    Report(damage);
    return;
  }
  std::vector<uint64_t> starts;
  starts.reserve(checksums->size());
  uint64_t start = 0;
  for (const TextChecksum& piece : *checksums) {
    starts.push_back(start);
    start += piece.size_bytes;
  }
  std::vector<absl::Status> results(checksums->size());
  WorkInThreads(
      options_.thread_count, results.size(), [&](const NextNumber& next) {
        SegmentText text(segment, codec_.get(),
                         directory_.manifest.block_size_bytes_max);
        while (const std::optional<uint64_t> i = next()) {
          const TextChecksum& expected = (*checksums)[*i];
          const auto found = ChecksumOf(text, starts[*i], expected.size_bytes);
          results[*i] = found.status();
          if (found.ok() && *found != expected.checksum) {
            results[*i] = InFile(
                segment.file(),
                ChecksumMismatch(absl::StrCat("checksum of the text from byte ",
                                              starts[*i], " of the segment"),
                                 *found, expected.checksum));
          }
        }
      });
  for (uint64_t i = 0; i < results.size(); ++i) {
    if (!results[i].ok()) {
      ArchiveDamage damage;
      damage.status = results[i];
      AddLostPart(segment, starts[i], (*checksums)[i].size_bytes, 0, damage);
      Report(damage);
    }
  }
}

void Verifier::SalvageSegment(uint32_t segment_index, const SegmentFile* file,
                              const absl::Status& why) {
  const ManifestSegment& expected = directory_.manifest.segments[segment_index];
  ArchiveDamage damage;
  damage.status = why;
  if (file == nullptr) {
    damage.effect = kSegmentEffect;
    damage.lost = {{segment_start_}, expected.size_bytes};
    damage.document_count = expected.document_count;
    report_.damaged_block_count += expected.block_count;
    Report(damage);
    AddProgress(expected.block_count);
    return;
  }
  // The place of a block's text is known only if the sizes of all blocks are,
  // and the text is stored in order.
  const auto blocks = SegmentReader::RecoverBlockSpans(
      *file, directory_.manifest, expected, codec_.get());
  const bool has_place = !expected.has_layout() && blocks.ok();
  damage.effect = kSegmentEffect;
  if (!has_place) {
    damage.lost = {{segment_start_}, expected.size_bytes};
    damage.document_count = expected.document_count;
  }
  Report(damage);
  uint64_t position = kSegmentHeaderSizeBytes;
  for (uint64_t i = 0; i < expected.block_count; ++i) {
    const BlockAddress block = {segment_index, i};
    const uint64_t before = position;
    damage = {};
    const auto text_size_bytes =
        blocks.ok() ? std::optional(blocks->SizeOf(i)) : std::nullopt;
    damage.status = SalvageBlock(file->file, block, text_size_bytes, position);
    AddProgress(1);
    if (damage.status.ok()) {
      if (text_size_bytes.has_value()) {
        AddGood(*text_size_bytes);
      }
      continue;
    }
    damage.block = block;
    if (has_place) {
      damage.document_count = expected.document_count;
      damage.is_document_count_exact = false;
      damage.lost = {{segment_start_ + blocks->StartOf(i)}, *text_size_bytes};
    }
    uint64_t lost_block_count = 1;
    if (position == before) {
      // Without the index the offset of the next frame is unknown.
      lost_block_count = expected.block_count - i;
      if (has_place) {
        damage.lost.size_bytes =
            segment_start_ + expected.size_bytes - damage.lost.offset.value;
      }
      damage.status = absl::Status(
          damage.status.code(),
          absl::StrCat(damage.status.message(), "; nor can the ",
                       FormatCounted(lost_block_count - 1, "block", "blocks"),
                       " after it be found"));
      AddProgress(lost_block_count - 1);
      i = expected.block_count;
    }
    report_.damaged_block_count += lost_block_count;
    Report(damage);
  }
}

absl::Status Verifier::SalvageBlock(const ReadableFile& opened,
                                    BlockAddress block,
                                    std::optional<uint32_t> text_size_bytes,
                                    uint64_t& position) const {
  const ManifestSegment& expected =
      directory_.manifest.segments[block.segment_index];
  const int fd = opened.fd.get();
  const std::string file =
      absl::StrCat(opened.path, ": block ", block.block_index);
  uint8_t word_bytes[kFrameWordSizeBytes];
  QUIRE_RETURN_IF_ERROR(ReadExactly(fd, position, word_bytes, file));
  const auto word = ParseFrameWord(LoadLittleEndian<uint32_t>(word_bytes));
  QUIRE_RETURN_IF_ERROR(InFile(file, word.status()));
  std::vector<uint8_t> raw(
      text_size_bytes.value_or(directory_.manifest.block_size_bytes_max));
  const uint64_t frame_size_bytes =
      uint64_t{word->payload_size_bytes} + kFrameOverheadSizeBytes;
  if (word->payload_size_bytes > raw.size() ||
      frame_size_bytes > opened.size_bytes() - position) {
    return InFile(file, Damaged(absl::StrCat("payload size is ",
                                             word->payload_size_bytes)));
  }
  std::vector<uint8_t> frame(frame_size_bytes);
  QUIRE_RETURN_IF_ERROR(ReadExactly(fd, position, frame, file));
  position += frame_size_bytes;
  QUIRE_RETURN_IF_ERROR(InFile(
      file, CheckFrame({expected.number, block.block_index}, frame).status()));
  if (codec_ == nullptr || !text_size_bytes.has_value()) {
    return absl::OkStatus();
  }
  const auto scratch = codec_->NewScratch();
  return InFile(file, DecodeFrame(frame, raw, *codec_, *scratch));
}

void Verifier::AddProgress(uint64_t block_count) {
  progress_.blocks_done += block_count;
  if (options_.on_progress) {
    options_.on_progress(progress_);
  }
}

void Verifier::AddLost(const SegmentReader& segment, uint64_t block_index,
                       ArchiveDamage& damage) const {
  uint64_t next_document = 0;
  segment.layout().VisitUses(segment.blocks().StartOf(block_index),
                             segment.BlockSizeBytes(block_index),
                             [&](uint64_t offset, uint64_t size_bytes) {
                               next_document =
                                   AddLostPart(segment, offset, size_bytes,
                                               next_document, damage);
                             });
}

uint64_t Verifier::AddLostPart(const SegmentReader& segment, uint64_t offset,
                               uint64_t size_bytes, uint64_t first_document,
                               ArchiveDamage& damage) const {
  if (damage.lost.size_bytes == 0) {
    damage.lost = {{segment_start_ + offset}, size_bytes};
  } else {
    ++damage.further_lost_count;
    damage.further_lost_size_bytes += size_bytes;
  }
  const DocumentIndex& documents = segment.documents();
  uint64_t i = std::max(documents.At(offset), first_document);
  for (; i < documents.count() &&
         documents.Range(i).offset.value < offset + size_bytes;
       ++i) {
    if (documents.Range(i).size_bytes == 0) {
      continue;
    }
    ++damage.document_count;
    if (damage.documents.size() < options_.documents_max) {
      Document document = documents.Describe(i);
      document.ordinal.value = first_ordinal_ + i;
      document.range.offset.value += segment_start_;
      document.id = documents.Id(i);
      damage.documents.push_back(std::move(document));
    }
  }
  return i;
}

}  // namespace

absl::StatusOr<VerifyReport> VerifyArchive(
    const std::string& path, const VerifyOptions& options,
    const std::function<void(const ArchiveDamage&)>& on_damage) {
  ArchiveDirectory directory;
  std::optional<ArchiveFiles> files;
  const absl::Status status =
      WithArchiveDirectory(path, [&](ArchiveDirectory& opened) {
        files = OpenArchiveFiles(opened, DirectIo::kOff);
        directory = std::move(opened);
        return files->FirstFault(directory.manifest);
      });
  // A file's fault is damage, which is reported for that file.
  if (!files.has_value() || files->FirstFault(directory.manifest) != status) {
    return status;
  }
  return Verifier(std::move(directory), *std::move(files), options, on_damage)
      .Run();
}

}  // namespace quire
