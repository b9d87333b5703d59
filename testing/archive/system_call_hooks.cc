// SPDX-License-Identifier: GPL-3.0-or-later
//
// The linker prefers these definitions to those of the C library.
#include "testing/archive/system_call_hooks.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <utility>

namespace quire {
namespace {

std::atomic<const SystemCallHooks*> installed = nullptr;
thread_local bool is_in_hook = false;

template <typename Hook, typename... Arguments>
void Tell(Hook SystemCallHooks::*hook, const Arguments&... arguments) {
  const SystemCallHooks* const hooks = installed;
  if (hooks == nullptr || !(hooks->*hook) || is_in_hook) {
    return;
  }
  is_in_hook = true;
  (hooks->*hook)(arguments...);
  is_in_hook = false;
}

int LinkError(const std::string& name) {
  const SystemCallHooks* const hooks = installed;
  return hooks != nullptr && hooks->fail_linkat ? hooks->fail_linkat(name) : 0;
}

}  // namespace

SystemCallHooks KillBefore(int call, int link_error) {
  const auto left = std::make_shared<std::atomic<int>>(call);
  const auto visit = [left] {
    if ((*left)-- == 0) {
      raise(SIGKILL);
    }
  };
  return {
      .before_openat = [=](const std::string&) { visit(); },
      .before_fsync = [=](int) { visit(); },
      .before_flock = visit,
      .before_rename = [=](const std::string&, const std::string&) { visit(); },
      .before_unlinkat = [=](const std::string&) { visit(); },
      .fail_linkat =
          [=](const std::string&) {
            visit();
            return link_error;
          }};
}

ScopedSystemCallHooks::ScopedSystemCallHooks(SystemCallHooks hooks) {
  if (installed.exchange(new SystemCallHooks(std::move(hooks))) != nullptr) {
    std::abort();
  }
}

ScopedSystemCallHooks::~ScopedSystemCallHooks() {
  delete installed.exchange(nullptr);
}

}  // namespace quire

extern "C" {

// NOLINTBEGIN(cert-dcl50-cpp,
// readability-inconsistent-declaration-parameter-name)
int openat(int directory_fd, const char* name, int flags, ...) {
  mode_t mode = 0;
  if ((flags & O_CREAT) != 0) {
    va_list arguments;
    va_start(arguments, flags);
    mode = va_arg(arguments, mode_t);
    va_end(arguments);
  }
  quire::Tell(&quire::SystemCallHooks::before_openat, std::string(name));
  return static_cast<int>(syscall(SYS_openat, directory_fd, name, flags, mode));
}

int fsync(int fd) {
  quire::Tell(&quire::SystemCallHooks::before_fsync, fd);
  return static_cast<int>(syscall(SYS_fsync, fd));
}

int flock(int fd, int operation) noexcept {
  quire::Tell(&quire::SystemCallHooks::before_flock);
  return static_cast<int>(syscall(SYS_flock, fd, operation));
}

int renameat2(int from_fd, const char* from, int to_fd, const char* to,
              unsigned int flags) noexcept {
  quire::Tell(&quire::SystemCallHooks::before_rename, std::string(from),
              std::string(to));
  return static_cast<int>(
      syscall(SYS_renameat2, from_fd, from, to_fd, to, flags));
}

int renameat(int from_fd, const char* from, int to_fd,
             const char* to) noexcept {
  return renameat2(from_fd, from, to_fd, to, 0);
}

int unlinkat(int directory_fd, const char* name, int flags) noexcept {
  quire::Tell(&quire::SystemCallHooks::before_unlinkat, std::string(name));
  return static_cast<int>(syscall(SYS_unlinkat, directory_fd, name, flags));
}

int linkat(int from_fd, const char* from, int to_fd, const char* to,
           int flags) noexcept {
  errno = quire::LinkError(to);
  return errno != 0 ? -1
                    : static_cast<int>(
                          syscall(SYS_linkat, from_fd, from, to_fd, to, flags));
}

// NOLINTEND(cert-dcl50-cpp,
// readability-inconsistent-declaration-parameter-name)

}  // extern "C"
