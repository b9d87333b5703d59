// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/service/logging/call_log.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <climits>
#include <system_error>
#include <utility>

#include "absl/base/attributes.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include "codecs/base/json_text.h"
#include "codecs/base/status_macros.h"
#include "server/archive/files/file_io.h"
#include "server/archive/files/small_file.h"
#include "server/service/security/access_rules.h"

namespace quire {
namespace {

constexpr auto kWriteInterval = std::chrono::milliseconds(100);
constexpr absl::Duration kStopPatience = absl::Seconds(1);
constexpr int kPollMs = 100;
// Bounds the lines if all calls are slow.
constexpr int kSlowLinesPerSecondMax = 10;
constexpr size_t kDocumentSizeBytesMax = 1024;
constexpr size_t kHashKeySizeBytes = 16;
constexpr size_t kHashKeySizeBytesMax = 4096;
// Size of a hash: 64 bits.
constexpr size_t kHashSizeBytes = 8;

bool NeedsNoEscape(absl::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) {
    return c >= ' ' && c < '\x7f' && c != '"' && c != '\\';
  });
}

void AppendString(absl::string_view key, absl::string_view value,
                  std::string& line) {
  if (value.empty()) {
    return;
  }
  if (NeedsNoEscape(value)) {
    absl::StrAppend(&line, ",\"", key, "\":\"", value, "\"");
  } else {
    absl::StrAppend(&line, ",\"", key, "\":", JsonString(value));
  }
}

void AppendDuration(absl::string_view key, absl::Duration value,
                    std::string& line) {
  absl::StrAppend(&line, ",\"", key, "\":", absl::ToInt64Microseconds(value));
}

// "2026-11-23T06:32:29.123456Z". absl::FormatTime() takes longer than the rest
// of a line, so each thread caches the last second.
void AppendTime(absl::Time time, std::string& line) {
  thread_local int64_t last_second = -1;
  thread_local std::string last_text;
  const int64_t us = absl::ToUnixMicros(time);
  const int64_t second = us / 1'000'000;
  if (second != last_second) {
    last_text =
        absl::FormatTime("%Y-%m-%dT%H:%M:%S", absl::FromUnixSeconds(second),
                         absl::UTCTimeZone());
    last_second = second;
  }
  absl::StrAppend(&line, last_text, ".",
                  absl::Dec(us - second * 1'000'000, absl::kZeroPad6), "Z");
}

}  // namespace

// Destination of the lines. Thread-compatible.
class CallLog::OutputFile {
 public:
  explicit OutputFile(std::string path) : path_(std::move(path)) {}

  absl::Status Open() {
    if (path_ == "-") {
      return Take(UniqueFd(fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0)));
    }
    return Take(UniqueFd(
        open(path_.c_str(),
             O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY | O_NONBLOCK,
             0640)));
  }

  // Returns the number of lines not written. Abandons a pipe without a reader a
  // while after `stopping` is set.
  uint64_t Write(absl::string_view lines, const std::atomic<bool>& stopping) {
    if (is_torn_) {
      // Starts the next line on a new one.
      is_torn_ = !WriteAll("\n", stopping).empty();
    }
    const absl::string_view rest = is_torn_ ? lines : WriteAll(lines, stopping);
    if (rest.empty()) {
      return 0;
    }
    is_torn_ = is_torn_ || (rest.size() < lines.size() &&
                            lines[lines.size() - rest.size() - 1] != '\n');
    return static_cast<uint64_t>(std::count(rest.begin(), rest.end(), '\n'));
  }

  // errno of the last failed write.
  int error() const { return error_; }

 private:
  absl::Status Take(UniqueFd fd) {
    struct stat status = {};
    if (!fd.is_open() || fstat(fd.get(), &status) != 0) {
      return absl::FailedPreconditionError(
          ErrnoStatus(errno, path_, "open as the access log").message());
    }
    fd_ = std::move(fd);
    is_regular_ = S_ISREG(status.st_mode);
    is_torn_ = false;
    return absl::OkStatus();
  }

  // Returns the bytes not written.
  absl::string_view WriteAll(absl::string_view bytes,
                             const std::atomic<bool>& stopping) {
    absl::Time deadline = absl::InfiniteFuture();
    while (!bytes.empty()) {
      if (!is_regular_) {
        if (stopping && deadline == absl::InfiniteFuture()) {
          deadline = absl::Now() + kStopPatience;
        }
        if (absl::Now() > deadline) {
          return bytes;
        }
        pollfd event = {fd_.get(), POLLOUT, 0};
        if (poll(&event, 1, kPollMs) <= 0) {
          continue;
        }
      }
      // A pipe that poll() reports as writable accepts this much.
      const size_t size =
          is_regular_ ? bytes.size() : std::min<size_t>(bytes.size(), PIPE_BUF);
      const ssize_t written = write(fd_.get(), bytes.data(), size);
      if (written > 0) {
        bytes.remove_prefix(static_cast<size_t>(written));
      } else if (errno != EINTR && errno != EAGAIN) {
        error_ = errno;
        return bytes;
      }
    }
    error_ = 0;
    return bytes;
  }

  const std::string path_;
  UniqueFd fd_;
  bool is_regular_ = false;
  // The file ends within a line.
  bool is_torn_ = false;
  int error_ = 0;
};

