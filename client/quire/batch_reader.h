// SPDX-License-Identifier: Apache-2.0
//
// Many ranges and documents of one archive at once. The server answers in the
// order in which it finds best to read them, which on disks is many times as
// fast as one read after the other.
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
  // Bytes of answers that wait in memory for Next(), with the descriptions of
  // their documents. Past it no answer is decoded and nothing is taken from the
  // connection, which in turn holds the server back. One answer more than this,
  // and one message as it was sent, may be held.
  size_t ready_size_bytes_max = size_t{64} << 20;

  // Unset: ClientOptions::encoding. With `auto` a batch changes its encoding on
  // its way, by a new stream for the items that were not yet sent.
  std::optional<EncodingChoice> encoding = {};
};

// How one item ended.
struct BatchAnswer {
  // As given to Add().
  uint64_t tag = 0;
  ReadTarget target;
  absl::StatusOr<ReadResult> result = absl::UnknownError("");
};

// Every item that is added gets exactly one answer, good or bad. If the stream
// breaks with Unavailable, the items without answer are asked again on a new
// one (ClientOptions::attempts_max times in a row without an answer in
// between); if it ends in any other way before its answers are complete, they
// are answered with a status that says so. Where the system starts no more
// threads, they are answered with ResourceExhausted.
//
// Items wait for their turn in the caller's memory: Add() never blocks, so one
// thread may add any number and only then call Next(), without a deadlock. To
// bound that memory, keep unanswered_count() low by calling Next().
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

  // Gives up what is unanswered. Blocks until the stream's threads have ended,
  // which takes no answer of the server.
  ~BatchReader();
  BatchReader(const BatchReader&) = delete;
  BatchReader& operator=(const BatchReader&) = delete;

  // `tag` is the caller's own and need not be unique. Does not block.
  // REQUIRES: CloseAdds() was not called.
  void Add(uint64_t tag, ReadTarget target) ABSL_LOCKS_EXCLUDED(mutex_);

  // The same as Add() for each, and better packed: all that is added at once
  // can travel in one message.
  void AddAll(std::vector<Item> items) ABSL_LOCKS_EXCLUDED(mutex_);

  // No more will be added. Lets the server end the stream after its last
  // answer; destroying the reader does as well. Does not block.
  void CloseAdds() ABSL_LOCKS_EXCLUDED(mutex_);

  // The next answer, in the order in which the server gave them, waiting for
  // it if need be; nothing if every item added so far has been answered and
  // its answer taken.
  std::optional<BatchAnswer> Next() ABSL_LOCKS_EXCLUDED(mutex_);

  // Items added whose answers were not yet taken. Does not block.
  size_t unanswered_count() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  // Items get a number of our own, so that tags need not be unique.
  struct Pending {
    uint64_t number = 0;
    Item item;
  };

  class Stream;

  // The thread: serves until the end. Without memory for that, it ends with
  // fault_ set.
  void Run() ABSL_LOCKS_EXCLUDED(mutex_);
  void Serve() ABSL_LOCKS_EXCLUDED(mutex_);
  // What `auto` must know; nothing if it is not asked for, or not to be had.
  std::optional<v1::ArchiveDescription> DescribeForChoice();
  // One stream from its first item to its end.
  // An item that fault_ answers; nothing if there is none without an answer.
  std::optional<BatchAnswer> NextFailed() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Waits until there is something to send. False if there never will be.
  bool WaitForWork() ABSL_LOCKS_EXCLUDED(mutex_);
  // Deals with the end of a stream: asks again or gives up what is unanswered.
  void AfterStream(const absl::Status& status,
                   std::optional<absl::Duration> retry_delay)
      ABSL_LOCKS_EXCLUDED(mutex_);
  void AskAgain() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void FailAll(const absl::Status& status)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Moves one item to ready_, whose place there is `place`. Does not throw, as
  // the item belongs to no list while it is answered.
  // REQUIRES: both have one element, and no answer was given.
  void Answer(std::list<Pending> pending, std::list<BatchAnswer> place,
              absl::StatusOr<ReadResult> result)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::shared_ptr<Connection> connection_;
  const std::string archive_;
  const BatchOptions options_;
  mutable Mutex mutex_;
  // Any of: items to send, answers to take, space for answers, the end.
  CondVar changed_;
  uint64_t next_number_ ABSL_GUARDED_BY(mutex_) = 0;
  // Not OK: thread_ could not be started, and this is the answer to all that
  // has none yet.
  absl::Status fault_ ABSL_GUARDED_BY(mutex_);
  // Lists: an item moves from one to the other without an allocation.
  std::list<Pending> queue_ ABSL_GUARDED_BY(mutex_);
  std::list<Pending> sent_ ABSL_GUARDED_BY(mutex_);
  // Of the standard library, as abseil's is lost where an allocation fails.
  std::unordered_map<uint64_t, std::list<Pending>::iterator> sent_by_number_
      ABSL_GUARDED_BY(mutex_);
  std::list<BatchAnswer> ready_ ABSL_GUARDED_BY(mutex_);
  size_t ready_size_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  // Added, and not yet in ready_.
  size_t unready_count_ ABSL_GUARDED_BY(mutex_) = 0;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  // The stream of now; null between streams.
  Stream* stream_ ABSL_GUARDED_BY(mutex_) = nullptr;
  std::thread thread_;
};

}  // namespace quire

#endif  // QUIRE_CLIENT_QUIRE_BATCH_READER_H_
