// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/storage/fetch/decode_pool.h"

#include <iterator>
#include <utility>

#include "codecs/base/status_macros.h"
#include "server/storage/base/cgroup.h"

namespace quire {

absl::StatusOr<std::unique_ptr<DecodePool>> DecodePool::Create(
    uint32_t thread_count) {
  if (thread_count == 0) {
    thread_count = UsableCores();
  }
  auto pool = std::unique_ptr<DecodePool>(new DecodePool);
  QUIRE_ASSIGN_OR_RETURN(
      pool->threads_,
      Threads::Start("quire-decode", thread_count,
                     [p = pool.get()](Task& task) { p->Run(task); }));
  return pool;
}

void DecodePool::Add(std::vector<Task>& tasks) {
  if (tasks.empty()) {
    return;
  }
  for (const Task& task : tasks) {
    NoteClient(task.client_id);
  }
  threads_->Add(std::make_move_iterator(tasks.begin()),
                std::make_move_iterator(tasks.end()));
  tasks.clear();
}

void DecodePool::Add(Task task) {
  NoteClient(task.client_id);
  threads_->Add(std::make_move_iterator(&task),
                std::make_move_iterator(&task + 1));
}

std::chrono::nanoseconds DecodePool::Backlog() const {
  const size_t waiting_count = queue_length();
  return task_time_.mean() * waiting_count / threads_->thread_count();
}

void DecodePool::NoteClient(uint64_t client_id) {
  if (last_client_id_.load(std::memory_order_relaxed) != client_id) {
    last_client_id_.store(client_id, std::memory_order_relaxed);
    tasks_of_one_.store(0, std::memory_order_relaxed);
  } else if (serves_several_clients()) {
    tasks_of_one_.fetch_add(1, std::memory_order_relaxed);
  }
}

void DecodePool::Run(Task& task) {
  const auto start = std::chrono::steady_clock::now();
  task.run();
  // Freeing its captures is part of its work.
  task.run = nullptr;
  task_time_.Add(std::chrono::steady_clock::now() - start);
}

}  // namespace quire
