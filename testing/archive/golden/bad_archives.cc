// SPDX-License-Identifier: GPL-3.0-or-later
#include "testing/archive/golden/bad_archives.h"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

#include "codecs/base/checksum.h"
#include "testing/archive/crafted_archive.h"

namespace quire {

void WriteBad(const std::string& directory, const std::string& name,
              const std::function<void(Crafted&)>& spoil) {
  Crafted made;
  spoil(made);
  WriteCrafted(absl::StrCat(directory, "/", name), made);
}

namespace {

void WriteBadManifests(const std::string& directory) {
  const auto bytes = [&](const std::string& name,
                         std::function<void(std::string&)> edit) {
    WriteBad(directory, name,
             [&](Crafted& made) { made.edit_manifest_bytes = edit; });
  };
  bytes("manifest-magic", [](std::string& file) { file[0] = 'x'; });
  for (const int version : {0, 1, 2, 3, 5}) {
    bytes(absl::StrCat("manifest-version-", version),
          [version](std::string& file) {
            file[8] = static_cast<char>(version);
            Reseal(file);
          });
  }
  bytes("manifest-cut", [](std::string& file) { file.pop_back(); });
  bytes("manifest-longer", [](std::string& file) { file.push_back('\0'); });
  bytes("manifest-checksum", [](std::string& file) { file[20] ^= 1; });
  bytes("manifest-message", [](std::string& file) {
    file[16] = '\x07';
    Reseal(file);
  });
  bytes("manifest-feature", [](std::string& file) {
    // required_features = 19 of "fly".
    file.insert(file.size() - 8,
                "\x9A\x01\x03"
                "fly");
    file[12] = static_cast<char>(file[12] + 6);
    Reseal(file);
  });
  const auto fields = [&](const char* name,
                          std::function<void(Manifest&)> edit) {
    WriteBad(directory, name,
             [&](Crafted& made) { made.edit_manifest = edit; });
  };
  fields("manifest-codec",
         [](Manifest& m) { m.codec.id = static_cast<CodecId>(999); });
  fields("manifest-dictionary", [](Manifest& m) {
    m.dictionary = {.hash = 1, .size_bytes = 1, .file_size_bytes = 57};
  });
  fields("manifest-symbol-table",
         [](Manifest& m) { m.symbol_table = {.hash = 1, .size_bytes = 16}; });
  fields("manifest-block-size", [](Manifest& m) { m.block_size_bytes = 5000; });
  const auto partitions = [&](const char* name, uint32_t size_bytes) {
    fields(name, [size_bytes](Manifest& m) {
      m.codec = {
          .id = CodecId::kZlib, .level = 6, .partition_size_bytes = size_bytes};
      m.segments[0].codec_level = 6;
    });
  };
  partitions("manifest-partition-small", 2048);
  partitions("manifest-partition-size", 12288);
  partitions("manifest-partition-large", 2097152);
  fields("manifest-partition-copy",
         [](Manifest& m) { m.codec.partition_size_bytes = 4096; });
  fields("manifest-members-copy", [](Manifest& m) {
    m.members = {{CodecId::kCopy, 1, 5, 5}};
  });
  const auto members = [&](const char* name,
                           const std::vector<MemberBlocks>& counts) {
    WriteBad(directory, name, [&](Crafted& made) {
      made.UseDictionary("dictionary text");
      made.UseCodec(CodecId::kAuto, "\x02hello", "hello you all");
      made.edit_manifest = [counts](Manifest& m) { m.members = counts; };
    });
  };
  members("manifest-members-none", {});
  members("manifest-members-order",
          {{CodecId::kLz4, 1, 1, 1}, {CodecId::kCopy, 1, 12, 4}});
  members("manifest-members-sum", {{CodecId::kCopy, 2, 13, 6}});
  fields("manifest-segment-twice",
         [](Manifest& m) { m.segments.push_back(m.segments[0]); });
  fields("manifest-segment-number",
         [](Manifest& m) { m.next_segment_number = 0; });
  fields("manifest-next-number",
         [](Manifest& m) { m.next_segment_number = (1 << 24) + 1; });
  fields("manifest-counts", [](Manifest& m) { m.segments[0].block_count = 6; });
  fields("manifest-spans", [](Manifest& m) { m.segments[0].span_count = 2; });
  fields("manifest-spans-none",
         [](Manifest& m) { m.segments[0].span_count = 0; });
  fields("manifest-stored-text",
         [](Manifest& m) { m.segments[0].stored_text_size_bytes = 4; });
  fields("manifest-block-size-max",
         [](Manifest& m) { m.block_size_bytes_max = (1 << 20) + 1; });
  fields("manifest-block-size-less",
         [](Manifest& m) { m.block_size_bytes_max = 4095; });
  fields("manifest-slices",
         [](Manifest& m) { m.slices_per_mib_max = (1 << 20) + 1; });
  fields("manifest-slices-few", [](Manifest& m) { m.slices_per_mib_max = 0; });
  fields("manifest-sum", [](Manifest& m) {
    m.segments[0].size_bytes = ~uint64_t{0};
    m.segments[0].block_count = uint64_t{1} << 52;
  });
}

// Earlier states that no archive can have had.
void WriteBadStates(const std::string& directory) {
  const auto fields = [&](const char* name,
                          std::function<void(Manifest&)> edit) {
    WriteBad(directory, name,
             [&](Crafted& made) { made.edit_manifest = edit; });
  };
  fields("manifest-history", [](Manifest& m) {
    m.history = {{.uuid = {}, .size_bytes = 3, .document_count = 1},
                 {.uuid = {}, .size_bytes = 2, .document_count = 1}};
  });
  fields("manifest-history-future", [](Manifest& m) {
    m.history = {{.uuid = {}, .size_bytes = 5, .document_count = 2}};
  });
  fields("manifest-redacted-future", [](Manifest& m) {
    m.redacted_states = {{.uuid = {}, .size_bytes = 6, .document_count = 1}};
  });
}

void WriteBadDictionaries(const std::string& directory) {
  WriteBad(directory, "dictionary-hash", [](Crafted& made) {
    made.UseDictionary("dictionary text");
    made.dictionary[0] = 'D';
  });
  WriteBad(directory, "dictionary-bomb", [](Crafted& made) {
    made.UseDictionary("dictionary text");
    made.dictionary_header.method = CompressionMethod::kXz;
    made.dictionary_header.size_bytes = kDictionaryTextSizeBytesMax;
  });
  WriteBad(directory, "dictionary-not-xz", [](Crafted& made) {
    made.UseDictionary("dictionary text");
    made.dictionary_header.method = CompressionMethod::kXz;
  });
}

void WriteBadSymbolTables(const std::string& directory) {
  const auto table = [&](const char* name,
                         std::function<void(std::string&)> edit) {
    WriteBad(directory, name, [&](Crafted& made) {
      made.symbol_table = CraftedSymbolTable();
      edit(made.symbol_table);
    });
  };
  table("symbols-count", [](std::string& bytes) { bytes[1] = 3; });
  table("symbols-version", [](std::string& bytes) { bytes[4] = '\0'; });
  table("symbols-short", [](std::string& bytes) { bytes.pop_back(); });
  const auto file = [&](const char* name,
                        std::function<void(std::string&)> edit) {
    WriteBad(directory, name, [&](Crafted& made) {
      made.symbol_table = CraftedSymbolTable();
      made.edit_symbol_table_file = edit;
    });
  };
  file("symbols-checksum", [](std::string& bytes) { bytes.back() ^= 1; });
  file("symbols-cut", [](std::string& bytes) { bytes.pop_back(); });
  file("symbols-hash", [](std::string& bytes) {
    bytes[bytes.size() - 9] = 'a';
    Reseal(bytes);
  });
  file("symbols-size", [](std::string& bytes) {
    bytes[12] = 23;
    Reseal(bytes);
  });
}

void WriteBadStructures(const std::string& directory) {
  const auto segment = [&](const char* name,
                           std::function<void(std::string&)> edit) {
    WriteBad(directory, name, [&](Crafted& made) { made.edit_segment = edit; });
  };
  segment("segment-magic", [](std::string& file) { file[1] = 'q'; });
  segment("segment-header", [](std::string& file) { file[40] ^= 1; });
  segment("segment-reserved", [](std::string& file) {
    file[28] = 1;
    const uint64_t checksum = Checksum64(AsBytes(file).first(40));
    for (size_t i = 0; i < 8; ++i) {
      file[40 + i] = static_cast<char>(checksum >> (8 * i));
    }
  });
  segment("segment-version", [](std::string& file) { file[8] = 1; });
  segment("segment-end", [](std::string& file) { file.back() = 'x'; });
  segment("segment-short", [](std::string& file) { file.resize(50); });
  segment("section-checksum", [](std::string& file) {
    file[file.size() - 72 - 4 * size_t{40} - 1] ^= 1;
  });
  WriteBad(directory, "segment-number",
           [](Crafted& made) { made.header.number = 7; });
  WriteBad(directory, "segment-block-size",
           [](Crafted& made) { made.header.block_size_bytes = 8192; });
  const auto header = [&](const char* name,
                          std::function<void(SegmentHeader&)> edit) {
    WriteBad(directory, name, [&](Crafted& made) { made.edit_header = edit; });
  };
  header("segment-partition-size",
         [](SegmentHeader& h) { h.partition_size_bytes = 4096; });
  header("segment-dictionary", [](SegmentHeader& h) { h.dictionary_hash = 1; });
  WriteBad(directory, "trailer-derived", [](Crafted& made) {
    made.edit_footer_bytes = [](std::string& bytes) {
      bytes[bytes.size() - 20] = 1;
      Reseal(bytes, 8);
    };
  });
  WriteBad(directory, "footer-checksum", [](Crafted& made) {
    made.edit_footer_bytes = [](std::string& bytes) { bytes[0] ^= 2; };
  });
  const auto footer = [&](const char* name,
                          std::function<void(SegmentFooter&)> edit) {
    WriteBad(directory, name, [&](Crafted& made) { made.edit_footer = edit; });
  };
  footer("section-gap", [](SegmentFooter& f) { f.sections[1].offset += 1; });
  footer("section-beyond",
         [](SegmentFooter& f) { f.sections[2].stored_size_bytes = 1 << 20; });
  footer("section-order", [](SegmentFooter& f) { f.sections[1].type = 1; });
  footer("section-unknown", [](SegmentFooter& f) { f.sections[2].type = 31; });
  footer("section-method", [](SegmentFooter& f) {
    f.sections[0].method = static_cast<CompressionMethod>(9);
  });
  footer("section-bomb", [](SegmentFooter& f) {
    f.sections[2].method = CompressionMethod::kZstd;
    f.sections[2].size_bytes = uint64_t{1} << 40;
  });
  footer("section-not-zstd", [](SegmentFooter& f) {
    f.sections[0].method = CompressionMethod::kZstd;
  });
  footer("trailer-blocks-end", [](SegmentFooter& f) { f.blocks_end = 49; });
  footer("trailer-documents",
         [](SegmentFooter& f) { f.document_count = 1 << 20; });
}

// Three documents with text and the ids a:1, a:2 and a:3 in one run, which
// `runs` replaces.
void UseIdRuns(Crafted& made, std::string runs,
               const std::string& ids = "a:1") {
  made.document_count = 3;
  made.id_size_bytes = ids.size();
  made.SetSection(2, CraftedColumn({1, 2, 2}));
  made.SetSection(3, CraftedVarints({0, ids.size()}) + ids);
  made.SetSection(11, std::move(runs));
  made.edit_footer = [](SegmentFooter& footer) { footer.derived_id_count = 2; };
}

std::string IdRunsSection(uint64_t count, const std::vector<uint64_t>& entries,
                          const std::vector<uint64_t>& firsts,
                          const std::vector<uint64_t>& counts) {
  return CraftedVarints({count}) + CraftedColumns(entries, firsts) +
         CraftedColumn(counts);
}

void WriteBadIdRuns(const std::string& directory) {
  const auto bad = [&directory](const std::string& name, std::string runs,
                                const std::string& ids = "a:1") {
    WriteBad(directory, name,
             [&](Crafted& made) { UseIdRuns(made, std::move(runs), ids); });
  };
  bad("id-runs-none", CraftedVarints({0}));
  bad("id-runs-many", CraftedVarints({1 << 20}));
  bad("id-runs-entry", IdRunsSection(1, {1}, {1}, {3}));
  bad("id-runs-one", IdRunsSection(1, {0}, {1}, {1}));
  bad("id-runs-sum", IdRunsSection(1, {0}, {1}, {2}));
  bad("id-runs-large", IdRunsSection(1, {0}, {999'999'999'999'999'999}, {3}),
      "a:1");
  bad("id-runs-lowest", IdRunsSection(1, {0}, {1}, {3}), "a:2");
  WriteBad(directory, "id-runs-between", [](Crafted& made) {
    UseIdRuns(made, IdRunsSection(1, {0}, {1}, {2}));
    made.id_size_bytes = 8;
    made.SetSection(3, CraftedVarints({0, 3, 3, 2}) + "a:11x");
    made.edit_footer = [](SegmentFooter& footer) {
      footer.derived_id_count = 1;
    };
  });
  WriteBad(directory, "id-runs-empty", [](Crafted& made) {
    UseIdRuns(made, IdRunsSection(1, {0}, {1}, {3}));
    made.SetEmptyDocuments(3, 3, CraftedVarints({0, 3}) + "a:1");
    made.SetSection(11, IdRunsSection(1, {0}, {1}, {3}));
  });
  WriteBad(directory, "id-runs-manifest", [](Crafted& made) {
    UseIdRuns(made, IdRunsSection(1, {0}, {1}, {3}));
    made.edit_manifest = [](Manifest& manifest) {
      manifest.segments[0].derived_id_count = 1;
    };
  });
}

void WriteBadIndexes(const std::string& directory) {
  WriteBad(directory, "block-sizes-empty",
           [](Crafted& made) { made.sections[0].second = CraftedColumn({0}); });
  WriteBad(directory, "block-sizes-large",
           [](Crafted& made) { made.sections[0].second = CraftedColumn({6}); });
  WriteBad(directory, "block-sizes-missing",
           [](Crafted& made) { made.sections.erase(made.sections.begin()); });
  WriteBad(directory, "column-width", [](Crafted& made) {
    made.sections[1].second = std::string("\x09") + std::string(9, '\0');
  });
  WriteBad(directory, "document-sizes-sum",
           [](Crafted& made) { made.sections[1].second = CraftedColumn({4}); });
  WriteBad(directory, "document-sizes-beyond", [](Crafted& made) {
    made.sections[1].second = CraftedColumn({~uint64_t{0}});
  });
  WriteBad(directory, "ids-order", [](Crafted& made) {
    made.SetEmptyDocuments(2, 2, CraftedVarints({0, 0, 1, 1}) + "ba");
  });
  WriteBad(directory, "ids-sharing-short", [](Crafted& made) {
    made.SetEmptyDocuments(2, 3, CraftedVarints({0, 0, 1, 2}) + "aab");
  });
  WriteBad(directory, "ids-sharing-long", [](Crafted& made) {
    made.SetEmptyDocuments(1, 2, CraftedVarints({1, 1}) + "a");
  });
  WriteBad(directory, "ids-total", [](Crafted& made) {
    made.SetEmptyDocuments(1, 2, CraftedVarints({0, 1}) + "a");
  });
  WriteBad(directory, "ids-varint", [](Crafted& made) {
    made.SetEmptyDocuments(1, 1, std::string("\x80\x00\x01", 3) + "a");
  });
  const auto two_documents = [](Crafted& made, const char* second_id) {
    made.SetEmptyDocuments(2, 2,
                           CraftedVarints({0, second_id[0] == 'a' ? 1u : 0u, 1,
                                           second_id[0] == 'a' ? 0u : 1u}) +
                               (second_id[0] == 'a' ? "a" : "ab"));
  };
  WriteBad(directory, "order-twice", [&](Crafted& made) {
    two_documents(made, "b");
    made.SetSection(4, CraftedColumn({0, 1}));
  });
  WriteBad(directory, "order-beyond", [&](Crafted& made) {
    two_documents(made, "b");
    made.SetSection(4, CraftedColumn({4, 0}));
  });
  WriteBad(directory, "order-equal-ids", [&](Crafted& made) {
    two_documents(made, "a");
    made.SetSection(4, CraftedColumn({2, 3}));
  });
  WriteBad(directory, "times-unit", [](Crafted& made) {
    made.SetSection(5, CraftedVarints({0, 0}) + CraftedColumn({1}));
  });
  WriteBad(directory, "times-late", [](Crafted& made) {
    made.SetSection(5, CraftedVarints({0, 1}) + CraftedColumn({~uint64_t{0}}));
  });
  WriteBad(directory, "strings-index", [](Crafted& made) {
    made.SetSection(6, CraftedVarints({1, 1}) + "x" + CraftedColumn({2}));
  });
  WriteBad(directory, "strings-cut", [](Crafted& made) {
    made.SetSection(7, CraftedVarints({1, 9}) + "x" + CraftedColumn({1}));
  });
}

void WriteBadLayouts(const std::string& directory) {
  const auto section = [&](const char* name,
                           std::function<void(CraftedLayout&)> edit) {
    WriteBad(directory, name, [&](Crafted& made) {
      CraftedLayout layout;
      edit(layout);
      made.UseLayout(layout.Section());
    });
  };
  section("layout-kind", [](CraftedLayout& layout) { layout.kind = 1; });
  section("layout-count", [](CraftedLayout& layout) { layout.run_count = 3; });
  section("layout-size",
          [](CraftedLayout& layout) { layout.stored_text_size_bytes = 1023; });
  section("layout-column", [](CraftedLayout& layout) {
    layout.sizes = {uint64_t{1} << 56, 512};
  });
  section("layout-empty-run", [](CraftedLayout& layout) {
    layout.sizes = {1536, 0};
  });
  section("layout-sizes", [](CraftedLayout& layout) {
    layout.sizes = {1024, 511};
  });
  section("layout-beyond", [](CraftedLayout& layout) {
    layout.steps = {0, -511};
  });
  section("layout-before", [](CraftedLayout& layout) {
    layout.steps = {0, -1025};
  });
  section("layout-unused", [](CraftedLayout& layout) {
    layout.sizes = {1023, 513};
    layout.steps = {0, -1023};
  });
  const auto three_runs = [&](const char* name, std::vector<uint64_t> sizes,
                              std::vector<int64_t> steps) {
    WriteBad(directory, name, [&](Crafted& made) {
      CraftedLayout layout;
      layout.run_count = 3;
      layout.sizes = sizes;
      layout.steps = steps;
      made.UseLayout(layout.Section());
      made.edit_manifest = [](Manifest& m) {
        m.segments[0].run_count = 3;
        m.segments[0].stored_text_size_bytes = 1024;
        m.slices_per_mib_max = 3;
      };
    });
  };
  three_runs("layout-joined", {512, 512, 512}, {0, 0, -1024});
  WriteBad(directory, "layout-longer", [](Crafted& made) {
    made.UseLayout(CraftedLayout().Section() + '\0');
  });
  const auto checksums = [&](const char* name, const std::string& bytes) {
    WriteBad(directory, name, [&](Crafted& made) {
      made.UseLayout(CraftedLayout().Section());
      made.SetSection(0x8000000A, bytes);
    });
  };
  checksums("text-checksum", CraftedVarints({1}) + CraftedColumns({1536}, {1}));
  checksums("text-checksums-short",
            CraftedVarints({1}) + CraftedColumns({1535}, {1}));
  checksums("text-checksums-count", CraftedVarints({9}) + CraftedColumn({1}));
  const auto manifest = [&](const char* name, uint64_t run_count,
                            uint64_t stored_text_size_bytes) {
    WriteBad(directory, name, [&](Crafted& made) {
      made.UseLayout(CraftedLayout().Section());
      made.edit_manifest = [=](Manifest& m) {
        m.segments[0].run_count = run_count;
        m.segments[0].stored_text_size_bytes = stored_text_size_bytes;
      };
    });
  };
  manifest("manifest-layout-missing", 0, 0);
  manifest("manifest-layout-one-run", 1, 1024);
  manifest("manifest-layout-runs", uint64_t{1} << 40, 1024);
  WriteBad(directory, "layout-slices", [](Crafted& made) {
    made.UseLayout(CraftedLayout().Section());
    made.edit_manifest = [before = made.edit_manifest](Manifest& m) {
      before(m);
      m.slices_per_mib_max = 1;
    };
  });
}

// Faults that only a complete read detects.
void WriteBadSums(const std::string& directory) {
  WriteBad(directory, "block-chain", [](Crafted& made) {
    made.edit_footer = [](SegmentFooter& f) { f.block_chain ^= 1; };
  });
  WriteBad(directory, "manifest-uuid", [](Crafted& made) {
    made.edit_uuid = [](Manifest::Uuid& uuid) { uuid[0] ^= 1; };
  });
}

void WriteBadBlockSpans(const std::string& directory) {
  const auto write = [&](const char* name, const std::string& section,
                         uint64_t span_count = 1) {
    WriteBad(directory, name, [&](Crafted& made) {
      made.SetSection(9, section);
      made.edit_manifest = [span_count](Manifest& m) {
        m.segments[0].span_count = span_count;
      };
    });
  };
  write("spans-sum", CraftedColumns({1}, {4}));
  write("spans-empty", CraftedColumns({1}, {0}));
  write("spans-large", CraftedColumns({1}, {8193}));
  write("spans-huge", CraftedColumns({1}, {uint64_t{1} << 63}));
  write("spans-none", CraftedColumns({0}, {5}));
  write("spans-many", CraftedColumns({2}, {2}));
  write("spans-column", CraftedColumns({1}, {3, 2}));
  WriteBad(directory, "spans-equal", [](Crafted& made) {
    made.SetSection(1, CraftedColumn({5, 1}));
    made.SetSection(9, CraftedColumns({1, 1}, {3, 3}));
    made.edit_footer = [](SegmentFooter& f) { f.block_count = 2; };
    made.edit_manifest = [](Manifest& m) { m.segments[0].span_count = 2; };
    // Space for two frames.
    made.text = std::string(26, 'x');
    made.SetSection(2, CraftedColumn({26}));
  });
  WriteBad(directory, "spans-missing", [](Crafted& made) {
    std::erase_if(made.sections,
                  [](const auto& section) { return section.first == 9; });
  });
}

}  // namespace

void WriteBadArchives(const std::string& directory) {
  WriteBadManifests(directory);
  WriteBadStates(directory);
  WriteBadDictionaries(directory);
  WriteBadSymbolTables(directory);
  WriteBadStructures(directory);
  WriteBadIdRuns(directory);
  WriteBadIndexes(directory);
  WriteBadLayouts(directory);
  WriteBadBlockSpans(directory);
  WriteBadBlocks(directory);
  WriteBadFields(directory);
  WriteBadSums(directory);
}

}  // namespace quire
