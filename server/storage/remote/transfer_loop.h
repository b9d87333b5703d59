// SPDX-License-Identifier: GPL-3.0-or-later
//
// HTTP transfers, tasks and timers on one thread.
#ifndef QUIRE_SERVER_STORAGE_REMOTE_TRANSFER_LOOP_H_
#define QUIRE_SERVER_STORAGE_REMOTE_TRANSFER_LOOP_H_

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "codecs/base/bytes.h"
#include "codecs/base/mutex.h"
#include "server/storage/remote/answer_head.h"
#include "server/storage/remote/request_signature.h"

namespace quire {

using LoopTime = std::chrono::steady_clock::time_point;
using LoopDuration = std::chrono::steady_clock::duration;

struct TransferRequest {
  // GET, HEAD, PUT, POST or DELETE.
  std::string method = "GET";
  std::string url;
  HttpHeaders headers;
  // Of PUT and POST. Must live until the transfer ends.
  absl::string_view body = {};
  // Do not use a connection that another transfer has used.
  bool on_fresh_connection = false;
  // Limit of the whole transfer.
  std::chrono::milliseconds time_max{30'000};
};

enum class TransferEnd {
  // The whole answer was received, whatever its status.
  kComplete,
  // The receiver refused the head or a part of the body.
  kRefused,
  // No connection, none in time, or TLS failed.
  kNotConnected,
  // Silence, or the whole took too long.
  kTimeout,
  // The connection ended within the answer, or broke the protocol.
  kBroken,
};

// Receives one answer, on the loop's thread.
class TransferReceiver {
 public:
  virtual ~TransferReceiver() = default;
  // Called once, before the first part of a body. False ends the transfer. Must
  // not begin nor cancel transfers.
  virtual bool OnHead(const AnswerHead& head) = 0;
  // The same.
  virtual bool OnBody(ByteView bytes) = 0;
  // Called once at the end, unless the transfer was cancelled. `why` describes
  // an end other than kComplete. May begin and cancel transfers, and destroy
  // the receiver.
  virtual void OnEnd(TransferEnd end, const std::string& why,
                     const AnswerHead& head) = 0;
};

// libcurl's multi interface with HTTP/1.1. Post() is thread-safe; everything
// else is called on the loop's thread.
class TransferLoop {
 public:
  struct Options {
    // Connections kept open.
    uint32_t connections_max = 64;
    // As RemoteStoreOptions::ca_file. A changed file is used within a minute.
    std::string ca_file = {};
    std::chrono::milliseconds connect_time_max{2'000};
    // A transfer ends when it receives nothing for this long; whole seconds.
    std::chrono::seconds silence_max{5};
  };

  // Memory of a transfer with its connection.
  static constexpr uint64_t kTransferMemoryBytes = 192 << 10;

  // Errors: ResourceExhausted  no thread, or no memory.
  static absl::StatusOr<std::unique_ptr<TransferLoop>> Start(
      const Options& options);

  // Runs all posted tasks, then joins the thread. Timers that are not due are
  // dropped. REQUIRES: all transfers have ended.
  ~TransferLoop();
  TransferLoop(const TransferLoop&) = delete;
  TransferLoop& operator=(const TransferLoop&) = delete;

  // Runs a task on the loop's thread, soon. It must not block.
  void Post(std::function<void()> task) ABSL_LOCKS_EXCLUDED(mutex_);

  void RunAfter(LoopDuration delay, std::function<void()> task);

  using TransferId = uint64_t;

  // The receiver must live until OnEnd() or Cancel().
  TransferId Begin(const TransferRequest& request, TransferReceiver* receiver);

  // No effect if it has ended.
  void Cancel(TransferId id);

 private:
  struct Transfer;

  explicit TransferLoop(const Options& options);
  void Run();
  void RunPosted() ABSL_LOCKS_EXCLUDED(mutex_);
  void RunTimers();
  void TakeEnds();
  int WaitMs() const;
  static size_t OnHeaderLine(char* bytes, size_t size, size_t count,
                             void* transfer);
  static size_t OnBodyPart(char* bytes, size_t size, size_t count,
                           void* transfer);

  const Options options_;
  // A CURLM.
  void* multi_ = nullptr;
  std::string ca_file_;
  Mutex mutex_;
  std::vector<std::function<void()>> posted_ ABSL_GUARDED_BY(mutex_);
  std::multimap<LoopTime, std::function<void()>> timers_;
  absl::flat_hash_map<TransferId, std::unique_ptr<Transfer>> transfers_;
  TransferId next_id_ = 1;
  std::atomic<bool> stopping_ = false;
  std::thread thread_;
};

}  // namespace quire

#endif  // QUIRE_SERVER_STORAGE_REMOTE_TRANSFER_LOOP_H_
