// SPDX-License-Identifier: Apache-2.0
//
// The access log: a line of JSON for each request.
#ifndef QUIRE_CLIENT_HTTP_ACCESS_LOG_H_
#define QUIRE_CLIENT_HTTP_ACCESS_LOG_H_

#include <cstdint>
#include <memory>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

#include "client/http/gateway_metrics.h"
#include "codecs/base/mutex.h"

namespace quire {

struct AccessRecord {
  // Time of its end.
  absl::Time time;
  absl::string_view address;
  absl::string_view method;
  // Received form, truncated to 2 KiB.
  absl::string_view target;
  int status = 0;
  uint64_t size_bytes = 0;
  bool is_cut = false;
  // Reason for cutting an answer whose body could not be produced; may be
  // empty.
  absl::string_view error;
  absl::Duration duration;
};

// Returns the line with its end. Thread-safe.
std::string FormatAccessLine(const AccessRecord& record);

// Thread-safe.
class AccessLog {
 public:
  // Appends to the file, created with mode 0640, or to standard output for
  // "-". `metrics` must outlive the log.
  // Errors: FailedPrecondition  it cannot be opened.
  //         ResourceExhausted   the system gives no thread.
  static absl::StatusOr<std::unique_ptr<AccessLog>> Open(
      const std::string& path, GatewayMetrics* metrics);

  // Writes the remaining lines.
  ~AccessLog();
  AccessLog(const AccessLog&) = delete;
  AccessLog& operator=(const AccessLog&) = delete;

  // Does not block. Lines that exceed 1 MiB of unwritten ones are dropped and
  // counted.
  void Append(const AccessRecord& record) ABSL_LOCKS_EXCLUDED(mutex_);

  // Opens the path again, for rotation; keeps the old file if it cannot.
  absl::Status Reopen() ABSL_LOCKS_EXCLUDED(mutex_);

  // Waits until the lines so far are written, for a process that ends while
  // others may still append.
  void Flush() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  AccessLog(std::string path, int fd, GatewayMetrics* metrics)
      : path_(std::move(path)), metrics_(metrics), fd_(fd) {}

  static absl::StatusOr<int> OpenFile(const std::string& path);
  void Run() ABSL_LOCKS_EXCLUDED(mutex_);

  const std::string path_;
  GatewayMetrics* const metrics_;
  Mutex mutex_;
  // Something to do for the writing thread.
  CondVar changed_;
  // It has written all lines.
  CondVar written_;
  std::string lines_ ABSL_GUARDED_BY(mutex_);
  // Replaces fd_ before the next line; -1: none.
  int next_fd_ ABSL_GUARDED_BY(mutex_) = -1;
  bool stops_ ABSL_GUARDED_BY(mutex_) = false;
  bool is_writing_ ABSL_GUARDED_BY(mutex_) = false;
  // Used by the writing thread alone.
  int fd_;
  std::thread thread_;
};

}  // namespace quire

#endif  // QUIRE_CLIENT_HTTP_ACCESS_LOG_H_
