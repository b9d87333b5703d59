// SPDX-License-Identifier: GPL-3.0-or-later
//
// What is written about each call: who asked for what, what came of it, and how
// long it took.
#ifndef QUIRE_SERVER_SERVICE_LOGGING_CALL_LOG_H_
#define QUIRE_SERVER_SERVICE_LOGGING_CALL_LOG_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

#include "codecs/base/mutex.h"
#include "server/service/base/log_line.h"

namespace quire {

// One call. What is empty or unset is left out of its line. The views need last
// only for the call that takes them.
struct CallRecord {
  // When it ended.
  absl::Time time = {};
  // "token:ID" or "certificate:NAME".
  absl::string_view identity = {};
  // Where it comes from, as ClientNameOf() has it.
  absl::string_view address = {};
  absl::string_view method = {};
  absl::string_view archive = {};
  // The id that was asked for.
  absl::string_view document = {};
  // Decoded bytes of the answer.
  uint64_t size_bytes = 0;
  absl::string_view code = {};
  absl::string_view reason = {};
  // From arrival until its last byte had left, or it was given up.
  absl::Duration duration = {};
  // Of that, until its blocks had been read and decoded, from when they were
  // asked for: the drive's queue, the drive, decoding.
  std::optional<absl::Duration> read_duration = {};
  // The blocks that were not cached, and the sums of what they waited for.
  uint64_t fetch_count = 0;
  absl::Duration queue_duration = {};
  absl::Duration device_duration = {};
  absl::Duration decode_duration = {};
  // Of that, with a message at gRPC: the network, and a client that reads
  // slowly.
  absl::Duration send_duration = {};
  absl::string_view trace_id = {};
  // It has one answer, so that its duration is the server's doing.
  bool is_unary = false;
};

struct CallLogOptions {
  // What is logged of ids of documents.
  enum class Documents {
    // The id, up to 1 KiB of it.
    kPlain,
    // Equal ids have equal hashes (HMAC of a kind: SHA-256 with a key), which
    // cannot be guessed at without the key.
    kHashed,
    kNone,
  };

  // A file to append to, or "-" for standard output; empty: no lines.
  std::string path;
  Documents documents = Documents::kHashed;
  // A file of 16 bytes to 4 KiB that is the key of hashes: servers that have
  // the same agree on them. Empty: one is drawn at the start.
  std::string hash_key_path;
  // Calls with one answer that take this long are said as warnings.
  absl::Duration slow_call_min = absl::InfiniteDuration();
  // May be empty. Gets slow calls, and what goes wrong with the file.
  SayLine say;
  // Lines that wait to be written take at most this much; more are dropped and
  // counted.
  uint64_t queue_size_bytes_max = uint64_t{4} << 20;

  bool is_set() const {
    return !path.empty() || slow_call_min < absl::InfiniteDuration();
  }
};

// The key of hashes of documents; blocks on I/O.
// Errors: FailedPrecondition  the file cannot be read, or has another size.
absl::StatusOr<std::string> ReadHashKey(const CallLogOptions& options);

// A line of JSON for each call. Callers append to a buffer; a thread writes it
// some times a second, or when it is half full. (To wake a thread for each line
// would cost more than a short answer.)
// Thread-safe.
class CallLog {
 public:
  // Blocks on I/O.
  // Errors: FailedPrecondition  the file cannot be opened.
  //         ResourceExhausted   no thread could be started.
  static absl::StatusOr<std::unique_ptr<CallLog>> Open(CallLogOptions options);

  // Writes what waits, for at most a second where the file is a pipe that no
  // one reads.
  ~CallLog();
  CallLog(const CallLog&) = delete;
  CallLog& operator=(const CallLog&) = delete;

  // Blocks on I/O only for the line of a slow call.
  void Write(const CallRecord& record) ABSL_LOCKS_EXCLUDED(mutex_);

  // Opens the path anew: the old file may have been moved away. Where that
  // fails lines go on into the old one. Blocks on I/O.
  // Errors: as Open().
  absl::Status Reopen() ABSL_LOCKS_EXCLUDED(file_mutex_);

  // Lines that were not written, for want of space in the queue or because of
  // an error.
  uint64_t dropped_count() const { return dropped_count_; }

  bool wants_documents() const {
    return options_.documents != CallLogOptions::Documents::kNone;
  }

 private:
  class OutputFile;

  CallLog(CallLogOptions options, std::string key);

  void WriteUntilStopped();
  void SaySlow(const CallRecord& record, const std::string& line);
  // The members of the line's object, and its end.
  std::string Format(const CallRecord& record) const;
  void Append(const std::string& line) ABSL_LOCKS_EXCLUDED(mutex_);

  const CallLogOptions options_;
  // Of hashes of documents.
  const std::string key_;
  std::atomic<uint64_t> dropped_count_{0};
  Mutex mutex_;
  CondVar wake_;
  std::string waiting_ ABSL_GUARDED_BY(mutex_);
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  // Slow calls said in the second that began then.
  int64_t slow_second_ ABSL_GUARDED_BY(mutex_) = 0;
  int slow_count_ ABSL_GUARDED_BY(mutex_) = 0;
  std::atomic<bool> stopping_{false};
  // Held while lines are written.
  Mutex file_mutex_;
  // Null without a path.
  std::unique_ptr<OutputFile> file_ ABSL_GUARDED_BY(file_mutex_);
  std::thread writer_;
};

}  // namespace quire

#endif  // QUIRE_SERVER_SERVICE_LOGGING_CALL_LOG_H_
