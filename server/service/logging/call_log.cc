// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/service/logging/call_log.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <climits>
#include <cstring>
#include <limits>
#include <optional>
#include <system_error>
#include <utility>

#include "absl/base/attributes.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

#include "codecs/base/json_text.h"
#include "codecs/base/monotonic_time.h"
#include "codecs/base/status_macros.h"
#include "server/archive/files/file_io.h"
#include "server/archive/files/small_file.h"
#include "server/service/security/access_rules.h"

namespace quire {
namespace {

constexpr auto kWriteInterval = std::chrono::milliseconds(100);
constexpr absl::Duration kHastePatience = absl::Seconds(1);
constexpr int kPollMs = 100;
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

}  // namespace

// Builds lines, in memory that it reuses: std::string and absl::StrAppend()
// take four times as long. Each thread keeps the size of its longest line; the
// callers bound all members, so that is some kilobytes. Keys come with the text
// around them; functions that take one are inlined so that it is copied as a
// constant. Thread-compatible.
class CallLog::LineBuffer {
 public:
  void Clear() { size_ = 0; }

  absl::string_view text() const { return {memory_.data(), size_}; }

  ABSL_ATTRIBUTE_ALWAYS_INLINE void Append(absl::string_view text) {
    if (text.size() > memory_.size() - size_) {
      Grow(text.size());
    }
    std::memcpy(memory_.data() + size_, text.data(), text.size());
    size_ += text.size();
  }

  // `key` is `,"KEY":"`. Appends nothing if `value` is empty.
  ABSL_ATTRIBUTE_ALWAYS_INLINE void AppendString(absl::string_view key,
                                                 absl::string_view value) {
    if (value.empty()) {
      return;
    }
    Append(key);
    if (NeedsNoEscape(value)) {
      Append(value);
      Append("\"");
    } else {
      Append(absl::string_view(JsonString(value)).substr(1));
    }
  }

  // `key` is `,"KEY":`.
  template <typename Integer>
  ABSL_ATTRIBUTE_ALWAYS_INLINE void AppendNumber(absl::string_view key,
                                                 Integer value) {
    Append(key);
    char digits[std::numeric_limits<Integer>::digits10 + 2];
    const char* const end =
        std::to_chars(digits, digits + sizeof(digits), value).ptr;
    Append({digits, static_cast<size_t>(end - digits)});
  }

  ABSL_ATTRIBUTE_ALWAYS_INLINE void AppendDuration(absl::string_view key,
                                                   absl::Duration value) {
    AppendNumber(key, absl::ToInt64Microseconds(value));
  }

  // "2026-11-23T06:32:29.123456Z". absl::FormatTime() takes longer than the
  // rest of a line, so the last second is cached.
  void AppendTime(absl::Time time) {
    const int64_t us = absl::ToUnixMicros(time);
    const int64_t second = us / 1'000'000;
    if (second != last_second_) {
      last_text_ =
          absl::FormatTime("%Y-%m-%dT%H:%M:%S", absl::FromUnixSeconds(second),
                           absl::UTCTimeZone());
      last_second_ = second;
    }
    Append(last_text_);
    char fraction[] = ".000000Z";
    int64_t rest = us - second * 1'000'000;
    for (char* digit = fraction + 6; rest > 0; rest /= 10) {
      *digit-- = static_cast<char>('0' + rest % 10);
    }
    Append({fraction, sizeof(fraction) - 1});
  }

 private:
  ABSL_ATTRIBUTE_NOINLINE void Grow(size_t size_bytes) {
    memory_.resize(2 * (size_ + size_bytes));
  }

  std::string memory_ = std::string(1024, '\0');
  size_t size_ = 0;
  int64_t last_second_ = -1;
  std::string last_text_;
};

// Destination of the lines. Thread-compatible.
class CallLog::OutputFile {
 public:
  // Does not wait for the reader of a pipe. Errors: as CallLog::Open().
  static absl::StatusOr<OutputFile> Open(const std::string& path) {
    OutputFile file;
    file.fd_ =
        UniqueFd(path == "-" ? fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0)
                             : open(path.c_str(),
                                    O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC |
                                        O_NOCTTY | O_NONBLOCK,
                                    0640));
    struct stat status = {};
    if (!file.fd_.is_open() || fstat(file.fd_.get(), &status) != 0) {
      return absl::FailedPreconditionError(
          ErrnoStatus(errno, path, "open as the access log").message());
    }
    file.is_regular_ = S_ISREG(status.st_mode);
    if (!file.is_regular_) {
      file.stream_id_ = {status.st_dev, status.st_ino};
    }
    return file;
  }

  // Identifies a pipe or device, but no regular file.
  using StreamId = std::optional<std::pair<dev_t, ino_t>>;

  StreamId stream_id() const { return stream_id_; }

