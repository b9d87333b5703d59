// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef QUIRE_SERVER_COMMANDS_INTERRUPT_FLAG_H_
#define QUIRE_SERVER_COMMANDS_INTERRUPT_FLAG_H_

#include <atomic>

namespace quire {

// While it lives, the first SIGINT, SIGTERM or SIGHUP sets a flag instead of
// ending the process, so that the work can be broken off in good order; the
// second one ends it at once.
// At most one at a time in a process.
class InterruptFlag {
 public:
  InterruptFlag();
  // Puts back what was there before.
  ~InterruptFlag();
  InterruptFlag(const InterruptFlag&) = delete;
  InterruptFlag& operator=(const InterruptFlag&) = delete;

  const std::atomic<bool>* flag() const;

  // Ends the process by the signal that set the flag, so that who started it
  // (a shell with a loop, say) sees what happened. Does nothing if none did.
  void EndProcessIfSet() const;
};

}  // namespace quire

#endif  // QUIRE_SERVER_COMMANDS_INTERRUPT_FLAG_H_
