// SPDX-License-Identifier: Apache-2.0
//
// Where the bytes go: standard output, or a file that appears only when it is
// whole.
#ifndef QUIRE_CLIENT_CLI_OUTPUT_FILE_H_
#define QUIRE_CLIENT_CLI_OUTPUT_FILE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "codecs/base/bytes.h"

namespace quire {

// Whether `status` says that the reader of standard output went away, as `head`
// does: no mistake, and nothing to talk about.
bool IsClosedOutput(const absl::Status& status);

// A status of the system's errno, with a code that no server's failure has
// here: FailedPrecondition, or the one of IsClosedOutput().
absl::Status SystemError(absl::string_view what, absl::string_view path);

// Thread-compatible.
class OutputFile {
 public:
  // "-" is standard output. Anything else that exists and is no regular file
  // (a device, a pipe) is written to directly; a regular file is written aside,
  // in the same directory, and takes the name at Commit(). A symbolic link
  // keeps being one: the file it leads to is replaced. Errors:
  // FailedPrecondition, naming the path and the system's reason.
  static absl::StatusOr<std::unique_ptr<OutputFile>> Open(
      const std::string& path);

  // Gives up what was not committed: the file is as it was before.
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  // May keep the bytes for a while.
  // Errors: as Flush().
  absl::Status Write(ByteView bytes);

  absl::Status Write(absl::string_view text) { return Write(AsBytes(text)); }

  // Writes at a place of the file, whatever was written before and elsewhere.
  // Not together with Write(). REQUIRES: is_aside(). Errors: as Flush().
  absl::Status WriteAt(uint64_t offset, ByteView bytes);

  // Hands on what Write() kept.
  // Errors: IsClosedOutput(); FailedPrecondition, naming the path and the
  // system's reason, such as a full disk.
  absl::Status Flush();

  // Flushes and puts the file in place; `sync` makes it outlast a crash of the
  // machine. Nothing may be written after it.
  absl::Status Commit(bool sync = true);

  // As Commit(), but under the path with ".partial" behind it, which it
  // returns: what is at the path itself stays as it was.
  // REQUIRES: is_aside().
  absl::StatusOr<std::string> CommitPartial();

  // Whether the path names a regular file or nothing yet.
  bool is_aside() const { return aside_; }

  bool is_terminal() const;

  bool is_standard_output() const { return path_ == "-"; }

 private:
  OutputFile(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}

  absl::Status OpenAside();
  absl::Status PutInPlace(bool sync);

  // As given, but for links, which are followed.
  std::string path_;
  int fd_ = -1;
  // The file is written aside: under this name, or, if empty, under none yet.
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

  // Opens a file in it, to be committed without a sync.
  // Errors: as OutputFile::Open(). REQUIRES: `name` has no slash.
  absl::StatusOr<std::unique_ptr<OutputFile>> OpenFile(
      const std::string& name) const;

  // Makes all files in it outlast a crash of the machine.
  // Errors: FailedPrecondition, as Create().
  absl::Status Sync() const;

 private:
  explicit OutputDirectory(std::string path) : path_(std::move(path)) {}

  std::string path_;
};

}  // namespace quire

#endif  // QUIRE_CLIENT_CLI_OUTPUT_FILE_H_
