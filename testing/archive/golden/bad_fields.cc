// SPDX-License-Identifier: GPL-3.0-or-later
//
// Bad containers and fields (FORMAT.md, sections 6.11 and 6.12).
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

#include "codecs/base/bytes.h"
#include "codecs/base/check.h"
#include "codecs/base/checksum.h"
#include "codecs/base/endian.h"
#include "codecs/filter/field_value.h"
#include "codecs/filter/filter.h"
#include "server/archive/archive_writer.h"
#include "server/archive/fields/field_directory.h"
#include "server/archive/format/section_compression.h"
#include "testing/archive/archive_testing.h"
#include "testing/archive/crafted_archive.h"
#include "testing/archive/golden/bad_archives.h"

namespace quire {
namespace {

constexpr uint32_t kDirectory = 0x8000000B;
constexpr uint32_t kData = 0x8000000C;

// Flags of a block of values.
constexpr char kValues = 1;
constexpr char kNulls = 2;
constexpr char kLeast = 4;
constexpr char kGreatest = 8;

std::string Bytes64(uint64_t number) {
  uint8_t bytes[sizeof(number)];
  StoreLittleEndian(number, bytes);
  return std::string(reinterpret_cast<const char*>(bytes), sizeof(bytes));
}

// A part of the container, and the reference to it.
struct CraftedPart {
  explicit CraftedPart(std::string bytes)
      : stored(std::move(bytes)),
        stored_size_bytes(stored.size()),
        size_bytes(stored.size()) {}

  // Stores the bytes as a zstd frame.
  void Compress() {
    stored = CompressStrongly(AsBytes(stored), {.xz_size_bytes_max = 0,
                                                .is_text = false,
                                                .small_zstd_level = 9})
                 .value()
                 .bytes;
    QUIRE_CHECK(stored.size() < size_bytes, "a part that does not compress");
    stored_size_bytes = stored.size();
    method = 1;
  }

  std::string Reference(uint64_t offset) const {
    return CraftedVarints(
               {offset + offset_error, stored_size_bytes, size_bytes, method}) +
           Bytes64(Checksum64(AsBytes(stored)) ^ checksum_error);
  }

  std::string stored;
  uint64_t stored_size_bytes;
  uint64_t size_bytes;
  uint64_t method = 0;
  uint64_t offset_error = 0;
  uint64_t checksum_error = 0;
};

std::string ColumnsOf(const std::vector<FieldColumn>& columns) {
  std::string bytes = CraftedVarints({columns.size()});
  for (const FieldColumn& column : columns) {
    bytes += CraftedVarints({column.name.size()}) + column.name;
    bytes.push_back(static_cast<char>(column.type));
  }
  return bytes;
}

// Values of a group of documents of one field of strings.
std::string StringValues(uint64_t string_count,
                         const std::vector<uint64_t>& sizes,
                         const std::string& text,
                         const std::vector<uint64_t>& indexes) {
  return CraftedVarints({string_count}) + CraftedColumn(sizes) + text +
         CraftedColumn(indexes);
}

// The fields of a segment of one document, initially valid: n is 7.
struct CraftedFields {
  // Names and types of the fields, and their number.
  std::string columns = ColumnsOf({{"n", FieldType::kInteger}});
  CraftedPart values = CraftedPart(CraftedVarints({14}) + CraftedColumn({0}));
  std::string bounds;
  char flags = kValues;
  uint64_t group_count = 1;
  uint64_t group_size = 1;
  std::string page_end;
  std::function<void(CraftedPart&)> edit_page = [](CraftedPart&) {};
  uint64_t page_count = 1;
  uint64_t page_size = 1;
  std::string head_end;

  void UseType(FieldType type, std::string bytes) {
    columns = ColumnsOf({{"n", type}});
    values = CraftedPart(std::move(bytes));
  }

