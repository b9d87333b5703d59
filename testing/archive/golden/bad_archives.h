// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef QUIRE_TESTING_ARCHIVE_GOLDEN_BAD_ARCHIVES_H_
#define QUIRE_TESTING_ARCHIVE_GOLDEN_BAD_ARCHIVES_H_

#include <functional>
#include <string>

#include "testing/archive/crafted_archive.h"

namespace quire {

// Writes every bad archive of README.md into a directory of its name in
// `directory`.
void WriteBadArchives(const std::string& directory);

// The parts of WriteBadArchives() that are in other files: archives with bad
// blocks, and with bad containers and fields.
void WriteBadBlocks(const std::string& directory);
void WriteBadFields(const std::string& directory);

// Writes the crafted archive that `spoil` makes of a good one.
void WriteBad(const std::string& directory, const std::string& name,
              const std::function<void(Crafted&)>& spoil);

// Writes a good archive whose container has a part that is not known.
void WriteGoodContainer(const std::string& path);

}  // namespace quire

#endif  // QUIRE_TESTING_ARCHIVE_GOLDEN_BAD_ARCHIVES_H_