  // Returns the number of lines not written. Abandons a pipe whose reader does
  // not read a while after `haste` is needed.
  uint64_t Write(absl::string_view lines, const Haste& haste) {
    if (is_torn_) {
      // Starts the next line on a new one.
      is_torn_ = !WriteAll("\n", haste).empty();
    }
    const absl::string_view rest = is_torn_ ? lines : WriteAll(lines, haste);
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
  OutputFile() = default;

  // Returns the bytes not written.
  absl::string_view WriteAll(absl::string_view bytes, const Haste& haste) {
    absl::Time deadline = absl::InfiniteFuture();
    while (!bytes.empty()) {
      if (!is_regular_) {
        if (haste.is_needed() && deadline == absl::InfiniteFuture()) {
          deadline = MonotonicNow() + kHastePatience;
        }
        if (MonotonicNow() > deadline) {
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

  UniqueFd fd_;
  bool is_regular_ = false;
  StreamId stream_id_;
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
  {
    MutexLock reopen_lock(&log->reopen_mutex_);
    MutexLock lock(&log->file_mutex_);
    QUIRE_ASSIGN_OR_RETURN(OutputFile file,
                           OutputFile::Open(log->options_.path));
    log->stream_id_ = file.stream_id();
    log->file_ = std::make_unique<OutputFile>(std::move(file));
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
  haste_.stopping = true;
  {
    MutexLock lock(&mutex_);
    stop_ = true;
  }
  wake_.NotifyAll();
  writer_.join();
}

void CallLog::Write(const CallRecord& record) {
  thread_local LineBuffer line;
  line.Clear();
  Format(record, line);
  Append(line.text());
}

void CallLog::Format(const CallRecord& record, LineBuffer& line) const {
  line.Append(R"({"time":")");
  line.AppendTime(record.time);
  line.Append("\"");
  line.AppendString(R"(,"identity":")", record.identity);
  line.AppendString(R"(,"address":")", record.address);
  line.AppendString(R"(,"method":")", record.method);
  line.AppendString(R"(,"archive":")", record.archive);
  if (!record.document.empty() &&
      options_.documents == CallLogOptions::Documents::kHashed) {
    const Sha256 digest = Sha256Of(absl::StrCat(key_, record.document));
    line.AppendString(
        R"(,"document_hash":")",
        absl::BytesToHexString(
            {reinterpret_cast<const char*>(digest.data()), kHashSizeBytes}));
  } else if (options_.documents == CallLogOptions::Documents::kPlain) {
    line.AppendString(R"(,"document":")",
                      record.document.substr(0, kDocumentSizeBytesMax));
  }
  line.AppendNumber(R"(,"bytes":)", record.size_bytes);
  line.AppendString(R"(,"code":")", record.code);
  line.AppendString(R"(,"reason":")", record.reason);
  line.AppendDuration(R"(,"duration_us":)", record.duration);
  if (record.read_duration.has_value()) {
    line.AppendDuration(R"(,"read_us":)", *record.read_duration);
  }
  if (record.fetch_count > 0) {
    line.AppendNumber(R"(,"fetches":)", record.fetch_count);
    line.AppendDuration(R"(,"queue_us":)", record.queue_duration);
    line.AppendDuration(R"(,"device_us":)", record.device_duration);
    line.AppendDuration(R"(,"decode_us":)", record.decode_duration);
  }
  line.AppendDuration(R"(,"send_us":)", record.send_duration);
  line.AppendString(R"(,"trace_id":")", record.trace_id);
  line.AppendString(R"(,"parent_id":")", record.parent_id);
  line.Append("}\n");
}

void CallLog::Append(absl::string_view line) {
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
    waiting_.append(line.data(), line.size());
  }
  if (wakes) {
    wake_.NotifyOne();
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
    // Otherwise this thread could take the mutex again before Reopen() does.
    while (haste_.reopening) {
      std::this_thread::yield();
    }
    int error = 0;
    {
      MutexLock lock(&file_mutex_);
      dropped_count_ += file_->Write(lines, haste_);
      error = file_->error();
    }
    if (error != 0 && error != last_error) {
      options_.log(
          LogLevel::kError,
          absl::StrCat(ErrnoStatus(error, options_.path, "write").message(),
                       "; access log lines are dropped until this is fixed"));
    }
    last_error = error;
  }
}

absl::Status CallLog::Reopen() {
  if (options_.path == "-") {
    return absl::OkStatus();
  }
  QUIRE_ASSIGN_OR_RETURN(OutputFile file, OutputFile::Open(options_.path));
  MutexLock reopen_lock(&reopen_mutex_);
  // The same pipe stays open. While its reader does not read, the writer blocks
  // on it with the mutex locked, and a reload must not wait for that.
  if (file.stream_id().has_value() && file.stream_id() == stream_id_) {
    return absl::OkStatus();
  }
  haste_.reopening = true;
  {
    MutexLock lock(&file_mutex_);
    *file_ = std::move(file);
    stream_id_ = file_->stream_id();
  }
  haste_.reopening = false;
  return absl::OkStatus();
}

}  // namespace quire
