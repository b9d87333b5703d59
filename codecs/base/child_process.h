// SPDX-License-Identifier: Apache-2.0
//
// A program that is run for its output.
#ifndef QUIRE_CODECS_BASE_CHILD_PROCESS_H_
#define QUIRE_CODECS_BASE_CHILD_PROCESS_H_

#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "codecs/base/unique_fd.h"

namespace quire {

// A child in a process group of its own, with this environment, an empty
// standard input and no other descriptors. Thread-compatible.
class ChildProcess {
 public:
  // Starts the program arguments[0], a path or a name in PATH.
  // REQUIRES: !arguments.empty().
  // Errors: FailedPrecondition  it cannot be started; does not name it.
  static absl::StatusOr<std::unique_ptr<ChildProcess>> Start(
      const std::vector<std::string>& arguments);

  // Kills the group and reaps the child, if it has not ended.
  ~ChildProcess();

  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  // The pipe of its standard output. Reads do not block.
  int out_fd() const { return out_.get(); }

  // Reads what is in the pipe of its standard error, and keeps the beginning.
  void ReadErrors();

  // Waits up to `time_max_ms` milliseconds, or without a limit if negative, for
  // bytes of its standard output, if `wants_out`, or of its standard error, or
  // for its end. May return early.
  void Wait(bool wants_out, int time_max_ms);

  // Returns true if it has ended.
  bool HasEnded() { return status_.has_value() || Reap(false); }

  // Returns OK if it ended with exit code 0.
  // REQUIRES: HasEnded().
  // Errors: FailedPrecondition  its exit code or signal, and the first line
  //                             that it wrote to standard error.
  absl::Status CheckEnd() const;

 private:
  ChildProcess(pid_t pid, UniqueFd out, UniqueFd error);

  bool Reap(bool may_wait);

  const pid_t pid_;
  // Becomes readable at the end; none if the kernel has none.
  const UniqueFd exit_;
  const UniqueFd out_;
  const UniqueFd error_;
  bool is_error_open_ = true;
  std::string errors_;
  // That of waitpid().
  std::optional<int> status_;
};

}  // namespace quire

#endif  // QUIRE_CODECS_BASE_CHILD_PROCESS_H_
