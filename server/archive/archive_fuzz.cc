// SPDX-License-Identifier: GPL-3.0-or-later
//
// Whole archives whose checksums are right and whose contents are anything:
// must be refused, or opened, read and searched without a fault.
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
#include "server/archive/testing/archive_testing.h"
#include "server/archive/testing/crafted_archive.h"

namespace quire {
namespace {

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
  // From a good archive on: each section is kept, replaced, added or dropped.
  if (input.ConsumeBool()) {
    made.document_count = input.ConsumeIntegral<uint8_t>();
    made.id_size_bytes = input.ConsumeIntegral<uint16_t>();
  }
  std::vector<std::pair<uint32_t, std::string>> sections;
  for (uint32_t type = 1; type <= 9; ++type) {
    if (input.ConsumeBool()) {
      if (input.ConsumeBool()) {
        sections.emplace_back(type, input.ConsumeRandomLengthString(600));
      }
    } else if (type <= made.sections.size()) {
      sections.push_back(made.sections[type - 1]);
    }
  }
  made.sections = std::move(sections);
  return made;
}

void ReadAll(const std::string& path) {
  VerifyArchive(path, {}, [](const ArchiveDamage&) {}).status().IgnoreError();
  Archive::ReadOutline(path).status().IgnoreError();
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
}

}  // namespace
}  // namespace quire

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  // In memory where there is such a place: a disk would slow this down tenfold.
  static const quire::TemporaryDirectory directory(
      std::filesystem::exists("/dev/shm") ? "/dev/shm" : "");
  FuzzedDataProvider input(data, size);
  const quire::Crafted made = quire::MakeArchive(input);
  quire::WriteCrafted(directory.path(), made);
  quire::ReadAll(directory.path());
  return 0;
}
