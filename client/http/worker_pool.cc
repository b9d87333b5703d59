// SPDX-License-Identifier: Apache-2.0
#include "client/http/worker_pool.h"

#include <chrono>
#include <system_error>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"

namespace quire {
namespace {

// Pool of this thread.
thread_local WorkerPool* current_pool = nullptr;

}  // namespace

absl::StatusOr<std::unique_ptr<WorkerPool>> WorkerPool::Start(
    int thread_count) {
  auto pool = absl::WrapUnique(new WorkerPool());
  {
    MutexLock lock(&pool->mutex_);
    pool->thread_count_ = thread_count;
  }
  for (int i = 0; i < thread_count; ++i) {
    try {
      pool->threads_.emplace_back(&WorkerPool::Run, pool.get());
    } catch (const std::system_error& error) {
      return absl::ResourceExhaustedError(
          absl::StrCat("the system gives no thread: ", error.what()));
    }
  }
  return pool;
}

WorkerPool::~WorkerPool() {
  {
    MutexLock lock(&mutex_);
    stops_ = true;
  }
  changed_.NotifyAll();
  stopped_.NotifyAll();
  for (std::thread& thread : threads_) {
    thread.join();
  }
}

void WorkerPool::Submit(Job job) {
  {
    MutexLock lock(&mutex_);
    jobs_.push_back(std::move(job));
  }
  changed_.NotifyOne();
}

size_t WorkerPool::queue_size() const {
  MutexLock lock(&mutex_);
  return jobs_.size();
}

bool WorkerPool::WaitOnThread(absl::Duration delay) {
  return current_pool != nullptr && current_pool->Wait(delay);
}

bool WorkerPool::Wait(absl::Duration delay) {
  MutexLock lock(&mutex_);
  if (waiting_count_ + 1 >= thread_count_) {
    return false;
  }
  ++waiting_count_;
  const auto until =
      std::chrono::steady_clock::now() + absl::ToChronoNanoseconds(delay);
  while (!stops_ && std::chrono::steady_clock::now() < until) {
    stopped_.WaitFor(&mutex_, until - std::chrono::steady_clock::now());
  }
  --waiting_count_;
  return true;
}

void WorkerPool::Run() {
  current_pool = this;
  for (;;) {
    Job job;
    {
      MutexLock lock(&mutex_);
      while (jobs_.empty() && !stops_) {
        changed_.Wait(&mutex_);
      }
      if (jobs_.empty()) {
        return;
      }
      job = std::move(jobs_.front());
      jobs_.pop_front();
    }
    job();
  }
}

}  // namespace quire
