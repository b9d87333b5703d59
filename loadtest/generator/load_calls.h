// SPDX-License-Identifier: Apache-2.0
//
// The calls of a load run. All are asynchronous: they start here, on any
// thread, and continue and end on threads of gRPC.
#ifndef QUIRE_LOADTEST_GENERATOR_LOAD_CALLS_H_
#define QUIRE_LOADTEST_GENERATOR_LOAD_CALLS_H_

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_set.h"
#include "absl/functional/any_invocable.h"

#include "proto/quire/v1/archive.grpc.pb.h"

#include "codecs/base/mutex.h"
#include "loadtest/generator/load_tables.h"
#include "loadtest/report/load_recorder.h"
#include "loadtest/requests/load_options.h"
#include "loadtest/requests/load_targets.h"
#include "loadtest/requests/source_text.h"

namespace quire {

class CallAttempt;

// The calls in flight, so that a run which ends need not wait for them, nor any
// run for a silent stream. Times are from the run's start.
// Thread-safe.
class OpenCalls {
 public:
  // `call` must stay valid until Remove().
  void Add(CallAttempt* call) ABSL_LOCKS_EXCLUDED(mutex_);
  void Remove(CallAttempt* call) ABSL_LOCKS_EXCLUDED(mutex_);

  // Cancels all calls in flight, and all later ones.
  void CancelAll() ABSL_LOCKS_EXCLUDED(mutex_);

  // Cancels calls that have waited since `since_ns` or longer.
  void CancelSilent(uint64_t since_ns) ABSL_LOCKS_EXCLUDED(mutex_);

  bool is_cancelled() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  mutable Mutex mutex_;
  bool is_cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  absl::flat_hash_set<CallAttempt*> calls_ ABSL_GUARDED_BY(mutex_);
};

// State that all calls of a run share. Thread-safe once set.
struct LoadContext {
  LoadOptions options;
  // One per connection; not empty.
  std::vector<std::unique_ptr<v1::Archive::Stub>> stubs;
  // Null: answers are not compared.
  const SourceText* source = nullptr;
  const LoadTargets* targets = nullptr;
  // Null: all answers come in identity.
  LoadTables* tables = nullptr;
  uint64_t archive_size_bytes = 0;
  v1::Limits limits;
  std::chrono::steady_clock::time_point started;
  LoadRecorder recorder;
  OpenCalls open_calls;
  // Time of the server's last message, on any call.
  std::atomic<uint64_t> heard_ns = 0;
  // A call was given up, and no call received anything while it waited.
  std::atomic<bool> is_silent = false;

  // Time since the run's start.
  uint64_t NowNs() const {
    return static_cast<uint64_t>(
        std::chrono::nanoseconds(std::chrono::steady_clock::now() - started)
            .count());
  }

  // Distributes calls over the connections in turn.
  v1::Archive::Stub& StubOf(uint64_t call_index) const {
    return *stubs[call_index % stubs.size()];
  }
};

// Called once when a call has ended and all of its requests are recorded. The
// run may be destroyed with its last call, so nothing of the call may exist any
// more.
using LoadCallDone = absl::AnyInvocable<void()>;

struct LoadCall {
  // Target of a read; StartLoadScan() sets that of a scan.
  LoadTarget target = {};
  // Selects the connection.
  uint64_t index = 0;
  // Latency counts from here.
  uint64_t due_ns = 0;
  LoadCallDone done = {};
};

// Makes one request, by Read, or by ReadStream if it is larger than a Read may
// be, or turns out to be. Retries a busy server after its delay.
void StartLoadRead(LoadContext& load, LoadCall call);

// Makes requests [first_index, first_index + count) by BatchRead. Requests too
// large for that follow one by one, as by StartLoadRead().
void StartLoadBatch(LoadContext& load, uint64_t first_index, uint64_t count,
                    LoadCall call);

// Scans part `part` of `part_count` equal parts of the text.
void StartLoadScan(LoadContext& load, uint64_t part, uint64_t part_count,
                   LoadCall call);

}  // namespace quire

#endif  // QUIRE_LOADTEST_GENERATOR_LOAD_CALLS_H_
