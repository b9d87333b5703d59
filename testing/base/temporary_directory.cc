// SPDX-License-Identifier: Apache-2.0
#include "testing/base/temporary_directory.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>

#include "absl/strings/str_cat.h"

#include "codecs/base/check.h"

namespace quire {

TemporaryDirectory::TemporaryDirectory(const std::string& parent)
    : path_((parent.empty() ? std::filesystem::temp_directory_path()
                            : std::filesystem::path(parent)) /
            "quire_test_XXXXXX") {
  QUIRE_CHECK(mkdtemp(path_.data()) != nullptr, "cannot make the directory ",
              path_);
}

TemporaryDirectory::~TemporaryDirectory() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::string TemporaryDirectory::operator/(absl::string_view name) const {
  return absl::StrCat(path_, "/", name);
}

std::string TemporaryDirectory::Write(absl::string_view name,
                                      absl::string_view contents) const {
  std::string path = *this / name;
  std::filesystem::create_directories(
      std::filesystem::path(path).parent_path());
  WriteTestFile(path, contents);
  return path;
}

std::string ReadTestFile(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  QUIRE_CHECK(in.good(), "cannot read ", path);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

void WriteTestFile(const std::string& path, absl::string_view contents) {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out.write(contents.data(), static_cast<std::streamsize>(contents.size()));
  QUIRE_CHECK(out.good(), "cannot write ", path);
}

std::map<std::string, std::string> FilesOf(const std::string& directory) {
  std::map<std::string, std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    files[entry.path().filename()] = ReadTestFile(entry.path());
  }
  return files;
}

}  // namespace quire
