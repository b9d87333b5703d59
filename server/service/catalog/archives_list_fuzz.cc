// SPDX-License-Identifier: GPL-3.0-or-later
//
// Arbitrary lists of archives: accepted ones have good names, each once.
#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"

#include "codecs/base/archive_name.h"
#include "codecs/base/check.h"
#include "server/service/catalog/archives_list.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto archives = quire::ParseArchivesList(
      absl::string_view(reinterpret_cast<const char*>(data), size),
      "/directory");
  if (archives.ok()) {
    QUIRE_CHECK(quire::CheckNamesDiffer(*archives).ok(), "a name is one's");
    for (const quire::ArchiveArgument& archive : *archives) {
      QUIRE_CHECK(quire::IsArchiveName(archive.name), "names are good");
      QUIRE_CHECK(archive.path.empty() != archive.url.empty(),
                  "an archive has a path or a URL");
      QUIRE_CHECK(archive.is_listed, "it is opened on first use");
    }
  }
  return 0;
}
