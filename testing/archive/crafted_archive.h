// SPDX-License-Identifier: GPL-3.0-or-later
//
// Archives assembled by hand, with one fault and no other.
#ifndef QUIRE_TESTING_ARCHIVE_CRAFTED_ARCHIVE_H_
#define QUIRE_TESTING_ARCHIVE_CRAFTED_ARCHIVE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "codecs/block_codec.h"
#include "server/archive/format/archive_format.h"
#include "server/archive/format/manifest.h"
#include "server/archive/format/segment_format.h"

namespace quire {

// Parts of sections (FORMAT.md, section 6).
std::string CraftedColumn(const std::vector<uint64_t>& values);
std::string CraftedColumns(const std::vector<uint64_t>& first,
                           const std::vector<uint64_t>& second);
std::string CraftedVarints(const std::vector<uint64_t>& values);

// Fields of a layout (FORMAT.md, "Layout"); by default that of
// Crafted::UseLayout().
struct CraftedLayout {
  uint64_t stored_text_size_bytes = 1024;
  uint64_t run_count = 2;
  char kind = 0;
  std::vector<uint64_t> sizes = {1024, 512};
  // Offset of each run from the end of the preceding one.
  std::vector<int64_t> steps = {0, -1024};

  std::string Section() const;
};

// An archive of one segment whose parts can be set to anything; checksums are
// computed afterwards. Initially valid: one document "a" with the text "hello".
struct Crafted {
  std::string text = "hello";
  std::string stored;
  // The stored block begins with a recipe.
  bool has_recipe = false;
  uint32_t partition_size_bytes = 0;
  uint64_t frame_index = 0;
  std::vector<std::pair<uint32_t, std::string>> sections = {
      {1, CraftedColumn({5})},
      {2, CraftedColumn({5})},
      {3, CraftedVarints({0, 1}) + "a"},
      {9, CraftedColumns({1}, {5})}};
  uint64_t document_count = 1;
  uint64_t id_size_bytes = 1;
  SegmentHeader header = {.number = 0, .block_size_bytes = 4096, .codec_id = 1};
  std::string dictionary;
  DictionaryHeader dictionary_header;
  // Serialised; empty: none.
  std::string symbol_table;
  // Edit the assembled parts.
  std::function<void(SegmentHeader&)> edit_header = [](SegmentHeader&) {};
  std::function<void(std::string&)> edit_frame = [](std::string&) {};
  std::function<void(SegmentFooter&)> edit_footer = [](SegmentFooter&) {};
  std::function<void(std::string&)> edit_footer_bytes = [](std::string&) {};
  std::function<void(std::string&)> edit_segment = [](std::string&) {};
  std::function<void(std::string&)> edit_symbol_table_file = [](std::string&) {
  };
  std::function<void(Manifest&)> edit_manifest = [](Manifest&) {};
  // Called after the uuid was derived from the rest of the manifest.
  std::function<void(Manifest::Uuid&)> edit_uuid = [](Manifest::Uuid&) {};
  std::function<void(std::string&)> edit_manifest_bytes = [](std::string&) {};

  // Documents without text, with these ids in order of rank.
  void SetEmptyDocuments(uint64_t count, uint64_t id_size, std::string ids) {
    text.clear();
    document_count = count;
    id_size_bytes = id_size;
    sections = {{2, CraftedColumn(std::vector<uint64_t>(count, 0))},
                {3, std::move(ids)}};
  }

  void UseCodec(CodecId id, std::string payload, std::string raw) {
    header.codec_id = static_cast<uint32_t>(id);
    text = std::move(raw);
    stored = std::move(payload);
    sections[0].second = CraftedColumn({stored.size()});
    sections[1].second = CraftedColumn({text.size()});
    SetSection(9, CraftedColumns({1}, {text.size()}));
  }

  // Replaces the section of that type, or adds it in order.
  void SetSection(uint32_t type, std::string section);

  // Stores 1024 bytes once for a document of 1536, whose beginning is repeated.
  // `section` is the layout, by default CraftedLayout().
  void UseLayout(std::string section);

  void UseDictionary(std::string dictionary_text) {
    dictionary = std::move(dictionary_text);
    dictionary_header.size_bytes = dictionary.size();
    dictionary_header.hash = Checksum64(AsBytes(dictionary));
    UseCodec(CodecId::kRlzZz, std::string(1, '\0') + "hello", "hello you all");
  }
};

// A serialised symbol table of "the " and "e".
std::string CraftedSymbolTable();

// Writes the archive to the directory `path`.
void WriteCrafted(const std::string& path, const Crafted& made);

// Recomputes the checksum that is `trailing_bytes` before the end of `file` and
// covers all bytes before it.
void Reseal(std::string& file, size_t trailing_bytes = 0);

}  // namespace quire

#endif  // QUIRE_TESTING_ARCHIVE_CRAFTED_ARCHIVE_H_
