// SPDX-License-Identifier: Apache-2.0
//
// Values that are slow to fetch, requested by many threads, and immutable:
// decoders made from symbol tables and dictionaries, which are named by a hash
// of their contents. A fetched value never becomes stale. Internal to the
// client library; table_store.h uses it.
//
// For a few values of many megabytes: each Get() takes one lock, and the order
// of use is exact. Unsuitable for values that are cheap to make.
#ifndef QUIRE_CLIENT_QUIRE_INTERNAL_FETCH_ONCE_H_
#define QUIRE_CLIENT_QUIRE_INTERNAL_FETCH_ONCE_H_

#include <cstddef>
#include <list>
#include <map>
#include <memory>
#include <new>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "codecs/base/mutex.h"

namespace quire {

// Keeps the most recently used values while their total cost is at most
// `cost_max`. A single value above that is kept until another key is requested.
// A key is fetched once, however many threads request it at the same time. All
// of them get a failure; failures are not kept, so the next request tries
// again.
//
// Values are shared, not copied: the caller's pointer keeps a value alive after
// its eviction, and after the FetchOnce itself. So memory may exceed `cost_max`
// by what callers hold.
//
// Key: ordered by <, copied. Value: of any type, immutable once fetched.
// Thread-safe. The mutex is not held during a fetch.
template <typename Key, typename Value>
class FetchOnce {
 public:
  using Pointer = std::shared_ptr<const Value>;

  // In the unit of `cost` of Get(); usually bytes of memory.
  explicit FetchOnce(size_t cost_max) : cost_max_(cost_max) {}

  // Returns the value of the key, or else the result of `fetch`, which is kept.
  // Blocks during the fetch, also one by another thread, without a time limit:
  // `fetch` must end. `fetch` and `cost` are called at most once, on this
  // thread, under no lock, and not kept. `fetch` may request other keys here,
  // but not this one, nor may two threads request each other's: that is a
  // deadlock. `fetch` must not return null; then the result is never null.
  // Errors: those of `fetch`, of this call or of the one waited for. An
  // exception ends the process, since threads that wait for this key would wait
  // forever.
  absl::StatusOr<Pointer> Get(
      const Key& key, absl::FunctionRef<absl::StatusOr<Pointer>()> fetch,
      absl::FunctionRef<size_t(const Value&)> cost) noexcept
      ABSL_LOCKS_EXCLUDED(mutex_) {
    std::shared_ptr<PendingFetch> pending;
    {
      MutexLock lock(&mutex_);
      if (const auto kept = kept_.find(key); kept != kept_.end()) {
        order_.splice(order_.begin(), order_, kept->second.place);
        return kept->second.value;
      }
      const auto [found, is_first] = pending_.try_emplace(key);
      if (!is_first) {
        pending = found->second;
        while (!pending->is_done) {
          fetched_.Wait(&mutex_);
        }
        return pending->result;
      }
      found->second = std::make_shared<PendingFetch>();
      pending = found->second;
    }
    absl::StatusOr<Pointer> result = fetch();
    const size_t result_cost = result.ok() ? cost(**result) : 0;
    {
      MutexLock lock(&mutex_);
      pending_.erase(key);
      pending->result = result;
      pending->is_done = true;
      if (result.ok()) {
        Keep(key, *result, result_cost);
      }
    }
    fetched_.NotifyAll();
    return result;
  }

  // True if Get() would return at once; valid only until another key is
  // requested. Does not count as use. Does not block on fetches.
  bool Has(const Key& key) const ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    return kept_.find(key) != kept_.end();
  }

  // Number of kept values; those in flight do not count.
  size_t count() const ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    return kept_.size();
  }

  // Cost of all kept values, in the unit of Get()'s `cost`.
  size_t cost() const ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    return cost_;
  }

 private:
  // A fetch in flight; held by all callers that wait for it.
  struct PendingFetch {
    bool is_done = false;
    absl::StatusOr<Pointer> result = absl::UnknownError("");
  };

  struct Kept {
    Pointer value;
    size_t cost = 0;
    typename std::list<Key>::iterator place;
  };

  void Keep(const Key& key, const Pointer& value, size_t value_cost)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    order_.push_front(key);
    kept_[key] = {value, value_cost, order_.begin()};
    cost_ += value_cost;
    while (cost_ > cost_max_ && order_.size() > 1) {
      const auto last = kept_.find(order_.back());
      cost_ -= last->second.cost;
      kept_.erase(last);
      order_.pop_back();
    }
  }

  const size_t cost_max_;
  mutable Mutex mutex_;
  CondVar fetched_;
  std::map<Key, Kept> kept_ ABSL_GUARDED_BY(mutex_);
  // Keys of kept_, most recently used first.
  std::list<Key> order_ ABSL_GUARDED_BY(mutex_);
  size_t cost_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<Key, std::shared_ptr<PendingFetch>> pending_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace quire

#endif  // QUIRE_CLIENT_QUIRE_INTERNAL_FETCH_ONCE_H_
