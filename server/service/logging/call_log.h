// SPDX-License-Identifier: GPL-3.0-or-later
//
// The access log: who requested what in each call, with its result and
// duration.
#ifndef QUIRE_SERVER_SERVICE_LOGGING_CALL_LOG_H_
#define QUIRE_SERVER_SERVICE_LOGGING_CALL_LOG_H_

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

#include "codecs/base/mutex.h"
#include "server/service/base/log_line.h"

namespace quire {

// One call. Empty and unset members are left out of its line. The views need to
// be valid only for the call that takes them.
struct CallRecord {
  // Time of its end.
  absl::Time time = {};
  // "token:ID" or "certificate:NAME".
  absl::string_view identity = {};
  // Address of the client, from ClientNameOf().
  absl::string_view address = {};
  absl::string_view method = {};
  absl::string_view archive = {};
  // Id in the request.
  absl::string_view document = {};
  // Decoded bytes of the answer.
  uint64_t size_bytes = 0;
  absl::string_view code = {};
  absl::string_view reason = {};
  // From arrival until its last byte was sent, or it was abandoned.
  absl::Duration duration = {};
  // Part of `duration` from requesting the blocks until they were read and
  // decoded: the drive's queue, the drive, decoding.
  std::optional<absl::Duration> read_duration = {};
  // Blocks not in the cache, and the sums of their waits.
  uint64_t fetch_count = 0;
  absl::Duration queue_duration = {};
  absl::Duration device_duration = {};
  absl::Duration decode_duration = {};
  // Part of `duration` with a message at gRPC: the network, and a slow client.
  absl::Duration send_duration = {};
  absl::string_view trace_id = {};
  // The span of the client.
  absl::string_view parent_id = {};
};

struct CallLogOptions {
  // Form of document ids in the log.
  enum class Documents {
    // The id, up to 1 KiB.
    kPlain,
    // Equal ids have equal hashes (a kind of HMAC: SHA-256 with a key), which
    // cannot be guessed without the key.
    kHashed,
    kNone,
  };

  // A file to append to, or "-" for standard output; empty: no log.
  std::string path;
  Documents documents = Documents::kHashed;
  // A file of 16 bytes to 4 KiB with the key of hashes; servers with the same
  // key give equal hashes. Empty: a random key at each start.
  std::string hash_key_path;
  // Receives errors of the file.
  LogSink log = DropLogLine;
  // Upper bound on the size of lines waiting to be written; further lines are
  // dropped and counted.
  uint64_t queue_size_bytes_max = uint64_t{4} << 20;
};

// Returns the key for document hashes; blocks on I/O.
// Errors: FailedPrecondition  the file cannot be read, or has another size.
absl::StatusOr<std::string> ReadHashKey(const CallLogOptions& options);

// Writes a line of JSON for each call. Callers append to a buffer; a thread
// writes it several times per second, or when it is half full. (Waking a thread
// for each line would cost more than a short answer.)
// Thread-safe.
class CallLog {
 public:
  // Blocks on I/O.
  // REQUIRES: the options have a path.
  // Errors: FailedPrecondition  the file cannot be opened.
  //         ResourceExhausted   cannot start a thread.
  static absl::StatusOr<std::unique_ptr<CallLog>> Open(CallLogOptions options);

  // Writes the waiting lines; for a pipe without a reader it tries for at most
  // a second.
  ~CallLog();
  CallLog(const CallLog&) = delete;
  CallLog& operator=(const CallLog&) = delete;

  void Write(const CallRecord& record) ABSL_LOCKS_EXCLUDED(mutex_);

  // Reopens the path, since the old file may have been moved. On failure lines
  // still go to the old file. Blocks on I/O, but not on the reader of a pipe: a
  // pipe or device that is still at the path stays open, and lines that another
  // does not accept within a second are dropped.
  // Errors: as Open(), also if nothing has a pipe at the path open for reading.
  absl::Status Reopen() ABSL_LOCKS_EXCLUDED(reopen_mutex_, file_mutex_);

  // Lines not written, because the queue was full or an error occurred.
  uint64_t dropped_count() const { return dropped_count_; }

  bool wants_documents() const {
    return options_.documents != CallLogOptions::Documents::kNone;
  }

 private:
  class LineBuffer;
  class OutputFile;

  CallLog(CallLogOptions options, std::string key);

  // Callers that wait for the writer.
  struct Haste {
    std::atomic<bool> stopping{false};
    std::atomic<bool> reopening{false};

    bool is_needed() const { return stopping || reopening; }
  };

  void WriteUntilStopped();
  void Format(const CallRecord& record, LineBuffer& line) const;
  void Append(absl::string_view line) ABSL_LOCKS_EXCLUDED(mutex_);

  const CallLogOptions options_;
  // Key of document hashes.
  const std::string key_;
  std::atomic<uint64_t> dropped_count_{0};
  Mutex mutex_;
  CondVar wake_;
  std::string waiting_ ABSL_GUARDED_BY(mutex_);
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  Haste haste_;
  // Held by Reopen().
  Mutex reopen_mutex_ ABSL_ACQUIRED_BEFORE(file_mutex_);
  // Device and inode of file_; unset for a regular file.
  std::optional<std::pair<dev_t, ino_t>> stream_id_
      ABSL_GUARDED_BY(reopen_mutex_);
  // Held while lines are written.
  Mutex file_mutex_;
  // Null only if it could not be opened.
  std::unique_ptr<OutputFile> file_ ABSL_GUARDED_BY(file_mutex_);
  std::thread writer_;
};

}  // namespace quire

#endif  // QUIRE_SERVER_SERVICE_LOGGING_CALL_LOG_H_
