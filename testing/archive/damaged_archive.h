// SPDX-License-Identifier: GPL-3.0-or-later
//
// Random archives and random damage, for tests of repair and salvage.
#ifndef QUIRE_TESTING_ARCHIVE_DAMAGED_ARCHIVE_H_
#define QUIRE_TESTING_ARCHIVE_DAMAGED_ARCHIVE_H_

#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "testing/archive/archive_testing.h"

namespace quire {

// Contents of the files of an archive, by name.
using TestFiles = std::map<std::string, std::string>;

TestFiles ReadTestFiles(const std::string& path);
// Replaces the directory by one with these files.
void WriteTestFiles(const std::string& path, const TestFiles& files);

// Writes an archive of one to three segments with blocks of 4 KiB, one of them
// perhaps with a layout, in a random codec. Returns the documents in order.
std::vector<TestDocument> WriteRandomArchive(const std::string& path,
                                             std::mt19937_64& random);

// Damages a file: flips bits, clears sectors, cuts it, appends to it, or
// removes it.
void DamageFile(const std::string& name, std::mt19937_64& random,
                TestFiles& files);

// A part of a file, with the name that RepairArchive() has for it.
struct TestPart {
  std::string name = {};
  uint64_t offset = 0;
  uint64_t size_bytes = 0;
};

// Parts of an undamaged segment.
struct TestSegmentParts {
  // Table and trailer without the magic.
  TestPart footer;
  std::vector<TestPart> sections;
  std::vector<TestPart> blocks;
};

// By the name of the file.
std::map<std::string, TestSegmentParts> PartsOf(const std::string& path);

}  // namespace quire

#endif  // QUIRE_TESTING_ARCHIVE_DAMAGED_ARCHIVE_H_
