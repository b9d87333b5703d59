// SPDX-License-Identifier: Apache-2.0
//
// Output to standard output, or to a file that appears only when it is
// complete.
#ifndef QUIRE_CLIENT_CLI_OUTPUT_FILE_H_
#define QUIRE_CLIENT_CLI_OUTPUT_FILE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "codecs/base/bytes.h"

namespace quire {

// True if `status` means that the reader of standard output closed it, as
// `head` does: not an error, and not reported.
bool IsClosedOutput(const absl::Status& status);

// Returns a status for the system's errno: FailedPrecondition, which failures
// of a server never have here, or that of IsClosedOutput().
absl::Status SystemError(absl::string_view what, absl::string_view path);

// Thread-compatible.
class OutputFile {
 public:
  // "-" is standard output. A regular file is written aside, in the same
  // directory, and gets its name at Commit(). Any other existing file (a
  // device, a pipe) is written directly. A symbolic link is kept: its target is
  // replaced.
  // Errors: FailedPrecondition  names the path and the system's reason.
  static absl::StatusOr<std::unique_ptr<OutputFile>> Open(
      const std::string& path);

  // The same for a path that no user named: whatever is there, such as a link
  // or a pipe that another user made, is replaced.
  static absl::StatusOr<std::unique_ptr<OutputFile>> OpenNew(
      const std::string& path);

  // Discards uncommitted output: an existing file is unchanged.
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  // May buffer the bytes.
  // Errors: as Flush().
  absl::Status Write(ByteView bytes);

  absl::Status Write(absl::string_view text) { return Write(AsBytes(text)); }

  // Writes at an offset of the file, in any order. Excludes Write(). REQUIRES:
  // is_aside(). Errors: as Flush().
  absl::Status WriteAt(uint64_t offset, ByteView bytes);

  // Writes buffered bytes.
  // Errors: IsClosedOutput(); FailedPrecondition, naming the path and the
  // system's reason, such as a full disk.
  absl::Status Flush();

  // Flushes and renames the file into place; `sync` makes it durable. Nothing
  // may be written afterwards.
  absl::Status Commit(bool sync = true);

  // As Commit(), but under the path plus ".partial", which it returns; a file
  // at the path itself is unchanged. REQUIRES: is_aside().
  absl::StatusOr<std::string> CommitPartial();

  // True if the path names a regular file or does not exist.
  bool is_aside() const { return aside_; }

  bool is_terminal() const;

  bool is_standard_output() const { return path_ == "-"; }

 private:
  OutputFile(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}

  absl::Status OpenAside();
  absl::Status PutInPlace(bool sync);

  // As given, with links resolved.
  std::string path_;
  int fd_ = -1;
  // True if the file is written aside: under aside_path_ or, if that is empty,
  // without a name.
  bool aside_ = false;
  std::string aside_path_;
  std::string buffer_;
};

// A directory of output files, the DIR of --output-dir. Thread-compatible.
class OutputDirectory {
 public:
  // Creates the directory unless it exists. Does not create its parents.
  // Errors: FailedPrecondition, naming the path and the system's reason.
  static absl::StatusOr<OutputDirectory> Create(const std::string& path);

  // Writes a file in it, which appears when `write` has passed all of its
  // bytes. Not durable before Sync(). Errors: as OutputFile::OpenNew(),
  // OutputFile::Write(), and of `write`. REQUIRES: `name` has no slash.
  absl::Status WriteFile(const std::string& name,
                         absl::FunctionRef<absl::Status(
                             absl::FunctionRef<absl::Status(ByteView)> sink)>
                             write) const;

  // Makes all files in it durable.
  // Errors: FailedPrecondition, as Create().
  absl::Status Sync() const;

 private:
  explicit OutputDirectory(std::string path) : path_(std::move(path)) {}

  std::string path_;
};

}  // namespace quire

#endif  // QUIRE_CLIENT_CLI_OUTPUT_FILE_H_
