// SPDX-License-Identifier: GPL-3.0-or-later
//
// Random requests against the elevator; each of its promises is checked.
#include <algorithm>
#include <array>
#include <map>
#include <random>
#include <set>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

#include "server/storage/scheduler/elevator_scheduler.h"
#include "testing/base/status_matchers.h"
#include "testing/storage/elevator_testing.h"

namespace quire {
namespace {

// Drives a scheduler with random requests and checks each promise against its
// own record.
class Model {
 public:
  explicit Model(uint64_t seed)
      : random_(seed),
        options_({.pending_requests_max = 400,
                  .read_size_bytes_max = 1 << 16,
                  .gap_size_bytes_max = 2000}),
        scheduler_(options_),
        // From dense, where most requests are joined, to sparse.
        span_bytes_(uint64_t{1} << (14 + random_() % 14)),
        fragment_bytes_(random_() % 2 * (4096 + random_() % 100000)) {}

  void Step() {
    const uint64_t dice = random_() % 100;
    if (dice < push_percent_) {
      Push();
    } else if (dice < push_percent_ + 3) {
      Cancel();
    } else if (dice < push_percent_ + 5) {
      Promote();
    } else {
      Dispatch();
    }
    if (random_() % 500 == 0) {
      push_percent_ = 20 + random_() % 70;
    }
    ASSERT_EQ(scheduler_.pending_requests(), waiting_.size());
    ASSERT_EQ(scheduler_.reads_in_flight(), in_flight_.size());
  }

  void Drain() {
    // About one dispatch in three serves a request; a scheduler that starves
    // one must fail and not loop.
    uint64_t steps_left = 1000 + 200 * waiting_.size();
    while (!waiting_.empty()) {
      ASSERT_GT(steps_left--, 0U)
          << waiting_.size() << " requests are never dispatched, the first is "
          << waiting_.begin()->first;
      Dispatch();
      if (::testing::Test::HasFatalFailure()) {
        return;
      }
    }
  }

  uint64_t dispatched() const { return dispatched_; }

 private:
  struct Waiting {
    ScheduledRequest request;
    // Reads of its class before its arrival, and the most requests of its class
    // that waited at once since.
    uint64_t reads_before = 0;
    uint64_t waiting_max = 0;
  };

  static size_t IndexOf(FetchClass fetch_class) {
    return static_cast<size_t>(fetch_class);
  }

  uint64_t CountOf(FetchClass fetch_class) const {
    return static_cast<uint64_t>(
        std::count_if(waiting_.begin(), waiting_.end(), [&](const auto& w) {
          return w.second.request.fetch_class == fetch_class;
        }));
  }

  // Records the state of the class at a request's arrival.
  void Enter(uint64_t id, const ScheduledRequest& request) {
    waiting_[id] = {request, class_reads_[IndexOf(request.fetch_class)], 0};
    const uint64_t count = CountOf(request.fetch_class);
    for (auto& [other_id, other] : waiting_) {
      if (other.request.fetch_class == request.fetch_class) {
        other.waiting_max = std::max(other.waiting_max, count);
      }
    }
  }

  void Push() {
    ScheduledRequest request{
        .id = next_id_,
        .address = {.fd = static_cast<int>(random_() % 2),
                    .offset = FileOffset{random_() % span_bytes_}},
        .size_bytes = static_cast<uint32_t>(
            1 + random_() % (random_() % 50 == 0 ? 100000 : 3000)),
        .memory_size_bytes = random_() % 5000,
        .fetch_class = static_cast<FetchClass>(random_() % 3),
        .client_id = random_() % 4 * (random_() % 4)};
    if (fragment_bytes_ > 0) {
      Place(request);
    }
    const absl::Status status = scheduler_.Push(kStart, request);
    if (waiting_.size() >= options_.pending_requests_max) {
      ASSERT_THAT(status, HasCode(absl::StatusCode::kResourceExhausted));
      return;
    }
    QUIRE_ASSERT_OK(status);
    Enter(next_id_++, request);
  }

  // Both files are in fragments, from the last to the first, interleaved.
  void Place(ScheduledRequest& request) const {
    const uint64_t offset = request.address.offset.value;
    const uint64_t fragment = offset / fragment_bytes_;
    const uint64_t from_end = 2 * (span_bytes_ / fragment_bytes_ - fragment) +
                              static_cast<uint64_t>(request.address.fd);
    request.address.physical =
        from_end * fragment_bytes_ + offset % fragment_bytes_;
    request.contiguous_end = FileOffset{(fragment + 1) * fragment_bytes_};
  }

  void Cancel() {
    const uint64_t id = random_() % (next_id_ + 1);
    ASSERT_EQ(scheduler_.Cancel(id), waiting_.erase(id) == 1);
  }

  void Promote() {
    const auto it = waiting_.lower_bound(random_() % (next_id_ + 1));
    if (it == waiting_.end()) {
      return;
    }
    const auto to = static_cast<FetchClass>(random_() % 3);
    scheduler_.Promote(it->first, to);
    if (to < it->second.request.fetch_class) {
      ScheduledRequest request = it->second.request;
      request.fetch_class = to;
      Enter(request.id, request);
    }
  }

