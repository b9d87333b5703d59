// SPDX-License-Identifier: Apache-2.0
//
// Threads whose start may fail. std::thread throws where the system gives no
// more of them, which must not end the program that this library is part of.
// Internal to the client library.
#ifndef QUIRE_CLIENT_QUIRE_INTERNAL_STARTED_THREAD_H_
#define QUIRE_CLIENT_QUIRE_INTERNAL_STARTED_THREAD_H_

#include <functional>
#include <thread>

#include "absl/status/statusor.h"

namespace quire {

// A thread that runs `body`, which the caller must join. Does not block.
// Thread-safe.
// Errors: ResourceExhausted  a limit of threads or processes is reached, or
//                            there is no memory for another stack. Not worth a
//                            retry at once: the limit is the machine's.
absl::StatusOr<std::thread> StartThread(std::function<void()> body);

}  // namespace quire

#endif  // QUIRE_CLIENT_QUIRE_INTERNAL_STARTED_THREAD_H_
