// SPDX-License-Identifier: GPL-3.0-or-later
//
// Messages of the server for its log.
#ifndef QUIRE_SERVER_SERVICE_BASE_LOG_LINE_H_
#define QUIRE_SERVER_SERVICE_BASE_LOG_LINE_H_

#include <functional>
#include <string>

namespace quire {

enum class LogLevel {
  // Normal operation.
  kInfo,
  // A request or change was refused; the server continues.
  kWarning,
  // Data is damaged, or the server ends.
  kError,
};

struct LogLine {
  LogLevel level = LogLevel::kInfo;
  std::string text;
};

// Takes messages for the log. Never empty; called on any thread; may block on
// I/O.
using LogSink = std::function<void(LogLevel, const std::string&)>;

// The default of a LogSink.
inline void DropLogLine(LogLevel /*level*/, const std::string& /*text*/) {}

}  // namespace quire

#endif  // QUIRE_SERVER_SERVICE_BASE_LOG_LINE_H_
