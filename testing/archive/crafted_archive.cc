// SPDX-License-Identifier: GPL-3.0-or-later
#include "testing/archive/crafted_archive.h"

#include <algorithm>
#include <filesystem>

#include "absl/strings/str_cat.h"

#include "codecs/base/checksum.h"
#include "codecs/base/varint.h"
#include "server/archive/format/block_frame.h"
#include "server/archive/format/column.h"
#include "testing/archive/archive_testing.h"

namespace quire {
namespace {

std::string MakeSegment(const Crafted& made, const CodecSpec& codec,
                        ManifestSegment& entry) {
  SegmentHeader header = made.header;
  header.partition_size_bytes = codec.partition_size_bytes;
  if (made.dictionary_header.size_bytes != 0) {
    header.dictionary_hash = made.dictionary_header.hash;
  }
  made.edit_header(header);
  std::string segment = EncodeSegmentHeader(header);
  SegmentFooter footer;
  if (!made.text.empty()) {
    std::vector<uint8_t> bytes;
    const uint64_t checksum = EncodeFrame(
        {made.header.number, made.frame_index}, AsBytes(made.text),
        {.bytes = AsBytes(made.stored), .has_recipe = made.has_recipe}, bytes);
    std::string frame(AsText(bytes));
    made.edit_frame(frame);
    footer.block_chain = ExtendBlockChain(0, checksum);
    footer.block_count = 1;
    segment += frame;
  }
  footer.document_count = made.document_count;
  footer.size_bytes = made.text.size();
  footer.id_size_bytes = made.id_size_bytes;
  footer.blocks_end = segment.size();
  for (const auto& [type, bytes] : made.sections) {
    footer.sections.push_back({.type = type,
                               .method = CompressionMethod::kNone,
                               .offset = segment.size(),
                               .stored_size_bytes = bytes.size(),
                               .size_bytes = bytes.size(),
                               .checksum = Checksum64(AsBytes(bytes))});
    segment += bytes;
  }
  made.edit_footer(footer);
  std::string footer_bytes = EncodeSegmentFooter(footer, made.header.number);
  made.edit_footer_bytes(footer_bytes);
  segment += footer_bytes;
  entry.block_count = footer.block_count;
  entry.document_count = footer.document_count;
  entry.size_bytes = footer.size_bytes;
  entry.id_size_bytes = footer.id_size_bytes;
  entry.derived_id_count = footer.derived_id_count;
  entry.footer_checksum = footer.checksum;
  entry.stored_text_size_bytes = footer.size_bytes;
  entry.run_count = footer.size_bytes == 0 ? 0 : 1;
  entry.span_count = footer.block_count == 0 ? 0 : 1;
  for (const SectionEntry& section : footer.sections) {
    entry.sections.push_back(
        {section.type, section.size_bytes, section.stored_size_bytes});
  }
  return segment;
}

}  // namespace

std::string CraftedColumn(const std::vector<uint64_t>& values) {
  std::string column;
  AppendColumn(values, column);
  return column;
}

std::string CraftedColumns(const std::vector<uint64_t>& first,
                           const std::vector<uint64_t>& second) {
  return CraftedColumn(first) + CraftedColumn(second);
}

std::string CraftedVarints(const std::vector<uint64_t>& values) {
  std::string bytes;
  for (const uint64_t value : values) {
    AppendVarint(value, bytes);
  }
  return bytes;
}

namespace {

std::string LayoutText() {
  std::string text;
  while (text.size() < 1024) {
    absl::StrAppend(&text, "line ", text.size(), " of the stored text\n");
  }
  return text.substr(0, 1024);
}

}  // namespace

std::string CraftedLayout::Section() const {
  std::string section = CraftedVarints({stored_text_size_bytes, run_count});
  section.push_back(kind);
  section += CraftedColumn(sizes);
  std::vector<uint64_t> zigzag;
  for (const int64_t step : steps) {
    zigzag.push_back(ZigZag(step));
  }
  section += CraftedColumn(zigzag);
  return section;
}

void Crafted::SetSection(uint32_t type, std::string section) {
  const auto place = std::ranges::lower_bound(
      sections, type, {}, &std::pair<uint32_t, std::string>::first);
  if (place != sections.end() && place->first == type) {
    place->second = std::move(section);
  } else {
    sections.emplace(place, type, std::move(section));
  }
}

void Crafted::UseLayout(std::string section) {
  text = LayoutText();
  sections[0].second = CraftedColumn({1024});
  sections[1].second = CraftedColumn({1536});
  SetSection(8, std::move(section));
  SetSection(9, CraftedColumns({1}, {1024}));
  const std::string document = LayoutText() + LayoutText().substr(0, 512);
  SetSection(0x8000000A,
             CraftedVarints({1}) +
                 CraftedColumns({1536}, {Checksum64(AsBytes(document))}));
  edit_footer = [](SegmentFooter& footer) { footer.size_bytes = 1536; };
  edit_manifest = [](Manifest& manifest) {
    manifest.segments[0].stored_text_size_bytes = 1024;
    manifest.segments[0].run_count = 2;
  };
}

std::string CraftedSymbolTable() {
  return std::string("\x01\x02\0\0\x0A\x14\x34\x01\0\x01\0\0\x01\0\0\0\0", 17) +
         "the e";
}

void WriteCrafted(const std::string& path, const Crafted& made) {
  std::filesystem::create_directories(path);
  Manifest manifest;
  manifest.codec.id = static_cast<CodecId>(made.header.codec_id);
  if (const CodecInfo* codec = FindCodec(manifest.codec.id)) {
    manifest.codec = DefaultCodecSpec(*codec);
    manifest.codec.partition_size_bytes = made.partition_size_bytes;
  }
  manifest.block_size_bytes = 4096;
  manifest.block_size_bytes_max = 8192;
  manifest.slices_per_mib_max = 2;
  manifest.next_segment_number = 1;
  manifest.writer = "make_golden";
  ManifestSegment entry;
  entry.codec_level = manifest.codec.level;
  std::string segment = MakeSegment(made, manifest.codec, entry);
  made.edit_segment(segment);
  entry.file_size_bytes = segment.size();
  manifest.segments.push_back(entry);
  if (made.dictionary_header.size_bytes != 0) {
    DictionaryHeader header = made.dictionary_header;
    header.stored_size_bytes = made.dictionary.size();
    header.stored_checksum = Checksum64(AsBytes(made.dictionary));
    const std::string file = EncodeDictionaryHeader(header) + made.dictionary;
    manifest.dictionary = {header.hash, header.size_bytes, file.size()};
    WriteTestFile(absl::StrCat(path, "/", DictionaryFileName(header.hash)),
                  file);
  }
  if (!made.symbol_table.empty()) {
    const uint64_t hash = Checksum64(AsBytes(made.symbol_table));
    manifest.symbol_table = {hash,
                             static_cast<uint32_t>(made.symbol_table.size())};
    std::string file = EncodeSymbolTableFile(AsBytes(made.symbol_table));
    made.edit_symbol_table_file(file);
    WriteTestFile(absl::StrCat(path, "/", SymbolTableFileName(hash)), file);
  }
  made.edit_manifest(manifest);
  manifest.uuid = manifest.DeriveUuid();
  made.edit_uuid(manifest.uuid);
  std::string manifest_bytes = EncodeManifest(manifest);
  made.edit_manifest_bytes(manifest_bytes);
  WriteTestFile(path + "/MANIFEST", manifest_bytes);
  WriteTestFile(path + "/segment-00000000", segment);
}

void Reseal(std::string& file, size_t trailing_bytes) {
  const size_t end = file.size() - trailing_bytes - 8;
  const uint64_t checksum = Checksum64(AsBytes(file).first(end));
  for (size_t i = 0; i < 8; ++i) {
    file[end + i] = static_cast<char>(checksum >> (8 * i));
  }
}

}  // namespace quire
