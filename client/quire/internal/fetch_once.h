// SPDX-License-Identifier: Apache-2.0
//
// Things that are slow to get, are asked for by many threads, and never change:
// decoders made of symbol tables and dictionaries, which are named by a hash of
// what they are, so that what was fetched once is right for ever. Internal to
// the client library; table_store.h uses it.
//
// Not a cache for what is cheap: each Get() takes the one lock, and the order
// of use is kept exactly, which is right for a few values of many megabytes.
#ifndef QUIRE_CLIENT_QUIRE_INTERNAL_FETCH_ONCE_H_
#define QUIRE_CLIENT_QUIRE_INTERNAL_FETCH_ONCE_H_

#include <cstddef>
#include <list>
#include <map>
#include <memory>
#include <new>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "codecs/base/mutex.h"

namespace quire {

// Keeps values under keys, those used last, as long as their costs together are
// at most `cost_max`; one that is dearer than that alone is kept while nothing
// else is asked for. However many threads ask for a key at once, it is fetched
// once; a failure is given to all of them, and the next one to ask tries again:
// failures are not kept.
//
// Values are shared, not copied: the caller's pointer keeps one alive after it
// was dropped here, and after the FetchOnce itself. So memory may exceed
// `cost_max` by what callers hold.
//
// Key: ordered by <, copied. Value: of any type, never changed once fetched.
// Thread-safe. The mutex is not held while something is fetched.
template <typename Key, typename Value>
class FetchOnce {
 public:
  using Pointer = std::shared_ptr<const Value>;

  // In whatever unit `cost` of Get() counts; bytes of memory, mostly.
  explicit FetchOnce(size_t cost_max) : cost_max_(cost_max) {}

  // What is kept under the key, or else what `fetch` gives, which from then on
  // is kept. Blocks while it fetches, or while another thread does, for which
  // there is no time limit here: `fetch` must end. `fetch` and `cost` are
  // called at most once, on this thread, under no lock, and not kept; `fetch`
  // may ask for other keys here, but not for this one, which would wait for
  // itself, nor may two threads ask for each other's. Never null if OK, unless
  // `fetch` gives null, which it must not. Errors: those of `fetch`, of this
  // call or of the one waited for. What is thrown ends the process, as threads
  // that wait for this key would wait forever.
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

  // Whether Get() would give it at once; stays true only as long as no one asks
  // for others. Does not count as use. Does not block on fetches.
  bool Has(const Key& key) const ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    return kept_.find(key) != kept_.end();
  }

  // Of values kept; those in flight do not count.
  size_t count() const ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    return kept_.size();
  }

  // Of all that is kept, in the unit of Get()'s `cost`.
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
  // Keys of kept_, the one used last first.
  std::list<Key> order_ ABSL_GUARDED_BY(mutex_);
  size_t cost_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<Key, std::shared_ptr<PendingFetch>> pending_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace quire

#endif  // QUIRE_CLIENT_QUIRE_INTERNAL_FETCH_ONCE_H_
