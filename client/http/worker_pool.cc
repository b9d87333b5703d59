// SPDX-License-Identifier: Apache-2.0
#include "client/http/worker_pool.h"

#include <system_error>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"

namespace quire {

absl::StatusOr<std::unique_ptr<WorkerPool>> WorkerPool::Start(
    int thread_count) {
  auto pool = absl::WrapUnique(new WorkerPool());
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

void WorkerPool::Run() {
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
