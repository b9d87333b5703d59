// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/service/archive_opener.h"

#include <pthread.h>

#include <algorithm>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

namespace quire {
namespace {

// Each opening alternates between reading and decompressing.
size_t OpenerThreadCount() {
  return std::clamp<size_t>(2 * size_t{std::thread::hardware_concurrency()}, 4,
                            16);
}

// Time to the next look for free memory; longer if it makes a request.
constexpr std::chrono::milliseconds kSpaceRetryDelay{20};
constexpr std::chrono::milliseconds kRemoteSpaceRetryDelay{500};

}  // namespace

ArchiveOpener::~ArchiveOpener() {
  Stop();
}

void ArchiveOpener::Open(std::shared_ptr<ListedArchive> archive) {
  {
    MutexLock lock(&mutex_);
    queue_.push_back(std::move(archive));
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
  while (const std::shared_ptr<ListedArchive> archive = Next()) {
    OpenNow(archive);
    {
      MutexLock lock(&mutex_);
      remote_count_ -= archive->argument().url.empty() ? 0 : 1;
    }
    // Another archive in an object store may begin.
    changed_.NotifyOne();
  }
}

std::shared_ptr<ListedArchive> ArchiveOpener::Next() {
  MutexLock lock(&mutex_);
  while (true) {
    if (is_stopped_) {
      return nullptr;
    }
    const Clock::time_point now = Clock::now();
    while (!later_.empty() && later_.begin()->first <= now) {
      queue_.push_back(std::move(later_.begin()->second));
      later_.erase(later_.begin());
    }
    if (std::shared_ptr<ListedArchive> ready = TakeReady(); ready != nullptr) {
      return ready;
    }
    if (later_.empty()) {
      changed_.Wait(&mutex_);
    } else {
      changed_.WaitFor(&mutex_, later_.begin()->first - now);
    }
  }
}

std::shared_ptr<ListedArchive> ArchiveOpener::TakeReady() {
  const size_t remote_max = std::max<size_t>(1, threads_.size() / 2);
  const bool may_be_remote = remote_count_ < remote_max;
  const auto ready =
      std::find_if(queue_.begin(), queue_.end(), [&](const auto& archive) {
        return may_be_remote || archive->argument().url.empty();
      });
  if (ready == queue_.end()) {
    return nullptr;
  }
  std::shared_ptr<ListedArchive> taken = std::move(*ready);
  queue_.erase(ready);
  remote_count_ += taken->argument().url.empty() ? 0 : 1;
  return taken;
}

void ArchiveOpener::OpenNow(const std::shared_ptr<ListedArchive>& archive) {
  const absl::StatusOr<ArchiveLoader::ListedOutcome> outcome =
      loader_.OpenListed(archive);
  if (!outcome.ok() && !absl::IsCancelled(outcome.status())) {
    const absl::Duration delay =
        absl::FromChrono(archive->Failed(Clock::now()));
    {
      MutexLock lock(&mutex_);
      ++figures_.failed_count;
    }
    if (say_) {
      say_(LogLevel::kError,
           absl::StrCat("archive ", archive->argument().name,
                        " cannot be opened, and is tried again on use after ",
                        absl::FormatDuration(delay), ": ",
                        outcome.status().message()));
    }
    return;
  }
  MutexLock lock(&mutex_);
  if (outcome.ok() && *outcome == ArchiveLoader::ListedOutcome::kLater) {
    later_.emplace(Clock::now() + (archive->argument().url.empty()
                                       ? kSpaceRetryDelay
                                       : kRemoteSpaceRetryDelay),
                   archive);
    return;
  }
  if (outcome.ok() && *outcome == ArchiveLoader::ListedOutcome::kOpened) {
    ++figures_.opened_count;
    return;
  }
  archive->Cancelled();
}

}  // namespace quire
