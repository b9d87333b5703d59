// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/commands/interrupt_flag.h"

#include <array>
#include <csignal>

#include "server/commands/remote_paths.h"

namespace quire {
namespace {

constexpr std::array<int, 3> kSignals = {SIGINT, SIGTERM, SIGHUP};

std::atomic<bool> interrupted = false;
std::atomic<int> interrupting_signal = 0;
static_assert(std::atomic<bool>::is_always_lock_free &&
              std::atomic<int>::is_always_lock_free);

std::array<struct sigaction, kSignals.size()> previous_actions;

void SetFlag(int signal_number) {
  interrupting_signal = signal_number;
  interrupted = true;
}

}  // namespace

InterruptFlag::InterruptFlag() {
  interrupted = false;
  interrupting_signal = 0;
  for (size_t i = 0; i < kSignals.size(); ++i) {
    struct sigaction action = {};
    action.sa_handler = SetFlag;
    // The kernel restores the default before it calls the handler, and restarts
    // interrupted system calls.
    action.sa_flags = static_cast<int>(SA_RESETHAND | SA_RESTART);
    sigaction(kSignals[i], nullptr, &previous_actions[i]);
    // Keep ignoring a hang-up under nohup.
    if (previous_actions[i].sa_handler != SIG_IGN) {
      sigaction(kSignals[i], &action, nullptr);
    }
  }
}

InterruptFlag::~InterruptFlag() {
  for (size_t i = 0; i < kSignals.size(); ++i) {
    sigaction(kSignals[i], &previous_actions[i], nullptr);
  }
}

const std::atomic<bool>* InterruptFlag::flag() {
  return &interrupted;
}

void InterruptFlag::EndProcessIfSet() const {
  if (interrupted) {
    const int signal_number = interrupting_signal;
    RemotePaths::RemoveDirectories();
    signal(signal_number, SIG_DFL);
    raise(signal_number);
  }
}

}  // namespace quire
