// SPDX-License-Identifier: Apache-2.0
#include "client/quire/internal/started_thread.h"

#include <system_error>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace quire {

absl::StatusOr<std::thread> StartThread(std::function<void()> body) {
  try {
    return std::thread(std::move(body));
  } catch (const std::system_error& error) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "this process cannot start another thread (", error.code().message(),
        "): see its limits of processes (ulimit -u, TasksMax of its service) "
        "and of memory"));
  }
}

}  // namespace quire
