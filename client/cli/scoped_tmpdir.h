// SPDX-License-Identifier: Apache-2.0
//
// For tests: another temporary directory for a while.
#ifndef QUIRE_CLIENT_CLI_SCOPED_TMPDIR_H_
#define QUIRE_CLIENT_CLI_SCOPED_TMPDIR_H_

#include <cstdlib>
#include <optional>
#include <string>

namespace quire {

// Sets $TMPDIR, and at its end puts back what was there: GoogleTest asks for
// it, too, whenever a test wants a directory. Not for several threads at once,
// as the environment is not.
class ScopedTmpdir {
 public:
  explicit ScopedTmpdir(const std::string& directory) {
    if (const char* before = std::getenv("TMPDIR"); before != nullptr) {
      before_ = before;
    }
    Set(directory);
  }

  ~ScopedTmpdir() {
    if (before_.has_value()) {
      Set(*before_);
    } else {
      unsetenv("TMPDIR");
    }
  }

  ScopedTmpdir(const ScopedTmpdir&) = delete;
  ScopedTmpdir& operator=(const ScopedTmpdir&) = delete;

  void Set(const std::string& directory) {
    setenv("TMPDIR", directory.c_str(), /*overwrite=*/1);
  }

 private:
  std::optional<std::string> before_;
};

}  // namespace quire

#endif  // QUIRE_CLIENT_CLI_SCOPED_TMPDIR_H_
