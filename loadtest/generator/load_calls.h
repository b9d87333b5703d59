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
#include "grpcpp/client_context.h"

#include "proto/quire/v1/archive.grpc.pb.h"

#include "codecs/base/mutex.h"
#include "loadtest/generator/load_tables.h"
#include "loadtest/report/load_recorder.h"
#include "loadtest/requests/load_options.h"
#include "loadtest/requests/load_targets.h"
#include "loadtest/requests/source_text.h"

namespace quire {

// One attempt at a call in flight. Times are from the run's start.
struct OpenCall {
  grpc::ClientContext context;
  // Time since which the server owes a message; UINT64_MAX while a message is
  // being checked.
  std::atomic<uint64_t> waiting_since_ns = 0;
  // Cancelled because the message took too long.
  std::atomic<bool> is_silent = false;
};

// The calls in flight, so that a run which ends need not wait for them, nor any
// run for a silent stream.
// Thread-safe.
class OpenCalls {
 public:
  // `call` must stay valid until Remove().
  void Add(OpenCall* call) ABSL_LOCKS_EXCLUDED(mutex_);
  void Remove(OpenCall* call) ABSL_LOCKS_EXCLUDED(mutex_);

  // Cancels all calls in flight, and all later ones.
  void CancelAll() ABSL_LOCKS_EXCLUDED(mutex_);

  // Cancels calls that have waited since `since_ns` or longer.
  void CancelSilent(uint64_t since_ns) ABSL_LOCKS_EXCLUDED(mutex_);

  bool is_cancelled() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  mutable Mutex mutex_;
  bool is_cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  absl::flat_hash_set<OpenCall*> calls_ ABSL_GUARDED_BY(mutex_);
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

// Called once when a call has ended and all of its requests are recorded.
using LoadCallDone = absl::AnyInvocable<void()>;

// Makes one request, by Read, or by ReadStream if it is larger than a Read may
// be, or turns out to be. Retries a busy server after its delay.
void StartLoadRead(LoadContext& context, const LoadTarget& target,
                   uint64_t call_index, uint64_t due_ns, LoadCallDone done);

// Makes requests [first_index, first_index + count) by BatchRead. Requests too
// large for that follow one by one, as by StartLoadRead().
void StartLoadBatch(LoadContext& context, uint64_t first_index, uint64_t count,
                    uint64_t call_index, uint64_t due_ns, LoadCallDone done);

// Scans part `part` of `part_count` equal parts of the text.
void StartLoadScan(LoadContext& context, uint64_t part, uint64_t part_count,
                   uint64_t call_index, uint64_t due_ns, LoadCallDone done);

}  // namespace quire

#endif  // QUIRE_LOADTEST_GENERATOR_LOAD_CALLS_H_