// Not inlined: g++ 12 warns of copies of a short string if it knows the length
// (GCC bug 105329).
ABSL_ATTRIBUTE_NOINLINE absl::Status CheckHashKeySize(const std::string& path,
                                                      size_t size) {
  if (size >= kHashKeySizeBytes) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(
      absl::StrCat(path, ": must hold a key of ", kHashKeySizeBytes,
                   " bytes or more, got ", size));
}

absl::StatusOr<std::string> ReadHashKey(const CallLogOptions& options) {
  if (!options.hash_key_path.empty()) {
    QUIRE_ASSIGN_OR_RETURN(
        std::string key,
        ReadSmallFile(options.hash_key_path, kHashKeySizeBytesMax));
    QUIRE_RETURN_IF_ERROR(CheckHashKeySize(options.hash_key_path, key.size()));
    return key;
  }
  std::string key(kHashKeySizeBytes, '\0');
  if (getrandom(key.data(), key.size(), 0) !=
      static_cast<ssize_t>(key.size())) {
    return ErrnoStatus(errno, "random numbers", "read");
  }
  return key;
}

absl::StatusOr<std::unique_ptr<CallLog>> CallLog::Open(CallLogOptions options) {
  QUIRE_ASSIGN_OR_RETURN(std::string key, ReadHashKey(options));
  std::unique_ptr<CallLog> log(new CallLog(std::move(options), std::move(key)));
  if (log->options_.path.empty()) {
    return log;
  }
  {
    MutexLock lock(&log->file_mutex_);
    log->file_ = std::make_unique<OutputFile>(log->options_.path);
    QUIRE_RETURN_IF_ERROR(log->file_->Open());
  }
  try {
    log->writer_ = std::thread([log = log.get()] { log->WriteUntilStopped(); });
  } catch (const std::system_error&) {
    return absl::ResourceExhaustedError(
        "cannot start a thread for the access log");
  }
  return log;
}

CallLog::CallLog(CallLogOptions options, std::string key)
    : options_(std::move(options)), key_(std::move(key)) {}

CallLog::~CallLog() {
  if (!writer_.joinable()) {
    return;
  }
  stopping_ = true;
  {
    MutexLock lock(&mutex_);
    stop_ = true;
  }
  wake_.NotifyAll();
  writer_.join();
}

void CallLog::Write(const CallRecord& record) {
  const bool is_slow =
      record.is_unary && record.duration >= options_.slow_call_min;
  if (options_.path.empty() && !is_slow) {
    return;
  }
  const std::string line = Format(record);
  if (!options_.path.empty()) {
    Append(line);
  }
  if (is_slow) {
    SaySlow(record, line);
  }
}

