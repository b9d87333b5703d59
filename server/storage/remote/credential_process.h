// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef QUIRE_SERVER_STORAGE_REMOTE_CREDENTIAL_PROCESS_H_
#define QUIRE_SERVER_STORAGE_REMOTE_CREDENTIAL_PROCESS_H_

#include <atomic>
#include <chrono>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace quire {

// Runs a program (found in PATH) without a shell, with this process's
// environment, no input, no other open files, and a process group of its own,
// and returns what it writes to stdout, at most 64 KiB. Blocks until the
// program ends and is reaped. At an error its group is killed. Thread-safe.
// Errors: FailedPrecondition  the program cannot be started, writes too much,
//                             or fails; the message then has the first line of
//                             its stderr, at most 1000 bytes of it.
//         DeadlineExceeded    it runs for longer than `time_max`.
//         Cancelled           `cancel` is true; noticed within 50 ms.
// REQUIRES: !arguments.empty().
absl::StatusOr<std::string> RunCredentialProcess(
    const std::vector<std::string>& arguments,
    std::chrono::milliseconds time_max, const std::atomic<bool>& cancel);

}  // namespace quire

#endif  // QUIRE_SERVER_STORAGE_REMOTE_CREDENTIAL_PROCESS_H_
