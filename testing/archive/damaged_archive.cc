// SPDX-License-Identifier: GPL-3.0-or-later
#include "testing/archive/damaged_archive.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"

#include "codecs/base/check.h"
#include "server/archive/archive.h"
#include "server/archive/format/manifest.h"
#include "server/archive/format/segment_format.h"
#include "testing/archive/crafted_archive.h"

namespace quire {
namespace {

constexpr uint32_t kBlockSizeBytes = 4096;

std::string TextOf(const TestSegment& segment) {
  std::string text;
  for (const TestDocument& document : segment) {
    text += document.text;
  }
  return text;
}

// Writes a segment whose stored text is its text with the halves swapped.
absl::Status WriteSwapped(const TestSegment& segment, const PayloadCodec* codec,
                          ArchiveWriter& writer) {
  const std::string text = TextOf(segment);
  if (text.size() < 2) {
    return WriteTestSegment(segment, kBlockSizeBytes, codec, writer);
  }
  const uint64_t half = text.size() / 2;
  return WriteTestSegment(segment, text.substr(half) + text.substr(0, half),
                          {{half, text.size() - half}, {text.size() - half, 0}},
                          kBlockSizeBytes, codec, writer);
}

}  // namespace

TestFiles ReadTestFiles(const std::string& path) {
  TestFiles files;
  for (const auto& entry : std::filesystem::directory_iterator(path)) {
    files[entry.path().filename().string()] =
        ReadTestFile(entry.path().string());
  }
  return files;
}

void WriteTestFiles(const std::string& path, const TestFiles& files) {
  std::filesystem::remove_all(path);
  std::filesystem::create_directory(path);
  for (const auto& [name, bytes] : files) {
    WriteTestFile(absl::StrCat(path, "/", name), bytes);
  }
}

std::vector<TestDocument> WriteRandomArchive(const std::string& path,
                                             std::mt19937_64& random) {
  const char* const codecs[] = {"copy", "rlz", "zstd", "lz4", "fsst", "auto"};
  ArchiveWriterOptions options;
  options.codec = ParseCodecSpec(codecs[random() % 6]).value();
  options.block_size_bytes = kBlockSizeBytes;
  const auto context = std::make_shared<CodecContext>(
      CodecContext{TextOf(RandomTestSegment(4, 1000, random)) + "dictionary",
                   CraftedSymbolTable()});
  const auto codec =
      MakePayloadCodec(options.codec, context, CodecUse::kEncodeAndDecode, 0);
  QUIRE_CHECK(codec.ok(), "the codec encodes");
  auto writer = ArchiveWriter::Create(path, options, context);
  QUIRE_CHECK(writer.ok(), "an archive is created");
  QUIRE_CHECK((*writer)->SetSymbolTable(context->symbol_table).ok(),
              "a symbol table is written");
  std::vector<TestDocument> documents;
  const uint64_t segment_count = random() % 3 + 1;
  for (uint64_t i = 0; i < segment_count; ++i) {
    const TestSegment segment =
        RandomTestSegment(random() % 20 + 1, 9000, random);
    QUIRE_CHECK(
        (random() % 3 == 0 ? WriteSwapped(segment, codec->get(), **writer)
                           : WriteTestSegment(segment, kBlockSizeBytes,
                                              codec->get(), **writer))
            .ok(),
        "a segment is written");
    documents.insert(documents.end(), segment.begin(), segment.end());
  }
  QUIRE_CHECK((*writer)->Commit().ok(), "the archive is published");
  return documents;
}

void DamageFile(const std::string& name, std::mt19937_64& random,
                TestFiles& files) {
  std::string& bytes = files[name];
  switch (random() % 8) {
    case 0:
      files.erase(name);
      return;
    case 1:
      bytes.resize(random() % (bytes.size() + 1));
      return;
    case 2:
      bytes.append(random() % 100 + 1, 'x');
      return;
    case 3:
    case 4:
      for (uint64_t n = random() % 4 + 1; n > 0 && !bytes.empty(); --n) {
        const size_t start = random() % bytes.size() / 512 * 512;
        std::fill_n(bytes.begin() + static_cast<std::ptrdiff_t>(start),
                    std::min<size_t>(512, bytes.size() - start), '\0');
      }
      return;
    default:
      for (uint64_t n = random() % 4 + 1; n > 0 && !bytes.empty(); --n) {
        char& byte = bytes[random() % bytes.size()];
        byte = static_cast<char>(byte ^ (1 << random() % 8));
      }
      return;
  }
}

std::map<std::string, TestSegmentParts> PartsOf(const std::string& path) {
  const std::string bytes = ReadTestFile(path + "/MANIFEST");
  const auto manifest = ParseManifest(AsBytes(bytes));
  const auto archive = Archive::Open(path);
  QUIRE_CHECK(manifest.ok() && archive.ok(), "the archive is undamaged");
  std::map<std::string, TestSegmentParts> found;
  for (uint32_t s = 0; s < manifest->segments.size(); ++s) {
    const ManifestSegment& segment = manifest->segments[s];
    TestSegmentParts& parts = found[SegmentFileName(segment.number)];
    uint64_t end = segment.file_size_bytes - kTrailerSizeBytes -
                   segment.sections.size() * kSectionEntrySizeBytes;
    parts.footer = {
        .name =
            "section table and trailer, without which the other parts "
            "cannot be checked",
        .offset = end,
        .size_bytes = segment.file_size_bytes - end - kSegmentEndMagic.size()};
    for (size_t i = segment.sections.size(); i-- > 0;) {
      end -= segment.sections[i].stored_size_bytes;
      parts.sections.insert(
          parts.sections.begin(),
          {.name = std::string(SectionName(segment.sections[i].type)),
           .offset = end,
           .size_bytes = segment.sections[i].stored_size_bytes});
    }
    for (uint64_t i = 0; i < segment.block_count; ++i) {
      const Extent extent = (*archive)->BlockExtent({s, i});
      parts.blocks.push_back({.name = absl::StrCat("block ", i),
                              .offset = extent.offset.value,
                              .size_bytes = extent.size_bytes});
    }
  }
  return found;
}

}  // namespace quire