  void Dispatch() {
    const DispatchLimits limits{
        .reads_max = static_cast<uint32_t>(random_() % 4),
        .memory_size_bytes_max = random_() % 300000,
        .at_least_one = random_() % 2 == 0};
    const auto reads = scheduler_.Dispatch(kStart, limits);
    ASSERT_LE(reads.size(), limits.reads_max);
    uint64_t memory_size_bytes = 0;
    for (const ScheduledRead& read : reads) {
      memory_size_bytes += read.memory_size_bytes;
      ASSERT_TRUE(in_flight_.insert(read.id).second);
      CheckTurns(read);
      CheckContent(read);
    }
    const bool lone_giant = limits.at_least_one && reads.size() == 1 &&
                            reads[0].request_ids.size() == 1;
    if (!lone_giant) {
      ASSERT_LE(memory_size_bytes, limits.memory_size_bytes_max);
    }
    while (!in_flight_.empty() && random_() % 3 != 0) {
      scheduler_.Complete(kStart, *in_flight_.begin());
      in_flight_.erase(in_flight_.begin());
    }
  }

  // Before the read's requests are removed from the record.
  void CheckTurns(const ScheduledRead& read) {
    const bool others =
        CountOf(FetchClass::kBatch) + CountOf(FetchClass::kScan) > 0;
    const bool interactive = CountOf(FetchClass::kInteractive) > 0;
    if (read.fetch_class == FetchClass::kInteractive) {
      others_run_ = 0;
      interactive_run_ = others ? interactive_run_ + 1 : 0;
    } else {
      interactive_run_ = 0;
      others_run_ = interactive ? others_run_ + 1 : 0;
    }
    batch_run_ =
        read.fetch_class == FetchClass::kBatch && CountOf(FetchClass::kScan) > 0
            ? batch_run_ + 1
            : 0;
    // One more: the record still has requests that ride along.
    ASSERT_LE(interactive_run_, options_.interactive_turn_max + 1);
    ASSERT_LE(others_run_, options_.others_turn + 1);
    ASSERT_LE(batch_run_, 9);
    ++class_reads_[IndexOf(read.fetch_class)];
  }

  void CheckContent(const ScheduledRead& read) {
    ASSERT_FALSE(read.request_ids.empty());
    uint64_t end = read.address.offset.value;
    uint64_t previous = end;
    uint64_t memory_size_bytes = read.size_bytes;
    const auto first = waiting_.find(read.request_ids.front());
    ASSERT_NE(first, waiting_.end());
    const FileOffset contiguous_end = first->second.request.contiguous_end;
    for (const uint64_t id : read.request_ids) {
      const auto it = waiting_.find(id);
      ASSERT_NE(it, waiting_.end()) << "request " << id << " does not wait";
      const Waiting& waiting = it->second;
      const ScheduledRequest& request = waiting.request;
      ASSERT_EQ(request.address.fd, read.address.fd);
      const uint64_t at = request.address.offset.value;
      ASSERT_GE(at, previous);
      ASSERT_LE(at, end + options_.gap_size_bytes_max);
      if (id != read.request_ids.front()) {
        ASSERT_LE(at + request.size_bytes, contiguous_end.value);
      }
      previous = at;
      end = std::max(end, at + request.size_bytes);
      memory_size_bytes += request.memory_size_bytes;
      const uint64_t waited =
          class_reads_[IndexOf(request.fetch_class)] - waiting.reads_before;
      ASSERT_LE(waited, SweepQueue::ReadsUntilServedMax(waiting.waiting_max));
      waiting_.erase(it);
      ++dispatched_;
    }
    ASSERT_EQ(end, read.address.offset.value + read.size_bytes);
    ASSERT_EQ(memory_size_bytes, read.memory_size_bytes);
    if (read.request_ids.size() > 1) {
      ASSERT_LE(read.size_bytes, options_.read_size_bytes_max);
    }
  }

  std::mt19937_64 random_;
  const ElevatorScheduler::Options options_;
  ElevatorScheduler scheduler_;
  const uint64_t span_bytes_;
  // 0: the positions of the files are unknown.
  const uint64_t fragment_bytes_;
  uint64_t push_percent_ = 50;
  uint64_t next_id_ = 1;
  uint64_t dispatched_ = 0;
  std::map<uint64_t, Waiting> waiting_;
  std::set<uint64_t> in_flight_;
  std::array<uint64_t, 3> class_reads_ = {};
  // In a row while others waited.
  uint64_t interactive_run_ = 0;
  uint64_t others_run_ = 0;
  uint64_t batch_run_ = 0;
};

TEST(ElevatorModelTest, KeepsItsPromisesOnRandomRequests) {
  uint64_t dispatched = 0;
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    Model model(seed);
    for (int step = 0; step < 3000; ++step) {
      model.Step();
      if (HasFatalFailure()) {
        return;
      }
    }
    model.Drain();
    if (HasFatalFailure()) {
      return;
    }
    dispatched += model.dispatched();
  }
  EXPECT_GT(dispatched, 20000);
}

}  // namespace
}  // namespace quire