  void Apply(Crafted& made) const {
    std::string data = values.stored;
    std::string group = CraftedVarints({group_size});
    group.push_back(flags);
    if ((flags & kValues) != 0) {
      group += values.Reference(0);
    }
    group += bounds;
    CraftedPart page(CraftedVarints({group_count}) +
                     (group_count == 0 ? "" : group) + page_end);
    edit_page(page);
    const std::string head = columns + CraftedVarints({page_count, page_size}) +
                             page.Reference(data.size()) + head_end;
    data += page.stored;
    made.SetSection(kDirectory, CraftedVarints({1, 1, head.size()}) + head);
    made.SetSection(kData, data);
  }
};

class Writer {
 public:
  explicit Writer(std::string directory) : directory_(std::move(directory)) {}

  // An archive with one fault in its fields.
  void Fields(const std::string& name,
              const std::function<void(CraftedFields&)>& spoil) const {
    Crafted made;
    CraftedFields fields;
    spoil(fields);
    fields.Apply(made);
    WriteCrafted(absl::StrCat(directory_, "/", name), made);
  }

  // An archive of good fields, whose other parts are spoilt.
  void Archive(const std::string& name,
               const std::function<void(Crafted&)>& spoil) const {
    Crafted made;
    CraftedFields().Apply(made);
    spoil(made);
    WriteCrafted(absl::StrCat(directory_, "/", name), made);
  }

  void Directory(const std::string& name, const std::string& section) const {
    Archive(name, [&](Crafted& made) { made.SetSection(kDirectory, section); });
  }

  // An archive of two segments with these fields.
  void Segments(const std::string& name, std::vector<FieldColumn> first,
                std::vector<FieldColumn> second) const {
    ArchiveWriterOptions options;
    options.codec = ParseCodecSpec("copy").value();
    options.block_size_bytes = 4096;
    options.writer = "make_golden";
    const auto writer = ArchiveWriter::Create(
        absl::StrCat(directory_, "/", name), options, nullptr);
    QUIRE_CHECK(writer.ok(), writer.status().ToString());
    absl::Status status;
    for (std::vector<FieldColumn>* const columns : {&first, &second}) {
      status.Update((*writer)->SetFields(std::move(*columns)));
      status.Update(WriteTestSegment({{.id = "a", .text = "hello"}},
                                     options.block_size_bytes, nullptr,
                                     **writer));
    }
    status.Update((*writer)->Commit().status());
    QUIRE_CHECK(status.ok(), status.ToString());
  }

