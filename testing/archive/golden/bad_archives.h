// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef QUIRE_TESTING_ARCHIVE_GOLDEN_BAD_ARCHIVES_H_
#define QUIRE_TESTING_ARCHIVE_GOLDEN_BAD_ARCHIVES_H_

#include <string>

namespace quire {

// Writes every bad archive of README.md into a directory of its name in
// `directory`.
void WriteBadArchives(const std::string& directory);

}  // namespace quire

#endif  // QUIRE_TESTING_ARCHIVE_GOLDEN_BAD_ARCHIVES_H_
