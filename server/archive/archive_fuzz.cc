// SPDX-License-Identifier: GPL-3.0-or-later
//
// Whole archives with valid checksums and arbitrary contents: they must be
// refused, or opened, read and searched without a fault.
#include <fuzzer/FuzzedDataProvider.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "codecs/base/check.h"
#include "codecs/block_codec.h"
#include "server/archive/archive.h"
#include "server/archive/archive_verifier.h"
#include "testing/archive/archive_testing.h"
#include "testing/archive/crafted_archive.h"

namespace quire {
namespace {

// Adds a layout of the existing text, and a document of the layout's size, or
// nearly so.
void AddLayout(FuzzedDataProvider& input, Crafted& made) {
  CraftedLayout layout;
  layout.stored_text_size_bytes = made.text.size();
  layout.run_count = input.ConsumeIntegralInRange<uint64_t>(0, 20);
  layout.sizes.clear();
  layout.steps.clear();
  uint64_t size_bytes = 0;
  for (uint64_t i = 0; i < layout.run_count; ++i) {
    const auto size = input.ConsumeIntegralInRange<uint64_t>(0, 5000);
    layout.sizes.push_back(
        input.ConsumeBool() ? size : input.ConsumeIntegral<uint64_t>());
    size_bytes += layout.sizes.back();
    layout.steps.push_back(
        input.ConsumeBool() ? input.ConsumeIntegralInRange<int64_t>(-5000, 5000)
                            : input.ConsumeIntegral<int64_t>());
  }
  made.SetSection(8, input.ConsumeBool()
                         ? layout.Section()
                         : input.ConsumeRandomLengthString(400));
  if (input.ConsumeBool()) {
    size_bytes = input.ConsumeIntegral<uint64_t>();
  }
  for (auto& [type, section] : made.sections) {
    if (type == 2) {
      section = CraftedColumn({size_bytes});
    }
  }
  made.edit_footer = [=](SegmentFooter& f) { f.size_bytes = size_bytes; };
  made.edit_manifest = [run_count = layout.run_count,
                        stored = made.text.size()](Manifest& m) {
    m.segments[0].run_count = run_count;
    m.segments[0].stored_text_size_bytes = stored;
    m.slices_per_mib_max = 200;
  };
}

// Adds block spans of the text, or nearly so. Only the first block exists.
void AddBlockSpans(FuzzedDataProvider& input, Crafted& made) {
  const auto count = input.ConsumeIntegralInRange<uint64_t>(1, 20);
  std::vector<uint64_t> counts;
  std::vector<uint64_t> sizes;
  std::vector<uint64_t> stored_sizes;
  uint64_t block_count = 0;
  for (uint64_t i = 0; i < count; ++i) {
    counts.push_back(input.ConsumeIntegralInRange<uint64_t>(0, 3));
    sizes.push_back(input.ConsumeBool()
                        ? input.ConsumeIntegralInRange<uint64_t>(0, 2000)
                        : input.ConsumeIntegral<uint64_t>());
    stored_sizes.push_back(input.ConsumeIntegralInRange<uint64_t>(0, 600));
    block_count += counts.back();
  }
  made.SetSection(9, input.ConsumeBool() ? CraftedColumns(counts, sizes)
                                         : input.ConsumeRandomLengthString(40));
  if (input.ConsumeBool()) {
    made.SetSection(1, CraftedColumn(stored_sizes));
  }
  made.edit_footer = [=, before = made.edit_footer](SegmentFooter& f) {
    before(f);
    f.block_count = block_count;
  };
  made.edit_manifest = [=, size_max = input.ConsumeIntegral<uint32_t>(),
                        slices = input.ConsumeIntegral<uint16_t>(),
                        before = made.edit_manifest](Manifest& m) {
    before(m);
    m.segments[0].block_count = block_count;
    m.segments[0].span_count = count;
    m.block_size_bytes_max = 4096 + size_max % (uint32_t{1} << 21);
    m.slices_per_mib_max = slices;
  };
}

Crafted MakeArchive(FuzzedDataProvider& input) {
  Crafted made;
  const CodecInfo& info = AllCodecs()[input.ConsumeIntegralInRange<size_t>(
      0, AllCodecs().size() - 1)];
  const CodecId codec = info.id;
  if (info.needs_dictionary) {
    made.UseDictionary(input.ConsumeRandomLengthString(100) + "text");
  }
  if (info.needs_symbol_table) {
    made.symbol_table = CraftedSymbolTable();
  }
  if (input.ConsumeBool()) {
    made.UseCodec(
        codec, input.ConsumeRandomLengthString(200),
        std::string(input.ConsumeIntegralInRange<size_t>(1, 4096), 'x'));
  }
  // Starts from a valid archive: each section is kept, replaced, added or
  // dropped.
  if (input.ConsumeBool()) {
    made.document_count = input.ConsumeIntegral<uint8_t>();
    made.id_size_bytes = input.ConsumeIntegral<uint16_t>();
  }
  std::vector<std::pair<uint32_t, std::string>> sections;
  for (uint32_t type = 1; type <= 10; ++type) {
    if (input.ConsumeBool()) {
      if (input.ConsumeBool()) {
        sections.emplace_back(type, input.ConsumeRandomLengthString(600));
      }
    } else {
      for (const auto& section : made.sections) {
        if (section.first == type) {
          sections.push_back(section);
        }
      }
    }
  }
  made.sections = std::move(sections);
  if (input.ConsumeBool()) {
    AddLayout(input, made);
  }
  if (input.ConsumeBool()) {
    AddBlockSpans(input, made);
  }
  return made;
}

// A forged layout may claim more text than can be read in time.
constexpr uint64_t kReadSizeBytesMax = 1 << 16;

void ReadAll(const std::string& path) {
  const auto outline = Archive::ReadOutline(path);
  if (outline.ok() && outline->info.size_bytes > kReadSizeBytesMax) {
    Archive::Open(path).status().IgnoreError();
    return;
  }
  VerifyArchive(path, {}, [](const ArchiveDamage&) {}).status().IgnoreError();
  const auto opened = Archive::Open(path);
  if (!opened.ok()) {
    return;
  }
  const Archive& archive = **opened;
  ReadTestRange(archive, {{0}, archive.info().size_bytes})
      .status()
      .IgnoreError();
  for (uint64_t offset = 0; offset < archive.info().size_bytes; ++offset) {
    archive.DocumentAt({offset}).status().IgnoreError();
  }
  archive.VisitDocuments("", std::nullopt, [&](const Document& document) {
    const auto same = archive.GetDocument(document.ordinal);
    const auto found = archive.FindDocuments(document.id);
    QUIRE_CHECK(same.ok() && same->id == document.id && found.ok());
    const absl::string_view type = document.record_type;
    QUIRE_CHECK(
        archive
            .FindCapture(document.id,
                         {.record_types = absl::MakeConstSpan(&type, 1)})
            .ordinal.has_value());
    return true;
  });
  archive.VisitListing(
      {.delimiter = "/"}, [](const Document&) { return true; },
      [](absl::string_view) { return true; });
}

}  // namespace
}  // namespace quire

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  // In memory if possible: a disk would be ten times slower.
  static const quire::TemporaryDirectory directory(
      std::filesystem::exists("/dev/shm") ? "/dev/shm" : "");
  FuzzedDataProvider input(data, size);
  const quire::Crafted made = quire::MakeArchive(input);
  quire::WriteCrafted(directory.path(), made);
  quire::ReadAll(directory.path());
  return 0;
}
