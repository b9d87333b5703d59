// SPDX-License-Identifier: Apache-2.0
#include "client/http/gateway_metrics.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include "codecs/base/process_figures.h"

namespace quire {
namespace {

constexpr std::array<const char*, kRefusalCount> kRefusalNames = {
    "connections", "address_connections", "memory", "header_timeout"};

void AppendHead(absl::string_view name, absl::string_view type,
                absl::string_view help, std::string& text) {
  absl::StrAppend(&text, "# HELP ", name, " ", help, "\n# TYPE ", name, " ",
                  type, "\n");
}

template <typename Number>
void AppendMetric(absl::string_view name, absl::string_view type,
                  absl::string_view help, Number value, std::string& text) {
  AppendHead(name, type, help, text);
  absl::StrAppend(&text, name, " ", value, "\n");
}

}  // namespace

void GatewayMetrics::CountRequest(int status, uint64_t size_bytes, bool is_cut,
                                  absl::Duration duration) {
  const size_t index =
      std::min(static_cast<size_t>(std::max(status, 0)), kStatusCount - 1);
  requests_[index].fetch_add(1, std::memory_order_relaxed);
  size_bytes_.fetch_add(size_bytes, std::memory_order_relaxed);
  cut_answers_.fetch_add(is_cut ? 1 : 0, std::memory_order_relaxed);
  duration = std::max(duration, absl::ZeroDuration());
  duration_us_.fetch_add(
      static_cast<uint64_t>(absl::ToInt64Microseconds(duration)),
      std::memory_order_relaxed);
  durations_[static_cast<size_t>(
                 std::lower_bound(kBoundsMs.begin(), kBoundsMs.end(),
                                  absl::ToDoubleMilliseconds(duration)) -
                 kBoundsMs.begin())]
      .fetch_add(1, std::memory_order_relaxed);
}

std::string GatewayMetrics::Render(const MemoryBudget& memory,
                                   const MemoryBudget& spool, size_t queue_size,
                                   bool is_draining) const {
  std::string text;
  AppendHead("quire_http_requests_total", "counter",
             "Requests that were answered, by status", text);
  for (size_t status = 0; status < kStatusCount; ++status) {
    const uint64_t requests = requests_[status].load();
    if (requests > 0) {
      absl::StrAppend(&text, "quire_http_requests_total{status=\"", status,
                      "\"} ", requests, "\n");
    }
  }
  AppendHead("quire_http_request_seconds", "histogram",
             "Time from a request's header to the end of its answer", text);
  uint64_t count = 0;
  for (size_t i = 0; i < durations_.size(); ++i) {
    count += durations_[i].load();
    absl::StrAppend(
        &text, "quire_http_request_seconds_bucket{le=\"",
        i < kBoundsMs.size() ? absl::StrCat(kBoundsMs[i] / 1e3) : "+Inf",
        "\"} ", count, "\n");
  }
  absl::StrAppendFormat(&text,
                        "quire_http_request_seconds_sum %.6f\n"
                        "quire_http_request_seconds_count %d\n",
                        static_cast<double>(duration_us_.load()) / 1e6, count);
  AppendMetric("quire_http_sent_bytes_total", "counter",
               "Bytes of bodies that were passed to connections",
               size_bytes_.load(), text);
  AppendMetric("quire_http_cut_answers_total", "counter",
               "Answers that ended before their last byte", cut_answers_.load(),
               text);
  AppendHead("quire_http_refused_connections_total", "counter",
             "Connections that were closed before a request, by reason", text);
  for (size_t i = 0; i < kRefusalCount; ++i) {
    absl::StrAppend(&text, "quire_http_refused_connections_total{reason=\"",
                    kRefusalNames[i], "\"} ", refusals_[i].load(), "\n");
  }
  AppendMetric("quire_http_connections", "gauge", "Open connections",
               connections_.load(), text);
  AppendMetric("quire_http_requests_in_flight", "gauge",
               "Requests that are being answered", in_flight_.load(), text);
  AppendMetric("quire_http_queued_requests", "gauge",
               "Requests that wait for a thread", queue_size, text);
  AppendMetric("quire_http_memory_bytes", "gauge",
               "Memory charged to connections and answers", memory.used_bytes(),
               text);
  AppendMetric("quire_http_memory_limit_bytes", "gauge",
               "Limit of quire_http_memory_bytes", memory.limit_bytes(), text);
  AppendMetric("quire_http_spool_bytes", "gauge",
               "Decoded pages in --spool-dir", spool.used_bytes(), text);
  AppendMetric("quire_http_spool_limit_bytes", "gauge",
               "Limit of quire_http_spool_bytes", spool.limit_bytes(), text);
  AppendMetric("quire_http_lost_log_lines_total", "counter",
               "Lines of the access log that could not be written",
               lost_log_lines_.load(), text);
  AppendMetric("quire_http_draining", "gauge",
               "1 if the gateway is shutting down", is_draining ? 1 : 0, text);
  for (const ProcessFigure& figure : ReadProcessFigures()) {
    AppendHead(figure.name, figure.is_counter ? "counter" : "gauge",
               figure.help, text);
    absl::StrAppendFormat(&text, "%s %.17g\n", figure.name, figure.value);
  }
  return text;
}

}  // namespace quire
