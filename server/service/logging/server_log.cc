// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/service/logging/server_log.h"

#include <string>

#include "codecs/base/json_text.h"
#include "codecs/base/printable_text.h"

#include "spdlog/logger.h"
#include "spdlog/pattern_formatter.h"
#include "spdlog/sinks/stdout_sinks.h"

namespace quire {
namespace {

spdlog::level::level_enum LevelOf(LogLevel level) {
  return level == LogLevel::kInfo      ? spdlog::level::info
         : level == LogLevel::kWarning ? spdlog::level::warn
                                       : spdlog::level::err;
}

}  // namespace

ServerLog::ServerLog(LogFormat format, LogLevel least)
    : format_(format),
      logger_(std::make_unique<spdlog::logger>(
          "quired", std::make_shared<spdlog::sinks::stderr_sink_mt>())) {
  logger_->set_formatter(std::make_unique<spdlog::pattern_formatter>(
      format == LogFormat::kText
          ? "%Y-%m-%dT%H:%M:%S.%eZ %l %v"
          : R"({"time":"%Y-%m-%dT%H:%M:%S.%eZ","level":"%l","message":%v})",
      spdlog::pattern_time_type::utc));
  SetLevel(least);
  // Errors of the log cannot be reported anywhere.
  logger_->set_error_handler([](const std::string& /*message*/) {});
}

ServerLog::~ServerLog() = default;

void ServerLog::SetLevel(LogLevel least) {
  logger_->set_level(LevelOf(least));
}

void ServerLog::Say(LogLevel level, absl::string_view message) {
  const std::string line = format_ == LogFormat::kText
                               ? PrintableMessage(message)
                               : JsonString(message);
  logger_->log(LevelOf(level), spdlog::string_view_t(line.data(), line.size()));
}

}  // namespace quire
