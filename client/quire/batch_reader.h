// SPDX-License-Identifier: Apache-2.0
//
// Reads many ranges and documents of one archive at once. The server answers in
// the order that is best for reading, which on disks is many times as fast as
// single reads.
//
//   auto batch = client->StartBatch("web", {});
//   batch->Add(7, DocumentKey::Id("a"));
//   batch->Add(8, ByteSpan{.offset = 0, .size_bytes = 100});
//   batch->CloseAdds();
//   while (auto answer = batch->Next()) { ... answer->tag ... }
#ifndef QUIRE_CLIENT_QUIRE_BATCH_READER_H_
#define QUIRE_CLIENT_QUIRE_BATCH_READER_H_

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

#include "proto/quire/v1/archive.pb.h"

#include "client/quire/client.h"
#include "client/quire/read_target.h"
#include "codecs/base/mutex.h"

namespace quire {

class Connection;

struct BatchOptions {
  // See ReadOptions: with other contents every item fails. Unset: if a stream
  // breaks and the archive is replaced, the rest is read from its new contents.
  std::optional<std::string> archive_uuid = {};

  // Upper bound on answers in memory that wait for Next(), including document
  // descriptions. Above it no answer is decoded and nothing is read from the
  // connection, which slows the server down. One more answer, and one encoded
  // message, may be held.
  size_t ready_size_bytes_max = size_t{64} << 20;

  // Unset: ClientOptions::encoding.
  std::optional<EncodingChoice> encoding = {};
};

// Result of one item.
struct BatchAnswer {
  // Tag given to Add().
  uint64_t tag = 0;
  ReadTarget target;
  absl::StatusOr<ReadResult> result = absl::UnknownError("");
};

// Every item gets exactly one answer, successful or not. If the stream breaks
// with Unavailable, unanswered items are requested again on a new one,
// ClientOptions::attempts_max times in a row without an answer in between; if
// the server names a delay, until ClientOptions::stream_idle_max has passed. If
// it ends otherwise before its answers are complete, they get a status that
// says so. If the system cannot start threads, they get ResourceExhausted.
//
// Items wait in the caller's memory: Add() never blocks, so one thread may add
// any number and then call Next() without a deadlock. To bound that memory,
// keep unanswered_count() low by calling Next().
//
// Thread-safe: some threads may add while others take answers. The stream has
// three threads of its own.
class BatchReader {
 public:
  struct Item {
    uint64_t tag = 0;
    ReadTarget target;
  };

  // Use Client::StartBatch().
  BatchReader(std::shared_ptr<Connection> connection, std::string archive,
              const BatchOptions& options);

  // Abandons unanswered items. Blocks until the stream's threads have ended,
  // which depends on the server only before the first stream: a call for its
  // limits or, for `auto`, the archive's description then ends first, within
  // ClientOptions::deadline.
  ~BatchReader();
  BatchReader(const BatchReader&) = delete;
  BatchReader& operator=(const BatchReader&) = delete;

  // `tag` is the caller's own and need not be unique. Does not block.
  // REQUIRES: CloseAdds() was not called.
  void Add(uint64_t tag, ReadTarget target) ABSL_LOCKS_EXCLUDED(mutex_);

  // Calls Add() for each, but packed better: items added at once can share a
  // message.
  void AddAll(std::vector<Item> items) ABSL_LOCKS_EXCLUDED(mutex_);

  // Ends adding: the server ends the stream after its last answer. Destroying
  // the reader does too. Does not block.
  void CloseAdds() ABSL_LOCKS_EXCLUDED(mutex_);

  // Returns the next answer, in the server's order; waits for it. Nothing if
  // every item added so far has been answered and its answer taken.
  std::optional<BatchAnswer> Next() ABSL_LOCKS_EXCLUDED(mutex_);

  // Number of items whose answers were not yet taken. Does not block.
  size_t unanswered_count() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  // Items get an internal number, so that tags need not be unique.
  struct Pending {
    uint64_t number = 0;
    Item item;
  };

  class Stream;

  // Thread function: serves until the end.
  void Run() ABSL_LOCKS_EXCLUDED(mutex_);
  void Serve() ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns an item answered by fault_; nothing if all items have answers.
  std::optional<BatchAnswer> NextFailed() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Waits for something to send. False if there never will be anything.
  bool WaitForWork() ABSL_LOCKS_EXCLUDED(mutex_);
  // Handles the end of a stream: retries or abandons unanswered items.
  void AfterStream(const absl::Status& status,
                   std::optional<absl::Duration> retry_delay)
      ABSL_LOCKS_EXCLUDED(mutex_);
  void AskAgain() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void FailAll(const absl::Status& status)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Moves one item to ready_, where `place` becomes its node. Does not throw:
  // the item is in no list meanwhile.
  // REQUIRES: both lists have one element, and the item has no answer.
  void Answer(std::list<Pending> pending, std::list<BatchAnswer> place,
              absl::StatusOr<ReadResult> result)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::shared_ptr<Connection> connection_;
  const std::string archive_;
  const BatchOptions options_;
  mutable Mutex mutex_;
  // Signals any of: items to send, answers to take, space for answers, the end.
  CondVar changed_;
  uint64_t next_number_ ABSL_GUARDED_BY(mutex_) = 0;
  // Not OK: thread_ could not be started; the answer to all unanswered items.
  absl::Status fault_ ABSL_GUARDED_BY(mutex_);
  // Lists: an item moves between them without an allocation.
  std::list<Pending> queue_ ABSL_GUARDED_BY(mutex_);
  std::list<Pending> sent_ ABSL_GUARDED_BY(mutex_);
  // A container of the standard library: abseil's loses elements if an
  // allocation fails.
  std::unordered_map<uint64_t, std::list<Pending>::iterator> sent_by_number_
      ABSL_GUARDED_BY(mutex_);
  std::list<BatchAnswer> ready_ ABSL_GUARDED_BY(mutex_);
  size_t ready_size_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  // Added, but not yet in ready_.
  size_t unready_count_ ABSL_GUARDED_BY(mutex_) = 0;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  // The current stream; null between streams.
  Stream* stream_ ABSL_GUARDED_BY(mutex_) = nullptr;
  std::thread thread_;
};

}  // namespace quire

#endif  // QUIRE_CLIENT_QUIRE_BATCH_READER_H_
