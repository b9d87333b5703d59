// SPDX-License-Identifier: GPL-3.0-or-later
#include "testing/archive/archive_testing.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"

#include "codecs/base/bytes.h"
#include "codecs/base/check.h"
#include "codecs/base/checksum.h"
#include "codecs/base/status_macros.h"
#include "server/archive/archive_part.h"
#include "server/archive/capture_scan.h"
#include "server/archive/field_reader.h"

namespace quire {
namespace {

NewDocument Describe(const TestDocument& document) {
  return {.id = document.id,
          .size_bytes = document.text.size(),
          .capture_time_ms = document.capture_time_ms,
          .record_type = document.record_type,
          .media_type = document.media_type,
          .fields = document.fields,
          .capture = document.capture.has_value()
                         ? std::optional(
                               NewCapture{.key = document.capture->key,
                                          .url = document.capture->url,
                                          .status = document.capture->status,
                                          .digest = document.capture->digest})
                         : std::nullopt,
          .deposit = document.deposit};
}

// Ends the segment.
absl::Status WriteTestBlocks(ByteView left, const TestBlockSizes& block_sizes,
                             const PayloadCodec* codec, ArchiveWriter& writer) {
  const auto scratch = codec == nullptr ? nullptr : codec->NewScratch();
  const std::vector<size_t>& sizes = block_sizes.sizes_bytes;
  for (size_t i = 0; !left.empty(); ++i) {
    const ByteView raw =
        left.first(std::min(left.size(), sizes[std::min(i, sizes.size() - 1)]));
    left = left.subspan(raw.size());
    std::vector<uint8_t> stored;
    Payload payload;
    if (codec != nullptr) {
      stored.resize(codec->StoredSizeMax(raw.size()));
      QUIRE_ASSIGN_OR_RETURN(payload, codec->Encode(raw, stored, *scratch));
    }
    QUIRE_RETURN_IF_ERROR(writer.AppendBlock(raw, payload));
  }
  return writer.FinishSegment();
}

}  // namespace

absl::Status WriteTestSegment(const TestSegment& segment,
                              const TestBlockSizes& block_sizes,
                              const PayloadCodec* codec,
                              ArchiveWriter& writer) {
  std::string text;
  for (const TestDocument& document : segment) {
    QUIRE_RETURN_IF_ERROR(writer.AddDocument(Describe(document)));
    text += document.text;
  }
  return WriteTestBlocks(AsBytes(text), block_sizes, codec, writer);
}

absl::Status WriteTestSegment(const TestSegment& segment,
                              const std::string& stored_text,
                              std::vector<StoredRun> runs,
                              const TestBlockSizes& block_sizes,
                              const PayloadCodec* codec,
                              ArchiveWriter& writer) {
  LayoutSection layout = {.stored_text_size_bytes = stored_text.size(),
                          .runs = std::move(runs),
                          .checksums = {}};
  DocumentIndexBuilder documents;
  std::string text;
  for (const TestDocument& document : segment) {
    QUIRE_RETURN_IF_ERROR(documents.Add(Describe(document)));
    text += document.text;
  }
  TextChecksummer checksummer;
  checksummer.Add(AsBytes(text));
  layout.checksums = checksummer.Take();
  QUIRE_RETURN_IF_ERROR(
      writer.SetLayout(std::move(layout), std::move(documents)));
  return WriteTestBlocks(AsBytes(stored_text), block_sizes, codec, writer);
}

absl::StatusOr<ArchiveInfo> WriteTestArchive(
    const std::string& path, const ArchiveWriterOptions& options,
    const std::vector<TestSegment>& segments,
    const std::shared_ptr<const CodecContext>& context,
    size_t inflated_text_size_max) {
  QUIRE_ASSIGN_OR_RETURN(
      const auto codec,
      MakePayloadCodec(options.codec, context, CodecUse::kEncodeAndDecode,
                       inflated_text_size_max));
  QUIRE_ASSIGN_OR_RETURN(const auto writer,
                         ArchiveWriter::Create(path, options, context));
  if (context != nullptr && !context->symbol_table.empty()) {
    QUIRE_RETURN_IF_ERROR(writer->SetSymbolTable(context->symbol_table));
  }
  for (const TestSegment& segment : segments) {
    QUIRE_RETURN_IF_ERROR(WriteTestSegment(segment, options.block_size_bytes,
                                           codec.get(), *writer));
  }
  return writer->Commit();
}

absl::StatusOr<std::string> ReadTestRange(const Archive& archive,
                                          LogicalRange range) {
  QUIRE_ASSIGN_OR_RETURN(const std::vector<BlockSlice> slices,
                         archive.Plan(range));
  const auto scratch = archive.codec().NewScratch();
  std::string text;
  std::vector<uint8_t> raw;
  for (const BlockSlice& slice : slices) {
    raw.resize(archive.BlockSizeBytes(slice.block));
    QUIRE_RETURN_IF_ERROR(archive.ReadBlock(slice.block, raw, *scratch));
    text.append(
        reinterpret_cast<const char*>(raw.data()) + slice.offset_in_block,
        slice.size_bytes);
  }
  return text;
}

std::vector<std::string> ReadTestFields(const Archive& archive) {
  std::vector<uint32_t> columns(archive.fields().size());
  std::iota(columns.begin(), columns.end(), uint32_t{0});
  DocumentFieldReader reader(archive, columns, BlockingPartLoader(archive));
  std::vector<FieldView> values;
  std::vector<std::string> texts;
  for (uint64_t i = 0; i < archive.info().document_count; ++i) {
    const absl::StatusOr<bool> is_read = reader.Read({i}, values);
    std::string& text = texts.emplace_back();
    for (size_t column = 0; column < columns.size(); ++column) {
      absl::StrAppend(&text, column == 0 ? "" : " ",
                      archive.fields()[column].name, "=",
                      is_read.ok() ? FormatField(values[column])
                                   : is_read.status().ToString());
    }
  }
  return texts;
}

std::vector<std::string> ReadTestCaptures(const Archive& archive) {
  CaptureScan scan(archive, archive.info().document_count,
                   {.range = {.begin = "", .end = "\xFF"}}, std::nullopt,
                   BlockingPartLoader(archive));
  std::vector<std::string> captures;
  while (true) {
    FoundCapture found;
    const absl::StatusOr<CaptureScan::Step> step = scan.Next(found);
    if (!step.ok()) {
      captures.push_back(step.status().ToString());
    }
    if (!step.ok() || *step == CaptureScan::Step::kEnd) {
      return captures;
    }
    const std::string id = archive.GetDocument(found.place.ordinal)->id;
    captures.push_back(absl::StrCat(
        found.place.key, " ", found.place.time_ms, " ",
        found.place.ordinal.value, " ", found.status, " ", found.digest, " ",
        found.id_skip_bytes.has_value() ? id.substr(*found.id_skip_bytes)
                                        : found.url));
  }
}

TestSegment RandomTestSegment(size_t document_count, size_t text_size_max,
                              std::mt19937_64& random) {
  const auto below = [&random](size_t limit) { return random() % limit; };
  TestSegment segment;
  for (size_t i = 0; i < document_count; ++i) {
    TestDocument document;
    if (i > 0 && below(8) == 0) {
      document.id = segment[below(i)].id;
    } else {
      const char* const starts[] = {"", "a", "http://example.org/", "\xFF\xFF"};
      document.id = starts[below(4)];
      for (size_t n = below(6); n > 0; --n) {
        document.id.push_back(
            static_cast<char>(below(4) == 0 ? below(256) : 'a' + below(3)));
      }
    }
    const size_t text_size = below(4) == 0 ? 0 : below(text_size_max + 1);
    while (document.text.size() < text_size) {
      if (below(3) == 0 || document.text.empty()) {
        document.text.push_back(static_cast<char>(below(256)));
      } else {
        const size_t from = below(document.text.size());
        document.text += document.text.substr(from, below(40));
      }
    }
    document.text.resize(text_size);
    if (below(2) == 0) {
      document.capture_time_ms =
          static_cast<int64_t>(below(uint64_t{1} << 40)) - (int64_t{1} << 39);
    }
    document.record_type = below(3) == 0 ? "" : "response";
    document.media_type =
        below(3) == 0 ? "" : "text/" + std::to_string(below(5));
    segment.push_back(std::move(document));
  }
  return segment;
}

}  // namespace quire
