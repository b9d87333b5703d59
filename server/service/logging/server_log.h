// SPDX-License-Identifier: GPL-3.0-or-later
//
// The server's own messages, on standard error.
#ifndef QUIRE_SERVER_SERVICE_LOGGING_SERVER_LOG_H_
#define QUIRE_SERVER_SERVICE_LOGGING_SERVER_LOG_H_

#include <memory>

#include "absl/strings/string_view.h"

#include "server/service/base/log_line.h"

namespace spdlog {
class logger;
}  // namespace spdlog

namespace quire {

enum class LogFormat {
  // "2026-11-23T06:32:29.123Z info MESSAGE", in UTC.
  kText,
  // {"time":"2026-11-23T06:32:29.123Z","level":"info","message":"MESSAGE"}
  kJson,
};

// Writes one line per message, with any bytes. Thread-safe.
class ServerLog {
 public:
  // Omits messages below `least`.
  ServerLog(LogFormat format, LogLevel least);
  ~ServerLog();
  ServerLog(const ServerLog&) = delete;
  ServerLog& operator=(const ServerLog&) = delete;

  // Omits messages below `least` from now on.
  void SetLevel(LogLevel least);

  // Blocks until the line is written; without a reader of standard error it is
  // lost.
  void Say(LogLevel level, absl::string_view message);

 private:
  const LogFormat format_;
  const std::unique_ptr<spdlog::logger> logger_;
};

}  // namespace quire

#endif  // QUIRE_SERVER_SERVICE_LOGGING_SERVER_LOG_H_
