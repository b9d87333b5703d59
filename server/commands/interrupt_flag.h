// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef QUIRE_SERVER_COMMANDS_INTERRUPT_FLAG_H_
#define QUIRE_SERVER_COMMANDS_INTERRUPT_FLAG_H_

#include <atomic>

namespace quire {

// During its lifetime, the first SIGINT, SIGTERM or SIGHUP sets a flag instead
// of ending the process, so that the work can stop cleanly. The second one ends
// the process at once.
// At most one instance at a time in a process.
class InterruptFlag {
 public:
  InterruptFlag();
  // Restores the previous handlers.
  ~InterruptFlag();
  InterruptFlag(const InterruptFlag&) = delete;
  InterruptFlag& operator=(const InterruptFlag&) = delete;

  // Not set before there is an instance.
  static const std::atomic<bool>* flag();

  // Removes the directory of RemotePaths and ends the process by the signal
  // that set the flag, so that its parent (a shell loop, for example) sees it.
  // No effect without a signal.
  void EndProcessIfSet() const;
};

}  // namespace quire

#endif  // QUIRE_SERVER_COMMANDS_INTERRUPT_FLAG_H_
