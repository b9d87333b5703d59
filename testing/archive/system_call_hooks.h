// SPDX-License-Identifier: GPL-3.0-or-later
//
// Hooks that run before some system calls; for tests only. A program that links
// this calls the kernel through it.
#ifndef QUIRE_TESTING_ARCHIVE_SYSTEM_CALL_HOOKS_H_
#define QUIRE_TESTING_ARCHIVE_SYSTEM_CALL_HOOKS_H_

#include <functional>
#include <string>

namespace quire {

// Each may be empty. Called on the calling thread, which may be any. System
// calls of a hook itself bypass the hooks.
struct SystemCallHooks {
  // Called with the name as given.
  std::function<void(const std::string& name)> before_openat = {};
  std::function<void(int fd)> before_fsync = {};
  std::function<void()> before_flock = {};
  // renameat() and renameat2().
  std::function<void(const std::string& from, const std::string& to)>
      before_rename = {};
  std::function<void(const std::string& name)> before_unlinkat = {};
  // Returns 0, or the error with which linkat() fails.
  std::function<int(const std::string& name)> fail_linkat = {};
};

// Returns hooks that end the process by SIGKILL before one of these calls,
// `call` of them after the first, on any thread: for a child process. linkat()
// fails with `link_error` unless it is 0.
SystemCallHooks KillBefore(int call, int link_error = 0);

// Installs hooks while it lives. At most one at a time, installed and removed
// while no other thread makes such calls.
class ScopedSystemCallHooks {
 public:
  explicit ScopedSystemCallHooks(SystemCallHooks hooks);
  ScopedSystemCallHooks(const ScopedSystemCallHooks&) = delete;
  ScopedSystemCallHooks& operator=(const ScopedSystemCallHooks&) = delete;
  ~ScopedSystemCallHooks();
};

}  // namespace quire

#endif  // QUIRE_TESTING_ARCHIVE_SYSTEM_CALL_HOOKS_H_
