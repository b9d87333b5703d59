// SPDX-License-Identifier: Apache-2.0
#include "client/http/access_log.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"

#include "codecs/base/json_text.h"
#include "codecs/base/status_macros.h"

namespace quire {
namespace {

constexpr size_t kUnwrittenSizeBytesMax = size_t{1} << 20;
constexpr size_t kTargetSizeBytesMax = 2048;

// Returns false if not all was written.
bool WriteAll(int fd, absl::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(fd, text.data(), text.size());
    if (written < 0 && errno == EINTR) {
      continue;
    }
    if (written <= 0) {
      return false;
    }
    text.remove_prefix(static_cast<size_t>(written));
  }
  return true;
}

}  // namespace

std::string FormatAccessLine(const AccessRecord& record) {
  return absl::StrCat(
      "{\"time\":\"",
      absl::FormatTime("%Y-%m-%dT%H:%M:%E6SZ", record.time,
                       absl::UTCTimeZone()),
      "\",\"address\":", JsonString(record.address),
      ",\"method\":", JsonString(record.method),
      ",\"target\":", JsonString(record.target.substr(0, kTargetSizeBytesMax)),
      ",\"status\":", record.status, ",\"bytes\":", record.size_bytes,
      record.is_cut ? ",\"cut\":true" : "",
      record.error.empty()
          ? ""
          : absl::StrCat(",\"error\":", JsonString(record.error)),
      ",\"duration_us\":", absl::ToInt64Microseconds(record.duration), "}\n");
}

absl::StatusOr<int> AccessLog::OpenFile(const std::string& path) {
  const int fd = path == "-" ? fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3)
                             // Does not wait for the reader of a pipe.
                             : open(path.c_str(),
                                    O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC |
                                        O_NOCTTY | O_NONBLOCK,
                                    0640);
  // Writes do wait.
  if (fd < 0 || (path != "-" && fcntl(fd, F_SETFL, O_APPEND) != 0)) {
    return absl::FailedPreconditionError(
        absl::StrCat(path, ": cannot open the access log: ",
                     std::generic_category().message(errno)));
  }
  return fd;
}

absl::StatusOr<std::unique_ptr<AccessLog>> AccessLog::Open(
    const std::string& path, GatewayMetrics* metrics) {
  QUIRE_ASSIGN_OR_RETURN(const int fd, OpenFile(path));
  auto log = absl::WrapUnique(new AccessLog(path, fd, metrics));
  try {
    log->thread_ = std::thread(&AccessLog::Run, log.get());
  } catch (const std::system_error& error) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the system gives no thread: ", error.what()));
  }
  return log;
}

AccessLog::~AccessLog() {
  {
    MutexLock lock(&mutex_);
    stops_ = true;
    changed_.NotifyAll();
  }
  if (thread_.joinable()) {
    thread_.join();
  }
  close(fd_);
}

void AccessLog::Append(const AccessRecord& record) {
  const std::string line = FormatAccessLine(record);
  MutexLock lock(&mutex_);
  if (line.size() > kUnwrittenSizeBytesMax - lines_.size()) {
    metrics_->CountLostLogLine();
    return;
  }
  lines_.append(line);
  changed_.NotifyOne();
}

absl::Status AccessLog::Reopen() {
  QUIRE_ASSIGN_OR_RETURN(const int fd, OpenFile(path_));
  MutexLock lock(&mutex_);
  if (next_fd_ >= 0) {
    close(next_fd_);
  }
  next_fd_ = fd;
  changed_.NotifyOne();
  return absl::OkStatus();
}

void AccessLog::Flush() {
  MutexLock lock(&mutex_);
  while (!lines_.empty() || is_writing_) {
    written_.Wait(&mutex_);
  }
}

void AccessLog::Run() {
  std::string lines;
  for (;;) {
    {
      MutexLock lock(&mutex_);
      is_writing_ = false;
      if (lines_.empty()) {
        written_.NotifyAll();
      }
      while (lines_.empty() && next_fd_ < 0 && !stops_) {
        changed_.Wait(&mutex_);
      }
      if (next_fd_ >= 0) {
        close(fd_);
        fd_ = std::exchange(next_fd_, -1);
      }
      if (lines_.empty() && stops_) {
        return;
      }
      lines.swap(lines_);
      is_writing_ = true;
    }
    if (!WriteAll(fd_, {lines.data(), lines.size()})) {
      const auto lost = std::count(lines.begin(), lines.end(), '\n');
      for (int64_t i = 0; i < lost; ++i) {
        metrics_->CountLostLogLine();
      }
    }
    lines.clear();
  }
}

}  // namespace quire
