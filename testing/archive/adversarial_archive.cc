// SPDX-License-Identifier: GPL-3.0-or-later
#include "testing/archive/adversarial_archive.h"

#include <random>

#include "absl/strings/str_cat.h"

#include "codecs/base/status_macros.h"
#include "server/archive/format/archive_format.h"

namespace quire {

absl::StatusOr<ArchiveInfo> WriteAdversarialArchive(const std::string& path,
                                                    bool replace) {
  ArchiveWriterOptions options;
  QUIRE_ASSIGN_OR_RETURN(options.codec, ParseCodecSpec("copy"));
  options.block_size_bytes = 4096;
  options.replace = replace;
  QUIRE_ASSIGN_OR_RETURN(const auto writer,
                         ArchiveWriter::Create(path, options, nullptr));
  for (uint64_t i = 0; i < kAdversarialMediaTypeCount; ++i) {
    const std::string id = absl::StrCat("d", i);
    const std::string media_type = absl::StrCat("t/", i);
    QUIRE_RETURN_IF_ERROR(
        writer->AddDocument({.id = id, .media_type = media_type}));
  }
  std::mt19937_64 random(4);
  for (uint64_t i = 0; i < kAdversarialLongIdCount; ++i) {
    std::string long_text = absl::StrCat("long ", i, " ");
    while (long_text.size() < kDocumentIdSizeBytesMax) {
      long_text.push_back(static_cast<char>(random()));
    }
    QUIRE_RETURN_IF_ERROR(writer->AddDocument({.id = long_text,
                                               .size_bytes = 1,
                                               .record_type = long_text,
                                               .media_type = long_text}));
  }
  const std::vector<uint8_t> text(kAdversarialLongIdCount, 'x');
  QUIRE_RETURN_IF_ERROR(writer->AppendBlock(text, {}));
  return writer->Commit();
}

}  // namespace quire
