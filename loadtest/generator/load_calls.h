// SPDX-License-Identifier: Apache-2.0
//
// The calls that a load run makes. All of them are asynchronous: they begin
// here, on any thread, and go on and end on threads of gRPC.
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

// One attempt at a call, while it is out. Times are from the run's start.
struct OpenCall {
  grpc::ClientContext context;
  // Since when the server owes a message; UINT64_MAX while a message is being
  // checked.
  std::atomic<uint64_t> waiting_since_ns = 0;
  // It was cancelled because that took too long.
  std::atomic<bool> is_silent = false;
};

// The calls that are out, so that a run which ends need not wait for them, nor
// any run for a stream on which nothing comes.
// Thread-safe.
class OpenCalls {
 public:
  // `call` must stay until Remove().
  void Add(OpenCall* call) ABSL_LOCKS_EXCLUDED(mutex_);
  void Remove(OpenCall* call) ABSL_LOCKS_EXCLUDED(mutex_);

  // Cancels all calls that are out, and all that come.
  void CancelAll() ABSL_LOCKS_EXCLUDED(mutex_);

  // Cancels those that have been waiting since `since_ns` or longer.
  void CancelSilent(uint64_t since_ns) ABSL_LOCKS_EXCLUDED(mutex_);

  bool is_cancelled() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  mutable Mutex mutex_;
  bool is_cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  absl::flat_hash_set<OpenCall*> calls_ ABSL_GUARDED_BY(mutex_);
};

// What all calls of a run share. Thread-safe once filled in.
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
  // When the server last sent anything, on any call.
  std::atomic<uint64_t> heard_ns = 0;
  // A call was given up, and nothing had come on any call while it waited.
  std::atomic<bool> is_silent = false;

  // From the run's start.
  uint64_t NowNs() const {
    return static_cast<uint64_t>(
        std::chrono::nanoseconds(std::chrono::steady_clock::now() - started)
            .count());
  }

  // Connections take turns.
  v1::Archive::Stub& StubOf(uint64_t call_index) const {
    return *stubs[call_index % stubs.size()];
  }
};

// Called once when a call has ended and all of its requests are recorded.
using LoadCallDone = absl::AnyInvocable<void()>;

// One request, by Read; by ReadStream where it is larger than a Read may be,
// or turns out to be. A busy server is asked again when it says.
void StartLoadRead(LoadContext& context, const LoadTarget& target,
                   uint64_t call_index, uint64_t due_ns, LoadCallDone done);

// Requests [first_index, first_index + count) by BatchRead. What is too large
// for that follows, one by one, as by StartLoadRead().
void StartLoadBatch(LoadContext& context, uint64_t first_index, uint64_t count,
                    uint64_t call_index, uint64_t due_ns, LoadCallDone done);

// Part `part` of `part_count` equal parts of the text, by Scan.
void StartLoadScan(LoadContext& context, uint64_t part, uint64_t part_count,
                   uint64_t call_index, uint64_t due_ns, LoadCallDone done);

}  // namespace quire

#endif  // QUIRE_LOADTEST_GENERATOR_LOAD_CALLS_H_
