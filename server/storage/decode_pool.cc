// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/storage/decode_pool.h"

#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <system_error>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace quire {

absl::StatusOr<std::unique_ptr<DecodePool>> DecodePool::Create(
    uint32_t thread_count) {
  if (thread_count == 0) {
    thread_count = std::max(1U, std::thread::hardware_concurrency());
  }
  auto pool = std::unique_ptr<DecodePool>(new DecodePool);
  try {
    for (uint32_t i = 0; i < thread_count; ++i) {
      pool->threads_.emplace_back([p = pool.get()] { p->Run(); });
    }
  } catch (const std::system_error& error) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "cannot start ", thread_count, " threads to decode with: ",
        error.what(), "; raise the limit on threads or ask for fewer"));
  }
  return pool;
}

DecodePool::~DecodePool() {
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
  }
  work_.NotifyAll();
  for (std::thread& thread : threads_) {
    thread.join();
  }
}

void DecodePool::Add(std::vector<Task>& tasks) {
  size_t wake = 0;
  {
    MutexLock lock(&mutex_);
    for (Task& task : tasks) {
      queue_.push_back(std::move(task));
    }
    wake = std::min<size_t>(idle_threads_, tasks.size());
  }
  tasks.clear();
  for (size_t i = 0; i < wake; ++i) {
    work_.NotifyOne();
  }
}

std::chrono::nanoseconds DecodePool::Backlog() const {
  MutexLock lock(&mutex_);
  return mean_task_time_ * queue_.size() / threads_.size();
}

void DecodePool::Run() {
  pthread_setname_np(pthread_self(), "quire-decode");
  mutex_.Lock();
  while (true) {
    // A busy thread's task may add more: while one is busy none leaves.
    while (queue_.empty() && !(stopping_ && busy_threads_ == 0)) {
      ++idle_threads_;
      work_.Wait(&mutex_);
      --idle_threads_;
    }
    if (queue_.empty()) {
      break;
    }
    Task task = std::move(queue_.front());
    queue_.pop_front();
    ++busy_threads_;
    mutex_.Unlock();
    const auto start = std::chrono::steady_clock::now();
    task();
    // What it captured goes before the lock comes back.
    task = nullptr;
    const std::chrono::nanoseconds task_time =
        std::chrono::steady_clock::now() - start;
    mutex_.Lock();
    mean_task_time_ += (task_time - mean_task_time_) / 16;
    --busy_threads_;
    if (stopping_ && busy_threads_ == 0) {
      work_.NotifyAll();
    }
  }
  mutex_.Unlock();
}

}  // namespace quire
