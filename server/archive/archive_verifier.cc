// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/archive/archive_verifier.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <new>
#include <system_error>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"

#include "codecs/base/byte_size.h"
#include "codecs/base/endian.h"
#include "codecs/base/status_macros.h"
#include "codecs/block_codec.h"
#include "server/archive/files/archive_directory.h"
#include "server/archive/files/dictionary_file.h"
#include "server/archive/files/symbol_table_file.h"
#include "server/archive/format/block_frame.h"
#include "server/archive/segment_reader.h"

namespace quire {
namespace {

// Blocks between two looks at what the threads found: bounds what they hold.
constexpr uint64_t kBatchBlockCount = 1024;

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
  };

  void MakeCodec();
  absl::StatusOr<std::string> ReadSymbolTable();
  void VerifySegment(uint32_t segment_index);
  void VerifyBlocks(uint32_t segment_index, const SegmentReader& segment);
  std::vector<BlockResult> ReadBatch(const SegmentReader& segment,
                                     uint64_t first_block_index,
                                     uint64_t block_count) const;
  BlockResult ReadOne(const SegmentReader& segment, uint64_t block_index,
                      std::vector<uint8_t>& frame, std::vector<uint8_t>& raw,
                      BlockCodec::Scratch* scratch) const;
  // Reads the blocks of a segment whose indexes are of no use, from its start.
  // `file` is null if it cannot be opened.
  void SalvageSegment(uint32_t segment_index, const ReadableFile* file,
                      const absl::Status& why);
  // Moves `position` past the block's frame if that can be told.
  absl::Status SalvageBlock(const ReadableFile& opened, BlockAddress block,
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
  // Fills in the documents that `damage.lost` touches.
  void AddDocuments(const SegmentReader& segment, ArchiveDamage& damage) const;
  LogicalRange BlockRange(BlockAddress block) const;

  const ArchiveDirectory directory_;
  ArchiveFiles files_;
  const VerifyOptions& options_;
  const std::function<void(const ArchiveDamage&)>& on_damage_;
  // Null if the dictionary is damaged: then blocks are checked, not decoded.
  std::unique_ptr<const BlockCodec> codec_;
  VerifyReport report_;
  VerifyProgress progress_;
  // Of the current segment.
  uint64_t segment_start_ = 0;
  uint64_t first_ordinal_ = 0;
};

VerifyReport Verifier::Run() {
  const Manifest& manifest = directory_.manifest;
  report_.info = manifest.Describe(directory_.manifest_file.size_bytes);
  progress_.blocks_total = report_.info.block_count;
  if (manifest.DeriveUuid() != manifest.uuid) {
    ArchiveDamage damage;
    damage.status =
        InFile(absl::StrCat(directory_.path, "/", kManifestFileName),
               Damaged("the uuid is not the one that the contents have"));
    Report(damage);
  }
  MakeCodec();
  for (uint32_t i = 0; i < manifest.segments.size(); ++i) {
    VerifySegment(i);
    segment_start_ += manifest.segments[i].size_bytes;
    first_ordinal_ += manifest.segments[i].document_count;
  }
  AddProgress(0);
  return report_;
}

void Verifier::MakeCodec() {
  const Manifest& manifest = directory_.manifest;
  const auto make = [&]() -> absl::StatusOr<std::unique_ptr<BlockCodec>> {
    auto context = std::make_shared<CodecContext>();
    if (files_.dictionary.has_value()) {
      QUIRE_RETURN_IF_ERROR(files_.dictionary->status());
      QUIRE_ASSIGN_OR_RETURN(
          context->dictionary,
          ReadDictionaryFile(**files_.dictionary, *manifest.dictionary));
    }
    QUIRE_ASSIGN_OR_RETURN(context->symbol_table, ReadSymbolTable());
    auto codec = MakeBlockCodec(manifest.codec, context, CodecUse::kDecode);
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
    // Nothing but answers in FSST needs it.
    ArchiveDamage damage;
    damage.status = table.status();
    Report(damage);
    return "";
  }
  return table;
}

void Verifier::VerifySegment(uint32_t segment_index) {
  const Manifest& manifest = directory_.manifest;
  const ManifestSegment& expected = manifest.segments[segment_index];
  absl::StatusOr<SegmentFile> file = std::move(files_.segments[segment_index]);
  if (absl::IsUnavailable(file.status())) {
    // Too many files were open: those of the segments before no longer are.
    std::string note;
    file = OpenSegmentFile(directory_, expected.number, DirectIo::kOff, note);
  }
  if (!file.ok()) {
    SalvageSegment(segment_index, nullptr, file.status());
    return;
  }
  const auto segment = SegmentReader::Open(*file, manifest, expected,
                                           /*cancel=*/nullptr);
  if (segment.ok()) {
    VerifyBlocks(segment_index, *segment);
  } else {
    SalvageSegment(segment_index, &file->file, segment.status());
  }
}

void Verifier::VerifyBlocks(uint32_t segment_index,
                            const SegmentReader& segment) {
  uint64_t chain = 0;
  bool all_good = true;
  for (uint64_t first = 0; first < segment.block_count();
       first += kBatchBlockCount) {
    const uint64_t count =
        std::min(kBatchBlockCount, segment.block_count() - first);
    const std::vector<BlockResult> results = ReadBatch(segment, first, count);
    for (uint64_t i = 0; i < count; ++i) {
      const BlockAddress block = {segment_index, first + i};
      if (results[i].status.ok()) {
        chain = ExtendBlockChain(chain, results[i].checksum);
        AddGood(segment.BlockSizeBytes(first + i));
        continue;
      }
      all_good = false;
      ++report_.damaged_block_count;
      ArchiveDamage damage;
      damage.status = results[i].status;
      damage.block = block;
      damage.lost = BlockRange(block);
      AddDocuments(segment, damage);
      Report(damage);
    }
    AddProgress(count);
  }
  if (all_good && chain != segment.footer().block_chain) {
    ArchiveDamage damage;
    damage.status = InFile(segment.file(),
                           ChecksumMismatch("checksum over all blocks", chain,
                                            segment.footer().block_chain));
    Report(damage);
  }
}

std::vector<Verifier::BlockResult> Verifier::ReadBatch(
    const SegmentReader& segment, uint64_t first_block_index,
    uint64_t block_count) const {
  std::vector<BlockResult> results(block_count);
  std::atomic<uint64_t> next = 0;
  std::atomic<bool> lacks_memory = false;
  const auto work = [&] {
    // Past the end of a thread it would end the process.
    try {
      const auto scratch = codec_ == nullptr ? nullptr : codec_->NewScratch();
      std::vector<uint8_t> frame;
      std::vector<uint8_t> raw;
      for (uint64_t i = next++; i < block_count; i = next++) {
        results[i] =
            ReadOne(segment, first_block_index + i, frame, raw, scratch.get());
      }
    } catch (const std::bad_alloc&) {
      lacks_memory = true;
    }
  };
  {
    std::vector<std::jthread> threads(
        std::min<uint64_t>(block_count, options_.thread_count) - 1);
    try {
      std::ranges::generate(threads, [&work] { return std::jthread(work); });
    } catch (const std::system_error&) {
      // The system gives no more: those there are do all of it.
    }
    work();
  }
  if (lacks_memory) {
    throw std::bad_alloc();
  }
  return results;
}

Verifier::BlockResult Verifier::ReadOne(const SegmentReader& segment,
                                        uint64_t block_index,
                                        std::vector<uint8_t>& frame,
                                        std::vector<uint8_t>& raw,
                                        BlockCodec::Scratch* scratch) const {
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
  return result;
}

void Verifier::SalvageSegment(uint32_t segment_index, const ReadableFile* file,
                              const absl::Status& why) {
  const ManifestSegment& expected = directory_.manifest.segments[segment_index];
  ArchiveDamage damage;
  damage.status = why;
  if (file == nullptr) {
    damage.lost = {{segment_start_}, expected.size_bytes};
    damage.document_count = expected.document_count;
    report_.damaged_block_count += expected.block_count;
    Report(damage);
    AddProgress(expected.block_count);
    return;
  }
  Report(damage);
  uint64_t position = kSegmentHeaderSizeBytes;
  for (uint64_t i = 0; i < expected.block_count; ++i) {
    const BlockAddress block = {segment_index, i};
    const uint64_t before = position;
    damage = {};
    damage.status = SalvageBlock(*file, block, position);
    AddProgress(1);
    if (damage.status.ok()) {
      AddGood(BlockRange(block).size_bytes);
      continue;
    }
    damage.block = block;
    damage.lost = BlockRange(block);
    uint64_t lost_block_count = 1;
    if (position == before) {
      // Without the index nothing says where the next frame begins.
      lost_block_count = expected.block_count - i;
      damage.lost.size_bytes =
          segment_start_ + expected.size_bytes - damage.lost.offset.value;
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
  std::vector<uint8_t> raw(BlockRange(block).size_bytes);
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
  if (codec_ == nullptr) {
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

void Verifier::AddDocuments(const SegmentReader& segment,
                            ArchiveDamage& damage) const {
  const DocumentIndex& documents = segment.documents();
  const uint64_t start = damage.lost.offset.value - segment_start_;
  const uint64_t end = start + damage.lost.size_bytes;
  for (uint64_t i = documents.At(start);
       i < documents.count() && documents.Range(i).offset.value < end; ++i) {
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
}

LogicalRange Verifier::BlockRange(BlockAddress block) const {
  const uint64_t start =
      block.block_index * directory_.manifest.block_size_bytes;
  const uint64_t left =
      directory_.manifest.segments[block.segment_index].size_bytes - start;
  return {{segment_start_ + start},
          std::min<uint64_t>(left, directory_.manifest.block_size_bytes)};
}

}  // namespace

absl::StatusOr<VerifyReport> VerifyArchive(
    const std::string& path, const VerifyOptions& options,
    const std::function<void(const ArchiveDamage&)>& on_damage) {
  try {
    ArchiveDirectory directory;
    std::optional<ArchiveFiles> files;
    const absl::Status status =
        WithArchiveDirectory(path, [&](ArchiveDirectory& opened) {
          files = OpenArchiveFiles(opened, DirectIo::kOff);
          directory = std::move(opened);
          return files->FirstFault(directory.manifest);
        });
    // The fault of a file is damage, which is reported where it belongs.
    if (!files.has_value() || files->FirstFault(directory.manifest) != status) {
      return status;
    }
    return Verifier(std::move(directory), *std::move(files), options, on_damage)
        .Run();
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError(
        absl::StrCat(path, ": not enough memory to verify it"));
  }
}

}  // namespace quire
