// SPDX-License-Identifier: Apache-2.0
//
// Threads whose start may fail. std::thread throws if the system cannot start
// another one, which must not end the caller's program. Internal to the client
// library.
#ifndef QUIRE_CLIENT_QUIRE_INTERNAL_STARTED_THREAD_H_
#define QUIRE_CLIENT_QUIRE_INTERNAL_STARTED_THREAD_H_

#include <functional>
#include <thread>

#include "absl/status/statusor.h"

namespace quire {

// Starts a thread that runs `body`; the caller must join it. Does not block.
// Thread-safe.
// Errors: ResourceExhausted  the limit on threads or processes is reached, or
//                            there is no memory for another stack. An immediate
//                            retry does not help.
absl::StatusOr<std::thread> StartThread(std::function<void()> body);

}  // namespace quire

#endif  // QUIRE_CLIENT_QUIRE_INTERNAL_STARTED_THREAD_H_
