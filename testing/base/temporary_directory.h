// SPDX-License-Identifier: Apache-2.0
//
// Files of tests.
#ifndef QUIRE_TESTING_BASE_TEMPORARY_DIRECTORY_H_
#define QUIRE_TESTING_BASE_TEMPORARY_DIRECTORY_H_

#include <map>
#include <string>

#include "absl/strings/string_view.h"

namespace quire {

// An empty directory, removed at the end with its contents.
class TemporaryDirectory {
 public:
  // In `parent`, or the system's temporary directory if that is empty.
  explicit TemporaryDirectory(const std::string& parent = "");
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  ~TemporaryDirectory();

  const std::string& path() const { return path_; }

  // Returns the path of an entry.
  std::string operator/(absl::string_view name) const;

  // Writes a file, and the directories above it; returns its path.
  std::string Write(absl::string_view name, absl::string_view contents) const;

 private:
  std::string path_;
};

// Returns the contents of a file.
std::string ReadTestFile(const std::string& path);
void WriteTestFile(const std::string& path, absl::string_view contents);

// Returns the contents of the files in `directory`, by name.
std::map<std::string, std::string> FilesOf(const std::string& directory);

}  // namespace quire

#endif  // QUIRE_TESTING_BASE_TEMPORARY_DIRECTORY_H_