std::string CallLog::Format(const CallRecord& record) const {
  std::string line;
  line.reserve(400);
  line.append(R"({"time":")");
  AppendTime(record.time, line);
  line.push_back('"');
  AppendString("identity", record.identity, line);
  AppendString("address", record.address, line);
  AppendString("method", record.method, line);
  AppendString("archive", record.archive, line);
  if (!record.document.empty() &&
      options_.documents == CallLogOptions::Documents::kHashed) {
    const Sha256 digest = Sha256Of(absl::StrCat(key_, record.document));
    AppendString(
        "document_hash",
        absl::BytesToHexString(
            {reinterpret_cast<const char*>(digest.data()), kHashSizeBytes}),
        line);
  } else if (options_.documents == CallLogOptions::Documents::kPlain) {
    AppendString("document", record.document.substr(0, kDocumentSizeBytesMax),
                 line);
  }
  absl::StrAppend(&line, ",\"bytes\":", record.size_bytes);
  AppendString("code", record.code, line);
  AppendString("reason", record.reason, line);
  AppendDuration("duration_us", record.duration, line);
  if (record.read_duration.has_value()) {
    AppendDuration("read_us", *record.read_duration, line);
  }
  if (record.fetch_count > 0) {
    absl::StrAppend(&line, ",\"fetches\":", record.fetch_count);
    AppendDuration("queue_us", record.queue_duration, line);
    AppendDuration("device_us", record.device_duration, line);
    AppendDuration("decode_us", record.decode_duration, line);
  }
  AppendDuration("send_us", record.send_duration, line);
  AppendString("trace_id", record.trace_id, line);
  line.append("}\n");
  return line;
}

void CallLog::Append(const std::string& line) {
  bool wakes = false;
  {
    MutexLock lock(&mutex_);
    const size_t size_bytes = waiting_.size() + line.size();
    if (size_bytes > options_.queue_size_bytes_max) {
      ++dropped_count_;
      return;
    }
    // The first line starts the writer's timer; half a queue stops it.
    wakes = waiting_.empty() ||
            (waiting_.size() < options_.queue_size_bytes_max / 2 &&
             size_bytes >= options_.queue_size_bytes_max / 2);
    waiting_.append(line);
  }
  if (wakes) {
    wake_.NotifyOne();
  }
}

void CallLog::SaySlow(const CallRecord& record, const std::string& line) {
  if (!options_.say) {
    return;
  }
  int count = 0;
  {
    MutexLock lock(&mutex_);
    if (const int64_t second = absl::ToUnixSeconds(record.time);
        second != slow_second_) {
      slow_second_ = second;
      slow_count_ = 0;
    }
    count = ++slow_count_;
  }
  if (count <= kSlowLinesPerSecondMax) {
    options_.say(LogLevel::kWarning,
                 absl::StrCat("slow call: ", line.substr(0, line.size() - 1)));
  } else if (count == kSlowLinesPerSecondMax + 1) {
    options_.say(LogLevel::kWarning,
                 "slow calls: more in this second than are logged");
  }
}

void CallLog::WriteUntilStopped() {
  std::string lines;
  // Reported once until it works again.
  int last_error = 0;
  bool stop = false;
  while (!stop) {
    lines.clear();
    {
      MutexLock lock(&mutex_);
      while (waiting_.empty() && !stop_) {
        wake_.Wait(&mutex_);
      }
      if (!stop_ && waiting_.size() < options_.queue_size_bytes_max / 2) {
        wake_.WaitFor(&mutex_, kWriteInterval);
      }
      // Both keep their memory.
      lines.swap(waiting_);
      stop = stop_;
    }
    int error = 0;
    {
      MutexLock lock(&file_mutex_);
      dropped_count_ += file_->Write(lines, stopping_);
      error = file_->error();
    }
    if (error != 0 && error != last_error && options_.say) {
      options_.say(
          LogLevel::kError,
          absl::StrCat(ErrnoStatus(error, options_.path, "write").message(),
                       "; access log lines are dropped until this is fixed"));
    }
    last_error = error;
  }
}

absl::Status CallLog::Reopen() {
  MutexLock lock(&file_mutex_);
  return file_ == nullptr ? absl::OkStatus() : file_->Open();
}

}  // namespace quire
