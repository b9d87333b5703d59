// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/service/archive_opener.h"

#include <pthread.h>

#include <algorithm>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

#include "server/storage/base/cgroup.h"

namespace quire {
namespace {

// Each opening alternates between reading and decompressing.
size_t OpenerThreadCount() {
  return std::clamp<size_t>(2 * size_t{UsableCores()}, 4, 16);
}

// Time to the next look for free memory; longer if it makes a request.
constexpr std::chrono::milliseconds kSpaceRetryDelay{20};
constexpr std::chrono::milliseconds kRemoteSpaceRetryDelay{500};

}  // namespace

ArchiveOpener::~ArchiveOpener() {
  Stop();
}

void ArchiveOpener::Open(const ArchiveArgument& archive) {
  {
    MutexLock lock(&mutex_);
    queue_.push_back(archive);
  }
  changed_.NotifyOne();
}

absl::Status ArchiveOpener::Start() {
  MutexLock lock(&mutex_);
  if (is_stopped_) {
    return absl::OkStatus();
  }
  try {
    while (threads_.size() < OpenerThreadCount()) {
      threads_.emplace_back([this] {
        pthread_setname_np(pthread_self(), "quire-opener");
        Run();
      });
    }
  } catch (const std::system_error&) {
    // Two: one for archives in object stores, one for the others.
    if (threads_.size() < 2) {
      return absl::ResourceExhaustedError(
          "no more threads are available for --archives-list");
    }
  }
  return absl::OkStatus();
}

void ArchiveOpener::Stop() {
  std::vector<std::thread> threads;
  {
    MutexLock lock(&mutex_);
    is_stopped_ = true;
    threads.swap(threads_);
  }
  changed_.NotifyAll();
  for (std::thread& thread : threads) {
    thread.join();
  }
}

ArchiveOpener::Figures ArchiveOpener::figures() const {
  MutexLock lock(&mutex_);
  return figures_;
}

void ArchiveOpener::Run() {
  while (const std::optional<ArchiveArgument> archive = Next()) {
    OpenNow(*archive);
    {
      MutexLock lock(&mutex_);
      remote_count_ -= archive->url.empty() ? 0 : 1;
    }
    // Another archive in an object store may begin.
    changed_.NotifyOne();
  }
}

std::optional<ArchiveArgument> ArchiveOpener::Next() {
  MutexLock lock(&mutex_);
  while (true) {
    if (is_stopped_) {
      return std::nullopt;
    }
    const Clock::time_point now = Clock::now();
    while (!later_.empty() && later_.begin()->first <= now) {
      queue_.push_back(std::move(later_.begin()->second));
      later_.erase(later_.begin());
    }
    if (std::optional<ArchiveArgument> ready = TakeReady(); ready.has_value()) {
      return ready;
    }
    if (later_.empty()) {
      changed_.Wait(&mutex_);
    } else {
      changed_.WaitFor(&mutex_, later_.begin()->first - now);
    }
  }
}

std::optional<ArchiveArgument> ArchiveOpener::TakeReady() {
  const size_t remote_max = std::max<size_t>(1, threads_.size() / 2);
  const bool may_be_remote = remote_count_ < remote_max;
  const auto ready =
      std::find_if(queue_.begin(), queue_.end(), [&](const auto& archive) {
        return may_be_remote || archive.url.empty();
      });
  if (ready == queue_.end()) {
    return std::nullopt;
  }
  ArchiveArgument taken = std::move(*ready);
  queue_.erase(ready);
  remote_count_ += taken.url.empty() ? 0 : 1;
  return taken;
}

void ArchiveOpener::OpenNow(const ArchiveArgument& archive) {
  const ArchiveLoader::Outcome outcome = loader_.OpenOnUse(archive.name);
  if (!outcome.reason.ok()) {
    log_(LogLevel::kError,
         absl::StrCat("archive ", archive.name,
                      " cannot be opened, and is tried again on use after ",
                      absl::FormatDuration(absl::FromChrono(outcome.delay)),
                      ": ", outcome.reason.message()));
  }
  MutexLock lock(&mutex_);
  figures_.failed_count += outcome.reason.ok() ? 0 : 1;
  figures_.opened_count += outcome.is_open ? 1 : 0;
  if (outcome.is_waiting) {
    later_.emplace(
        Clock::now() +
            (archive.url.empty() ? kSpaceRetryDelay : kRemoteSpaceRetryDelay),
        archive);
  }
}

}  // namespace quire