 private:
  const std::string directory_;
};

void WriteBadContainers(const Writer& write) {
  write.Directory("container-none", CraftedVarints({0}));
  std::string many = CraftedVarints({17});
  for (uint64_t id = 202; id < 219; ++id) {
    many += CraftedVarints({id, 0});
  }
  write.Directory("container-many", many);
  write.Directory("container-id", CraftedVarints({1, 0, 0}));
  write.Directory("container-order", CraftedVarints({2, 203, 0, 202, 0}));
  write.Directory("container-longer", CraftedVarints({1, 202, 0, 0}));
  write.Directory("container-cut", CraftedVarints({1, 202, 9}));
  write.Archive("container-no-data", [](Crafted& made) {
    std::erase_if(made.sections,
                  [](const auto& section) { return section.first == kData; });
  });
  write.Archive("container-compressed", [](Crafted& made) {
    CraftedPart frame(std::string(100, 'x'));
    frame.Compress();
    made.SetSection(kData, frame.stored);
    made.edit_footer = [](SegmentFooter& footer) {
      footer.sections.back().method = CompressionMethod::kZstd;
      footer.sections.back().size_bytes = 100;
    };
  });
}

// References to a part, of which the head has one: that of the page.
void WriteBadParts(const Writer& write) {
  const auto page = [&](const char* name,
                        const std::function<void(CraftedPart&)>& edit) {
    write.Fields(name, [&](CraftedFields& fields) { fields.edit_page = edit; });
  };
  page("part-beyond", [](CraftedPart& part) { part.offset_error = 1; });
  page("part-far",
       [](CraftedPart& part) { part.offset_error = uint64_t{1} << 63; });
  page("part-empty", [](CraftedPart& part) { part.stored_size_bytes = 0; });
  page("part-large", [](CraftedPart& part) {
    part.size_bytes = (uint64_t{1} << 20) + 1;
    part.method = 1;
  });
  page("part-longer", [](CraftedPart& part) {
    part.size_bytes = part.stored_size_bytes - 1;
    part.method = 1;
  });
  page("part-method", [](CraftedPart& part) { part.method = 2; });
  page("part-size", [](CraftedPart& part) { ++part.size_bytes; });
  page("part-page-checksum",
       [](CraftedPart& part) { part.checksum_error = 1; });
  const auto values = [&](const char* name,
                          const std::function<void(CraftedPart&)>& edit) {
    write.Fields(name, [&](CraftedFields& fields) {
      fields.UseType(FieldType::kString,
                     StringValues(1, {200}, std::string(200, 'x'), {0}));
      fields.values.Compress();
      edit(fields.values);
    });
  };
  values("part-checksum", [](CraftedPart& part) { part.checksum_error = 1; });
  values("part-not-zstd", [](CraftedPart& part) { part.stored[0] = 'x'; });
  values("part-zstd-size", [](CraftedPart& part) { ++part.size_bytes; });
  values("part-zstd-longer", [](CraftedPart& part) {
    part.stored.push_back('\0');
    ++part.stored_size_bytes;
  });
}

void WriteBadHeads(const Writer& write) {
  const auto columns = [&](const char* name,
                           const std::vector<FieldColumn>& fields) {
    write.Fields(
        name, [&](CraftedFields& made) { made.columns = ColumnsOf(fields); });
  };
  columns("fields-none", {});
  std::vector<FieldColumn> many;
  for (int i = 0; i < 257; ++i) {
    many.push_back({absl::StrCat("f", i), FieldType::kBoolean});
  }
  columns("fields-many", many);
  columns("fields-name-empty", {{"", FieldType::kInteger}});
  columns("fields-name-long", {{std::string(65, 'n'), FieldType::kInteger}});
  columns("fields-twice",
          {{"n", FieldType::kInteger}, {"n", FieldType::kInteger}});
  columns("fields-type-0", {{"n", FieldType::kNull}});
  columns("fields-type-6", {{"n", static_cast<FieldType>(6)}});
  write.Fields("fields-page-empty",
               [](CraftedFields& fields) { fields.page_size = 0; });
  write.Fields("fields-page-beyond",
               [](CraftedFields& fields) { fields.page_size = 2; });
  write.Fields("fields-pages-many",
               [](CraftedFields& fields) { fields.page_count = 1000; });
  write.Fields("fields-longer",
               [](CraftedFields& fields) { fields.head_end = "x"; });
  write.Archive("fields-pages-few", [](Crafted& made) {
    made.SetEmptyDocuments(2, 0, CraftedVarints({0, 0, 0, 0}));
    CraftedFields().Apply(made);
  });
  many.resize(200);
  std::vector<FieldColumn> others;
  for (int i = 0; i < 57; ++i) {
    others.push_back({absl::StrCat("g", i), FieldType::kBoolean});
  }
  write.Segments("fields-segments-many", many, others);
  write.Segments("fields-segments-type", {{"n", FieldType::kInteger}},
                 {{"n", FieldType::kString}});
}

void WriteBadPages(const Writer& write) {
  write.Fields("groups-none",
               [](CraftedFields& fields) { fields.group_count = 0; });
  write.Fields("groups-many",
               [](CraftedFields& fields) { fields.group_count = 1000; });
  write.Fields("groups-empty",
               [](CraftedFields& fields) { fields.group_size = 0; });
  write.Fields("groups-beyond",
               [](CraftedFields& fields) { fields.group_size = 2; });
  write.Fields("groups-longer",
               [](CraftedFields& fields) { fields.page_end = "x"; });
  write.Archive("groups-large", [](Crafted& made) {
    constexpr uint64_t kCount = kFieldGroupSizeMax + 1;
    std::vector<uint64_t> sizes(kCount, 0);
    sizes[0] = made.text.size();
    made.document_count = kCount;
    made.id_size_bytes = 0;
    made.SetSection(2, CraftedColumn(sizes));
    // Of equal ids the ordinals ascend.
    made.SetSection(3, std::string(2 * kCount, '\0'));
    CraftedFields fields;
    fields.flags = kNulls;
    fields.page_size = fields.group_size = kCount;
    fields.Apply(made);
  });
  const auto add_flags = [&](const char* name, int flags,
                             std::string bounds = "") {
    write.Fields(name, [&](CraftedFields& fields) {
      fields.flags = static_cast<char>(flags);
      fields.bounds = std::move(bounds);
    });
  };
  add_flags("groups-flags-none", 0);
  add_flags("groups-flags-reserved", 16 | kValues);
  add_flags("groups-flags-bound", kNulls | kLeast, Bytes64(7));
  add_flags("groups-bound-cut", kValues | kLeast, "cut");
  add_flags("groups-least", kValues | kLeast, Bytes64(8));
  add_flags("groups-greatest", kValues | kGreatest, Bytes64(6));
  write.Fields("groups-bound-long", [](CraftedFields& fields) {
    fields.UseType(FieldType::kString, StringValues(1, {1}, "x", {0}));
    fields.flags = kValues | kLeast;
    fields.bounds = std::string(1, '\x41') + std::string(65, 'a');
  });
  write.Fields("groups-bound-boolean", [](CraftedFields& fields) {
    fields.UseType(FieldType::kBoolean, "\x01");
    fields.flags = kValues | kGreatest;
    fields.bounds = "\x02";
  });
}

void WriteBadValues(const Writer& write) {
  const auto values = [&](const char* name, FieldType type,
                          const std::string& bytes, int flags = kValues) {
    write.Fields(name, [&](CraftedFields& fields) {
      fields.UseType(type, bytes);
      fields.flags = static_cast<char>(flags);
    });
  };
  values("values-presence", FieldType::kInteger,
         "\x03" + CraftedVarints({14}) + CraftedColumn({0}), kValues | kNulls);
  values("values-boolean", FieldType::kBoolean, "\x02");
  values("values-boolean-longer", FieldType::kBoolean, "\x01x");
  values("values-integer-cut", FieldType::kInteger,
         CraftedVarints({14}) + "\x01");
  values("values-integer-longer", FieldType::kInteger,
         CraftedVarints({14}) + CraftedColumn({0, 1}));
  values("values-time-width", FieldType::kTime,
         CraftedVarints({0}) + "\x09" + std::string(9, '\0'));
  values("values-float-cut", FieldType::kFloat, "\x08" + std::string(7, 'x'));
  values("values-string-index", FieldType::kString,
         StringValues(1, {1}, "x", {1}));
  values("values-string-cut", FieldType::kString,
         StringValues(1, {200}, "x", {0}));
  values("values-string-longer", FieldType::kString,
         StringValues(1, {1}, "xy", {0}));
  values("values-string-long", FieldType::kString,
         StringValues(1, {65536}, std::string(65536, 'x'), {0}));
  values("values-string-many", FieldType::kString,
         StringValues(4097, std::vector<uint64_t>(4097, 0), "", {0}));
  write.Archive("values-removed", [](Crafted& made) {
    made.SetSection(3, CraftedVarints({0, 0}));
    made.id_size_bytes = 0;
    made.SetSection(7,
                    CraftedVarints({1, 9}) + "withdrawn" + CraftedColumn({1}));
  });
}

}  // namespace

void WriteBadFields(const std::string& directory) {
  const Writer write(directory);
  WriteBadContainers(write);
  WriteBadParts(write);
  WriteBadHeads(write);
  WriteBadPages(write);
  WriteBadValues(write);
}

// Of the bounds the least is not a number, and bounds nothing.
void WriteGoodContainer(const std::string& path) {
  Crafted made;
  CraftedFields fields;
  fields.UseType(FieldType::kFloat, CraftedColumn({0x3FF8'0000'0000'0000}));
  fields.flags = kValues | kLeast | kGreatest;
  fields.bounds =
      Bytes64(0x7FF8'0000'0000'0000) + Bytes64(0x3FF8'0000'0000'0000);
  fields.Apply(made);
  for (auto& [type, section] : made.sections) {
    if (type == kDirectory) {
      section = CraftedVarints({2}) + section.substr(1) +
                CraftedVarints({200, 3}) + "new";
    } else if (type == kData) {
      section += "data of the other part";
    }
  }
  WriteCrafted(path, made);
}

}  // namespace quire
