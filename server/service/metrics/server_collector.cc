// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/service/metrics/server_collector.h"

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

#include "codecs/base/process_figures.h"
#include "server/storage/base/duration_histogram.h"

namespace quire {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;

ClientMetric Sample(
    MetricType type, double value,
    const std::vector<std::pair<std::string, std::string>>& labels = {}) {
  ClientMetric metric;
  for (const auto& [name, text] : labels) {
    metric.label.push_back({name, text});
  }
  if (type == MetricType::Counter) {
    metric.counter.value = value;
  } else {
    metric.gauge.value = value;
  }
  return metric;
}

MetricFamily Single(MetricType type, std::string name, std::string help,
                    double value) {
  return {std::move(name), std::move(help), type, {Sample(type, value)}};
}

MetricFamily Single(MetricType type, std::string name, std::string help,
                    uint64_t value) {
  return Single(type, std::move(name), std::move(help),
                static_cast<double>(value));
}

// A gauge or counter per drive.
MetricFamily DriveFamily(MetricType type, std::string name, std::string help,
                         const BlockStoreStats& stats,
                         uint64_t DriveStats::*value) {
  MetricFamily family{std::move(name), std::move(help), type, {}};
  for (const DriveStats& drive : stats.drives) {
    family.metric.push_back(Sample(type, static_cast<double>(drive.*value),
                                   {{"device", drive.name}}));
  }
  return family;
}

ClientMetric HistogramOf(const DurationHistogram& durations) {
  constexpr double kUsPerSecond = 1e6;
  ClientMetric metric;
  uint64_t count = 0;
  for (size_t i = 0; i < durations.counts.size(); ++i) {
    count += durations.counts[i];
    metric.histogram.bucket.push_back(
        {.cumulative_count = count,
         .upper_bound =
             i < DurationHistogram::kBoundsUs.size()
                 ? static_cast<double>(DurationHistogram::kBoundsUs[i]) /
                       kUsPerSecond
                 : std::numeric_limits<double>::infinity()});
  }
  metric.histogram.sample_count = count;
  metric.histogram.sample_sum =
      static_cast<double>(durations.sum_us) / kUsPerSecond;
  return metric;
}

// A histogram per drive.
MetricFamily DriveFamily(std::string name, std::string help,
                         const BlockStoreStats& stats,
                         DurationHistogram DriveStats::*histogram) {
  MetricFamily family{
      std::move(name), std::move(help), MetricType::Histogram, {}};
  for (const DriveStats& drive : stats.drives) {
    ClientMetric metric = HistogramOf(drive.*histogram);
    metric.label.push_back({"device", drive.name});
    family.metric.push_back(std::move(metric));
  }
  return family;
}

MetricFamily InfoFamily(const Catalog& catalog) {
  MetricFamily family{"quire_archive_info",
                      "Always 1; the labels say which archive is served.",
                      MetricType::Gauge,
                      {}};
  for (const auto& [name, served] : catalog.Get()) {
    family.metric.push_back(
        Sample(MetricType::Gauge, 1,
               {{"archive", name}, {"uuid", served->description.uuid()}}));
  }
  return family;
}

void AddRemoteStore(const RemoteStore::Stats& stats, const StaleFigures& stale,
                    std::vector<MetricFamily>& families) {
  constexpr MetricType kCounter = MetricType::Counter;
  MetricFamily requests{"quire_store_requests_total",
                        "Requests to object stores, by outcome.",
                        kCounter,
                        {}};
  for (size_t i = 0; i < kStoreOutcomeCount; ++i) {
    requests.metric.push_back(
        Sample(kCounter, static_cast<double>(stats.requests.requests[i]),
               {{"outcome", StoreOutcomeName(static_cast<StoreOutcome>(i))}}));
  }
  families.push_back(std::move(requests));
  families.push_back({"quire_store_request_duration_seconds",
                      "From the start of a good request to its last byte.",
                      MetricType::Histogram,
                      {HistogramOf(stats.requests.durations)}});
  const auto add = [&](MetricType type, const char* name, const char* help,
                       uint64_t value) {
    families.push_back(Single(type, name, help, value));
  };
  add(kCounter, "quire_store_received_bytes_total",
      "Bytes of objects received from object stores.",
      stats.requests.received_bytes);
  add(kCounter, "quire_store_retries_total",
      "Requests to object stores that were repeated.", stats.requests.retries);
  add(kCounter, "quire_store_hedges_total", "Second requests for slow ones.",
      stats.requests.hedges);
  add(kCounter, "quire_store_credential_failures_total",
      "Times that no new credentials for object stores were found.",
      stats.credential_failures);
  add(kCounter, "quire_store_cache_hits_total",
      "Chunks that reads found in --store-cache.", stats.cache.hit_chunks);
  add(kCounter, "quire_store_cache_misses_total",
      "Chunks that reads did not find there.", stats.cache.missed_chunks);
  add(kCounter, "quire_store_cache_evictions_total",
      "Chunks evicted from there.", stats.cache.evicted_chunks);
  add(kCounter, "quire_store_cache_damaged_total",
      "Chunks dropped from there because a block in them was damaged.",
      stats.cache.invalidated_chunks);
  add(kCounter, "quire_store_cache_bypasses_total",
      "Requests that were served without being cached, for lack of space or "
      "after an error of the disk.",
      stats.cache.uncached_gets);
  add(MetricType::Gauge, "quire_store_cache_bytes", "Bytes in --store-cache.",
      stats.cache.used_bytes);
  add(MetricType::Gauge, "quire_store_cache_limit_bytes",
      "Limit of quire_store_cache_bytes.", stats.cache.size_bytes_max);
  add(MetricType::Gauge, "quire_store_stale_archives",
      "Archives that are open from local copies which their stores, that do "
      "not answer, have not confirmed since.",
      stale.archive_count);
  families.push_back(
      Single(MetricType::Gauge, "quire_store_stale_age_seconds",
             "Longest time since the store confirmed one of them.",
             absl::ToDoubleSeconds(stale.age_max)));
}

void AddScrub(const std::vector<ScrubFigures>& figures, absl::Duration interval,
              std::vector<MetricFamily>& families) {
  families.push_back(Single(MetricType::Gauge, "quire_scrub_interval_seconds",
                            "Interval of --scrub-interval; 0 without it.",
                            absl::ToDoubleSeconds(interval)));
  MetricFamily bytes{"quire_scrubbed_bytes_total",
                     "Bytes of blocks read and checked by the scrub.",
                     MetricType::Counter,
                     {}};
  MetricFamily damaged{"quire_scrub_damaged_blocks",
                       "Damaged blocks that the scrub found.",
                       MetricType::Gauge,
                       {}};
  MetricFamily completed{"quire_scrub_last_completed_timestamp_seconds",
                         "End of the last scrub.",
                         MetricType::Gauge,
                         {}};
  for (const ScrubFigures& archive : figures) {
    const std::vector<std::pair<std::string, std::string>> labels = {
        {"archive", archive.archive}};
    bytes.metric.push_back(Sample(MetricType::Counter,
                                  static_cast<double>(archive.scrubbed_bytes),
                                  labels));
    damaged.metric.push_back(Sample(
        MetricType::Gauge, static_cast<double>(archive.damaged_count), labels));
    completed.metric.push_back(
        Sample(MetricType::Gauge, static_cast<double>(archive.completed_at_s),
               labels));
  }
  families.push_back(std::move(bytes));
  families.push_back(std::move(damaged));
  families.push_back(std::move(completed));
}

MetricFamily WithdrawnFamily(const Catalog& catalog) {
  MetricFamily family{"quire_withdrawn_documents",
                      "Documents of an archive that clients cannot get.",
                      MetricType::Gauge,
                      {}};
  for (const auto& [name, served] : catalog.Get()) {
    const auto withdrawn = served->withdrawal->Get().documents;
    family.metric.push_back(Sample(
        MetricType::Gauge,
        withdrawn == nullptr ? 0
                             : static_cast<double>(withdrawn->document_count()),
        {{"archive", name}}));
  }
  return family;
}

void AddTraffic(const Catalog& catalog, std::vector<MetricFamily>& families) {
  MetricFamily calls{"quire_archive_calls_total",
                     "Calls about an archive that have ended.",
                     MetricType::Counter,
                     {}};
  MetricFamily sent{"quire_archive_sent_bytes_total",
                    "Decoded bytes in answers, by archive.",
                    MetricType::Counter,
                    {}};
  for (const auto& [name, traffic] : catalog.GetTraffic()) {
    const ArchiveTraffic::Totals totals = traffic->totals();
    calls.metric.push_back(Sample(MetricType::Counter,
                                  static_cast<double>(totals.call_count),
                                  {{"archive", name}}));
    sent.metric.push_back(Sample(MetricType::Counter,
                                 static_cast<double>(totals.sent_bytes),
                                 {{"archive", name}}));
  }
  families.push_back(std::move(calls));
  families.push_back(std::move(sent));
}

void AddConnections(const ConnectionFigures& connections,
                    std::vector<MetricFamily>& families) {
  constexpr MetricType kCounter = MetricType::Counter;
  families.push_back(Single(MetricType::Gauge, "quire_connections",
                            "Connections of clients that are open.",
                            connections.open_count));
  const auto limit = [](uint64_t value, const char* resource) {
    return Sample(MetricType::Gauge, static_cast<double>(value),
                  {{"resource", resource}});
  };
  families.push_back({"quire_connections_limit",
                      "Limits of quire_connections.",
                      MetricType::Gauge,
                      {limit(connections.descriptors_max, "descriptors"),
                       limit(connections.memory_max, "memory")}});
  const auto count = [](uint64_t value, const char* reason) {
    return Sample(kCounter, static_cast<double>(value), {{"reason", reason}});
  };
  families.push_back({"quire_connections_refused_total",
                      "Connections that were closed unserved.",
                      kCounter,
                      {count(connections.refused_to_client_count, "client"),
                       count(connections.refused_to_all_count, "descriptors"),
                       count(connections.refused_memory_count, "memory"),
                       count(connections.crowded_out_count, "requests"),
                       count(connections.silent_ended_count, "silent")}});
  families.push_back(Single(kCounter, "quire_accept_errors_total",
                            "Failures of the system to accept a connection.",
                            connections.accept_error_count));
}

void AddIdentities(const CallMetrics& calls,
                   std::vector<MetricFamily>& families) {
  MetricFamily count{"quire_identity_calls_total",
                     "Calls of an identity that have ended.",
                     MetricType::Counter,
                     {}};
  MetricFamily sent{"quire_identity_sent_bytes_total",
                    "Decoded bytes in answers, by identity.",
                    MetricType::Counter,
                    {}};
  auto identities = calls.identities();
  // The family has a sample from the start.
  identities.try_emplace("other");
  for (const auto& [identity, totals] : identities) {
    count.metric.push_back(Sample(MetricType::Counter,
                                  static_cast<double>(totals.call_count),
                                  {{"identity", identity}}));
    sent.metric.push_back(Sample(MetricType::Counter,
                                 static_cast<double>(totals.sent_bytes),
                                 {{"identity", identity}}));
  }
  families.push_back(std::move(count));
  families.push_back(std::move(sent));
}

MetricFamily HandshakesFamily(
    const std::vector<std::pair<std::string, uint64_t>>& failures) {
  MetricFamily family{"quire_tls_handshake_failures_total",
                      "Connections whose TLS handshake failed.",
                      MetricType::Counter,
                      {}};
  for (const auto& [reason, count] : failures) {
    family.metric.push_back(Sample(
        MetricType::Counter, static_cast<double>(count), {{"reason", reason}}));
  }
  return family;
}

// Without a time the family has no sample.
MetricFamily ExpiryFamily(const char* name, const char* help,
                          std::optional<absl::Time> expiry) {
  MetricFamily family{name, help, MetricType::Gauge, {}};
  if (expiry.has_value()) {
    family.metric.push_back(Sample(
        MetricType::Gauge, absl::ToDoubleSeconds(*expiry - absl::UnixEpoch())));
  }
  return family;
}

void AddArchives(const Catalog& catalog, const ListedFigures& figures,
                 std::vector<MetricFamily>& families) {
  const Catalog::Counts counts = catalog.counts();
  const auto gauge = [](uint64_t count, const char* state) {
    return Sample(MetricType::Gauge, static_cast<double>(count),
                  {{"state", state}});
  };
  families.push_back(
      {"quire_archives",
       "Archives that are to be served, by state.",
       MetricType::Gauge,
       {gauge(counts.open, "open"), gauge(counts.opening, "opening"),
        gauge(counts.failed, "broken"), gauge(counts.closed, "closed")}});
  families.push_back(Single(MetricType::Gauge, "quire_listed_archives",
                            "Archives of --archives-list, open or not.",
                            counts.on_use));
  families.push_back(Single(MetricType::Gauge, "quire_listed_archives_open",
                            "Archives of --archives-list that are open.",
                            counts.on_use_open));
  const auto counter = [](uint64_t value, const char* outcome) {
    return Sample(MetricType::Counter, static_cast<double>(value),
                  {{"outcome", outcome}});
  };
  families.push_back({"quire_listed_archive_openings_total",
                      "Openings of archives of --archives-list, by outcome.",
                      MetricType::Counter,
                      {counter(figures.opened_count, "good"),
                       counter(figures.failed_count, "failed")}});
  families.push_back(Single(MetricType::Counter,
                            "quire_listed_archive_closings_total",
                            "Archives of --archives-list that were closed for "
                            "the memory of others.",
                            counts.closings));
  AddTraffic(catalog, families);
}

MetricFamily DecodesFamily(const BlockStoreStats& stats) {
  MetricFamily family{"quire_decodes_total",
                      "Blocks of which all was decoded, or some partitions.",
                      MetricType::Counter,
                      {}};
  for (const auto& [method, count] :
       {std::pair{"whole", stats.whole_decodes},
        std::pair{"partition", stats.partial_decodes}}) {
    family.metric.push_back(Sample(
        MetricType::Counter, static_cast<double>(count), {{"method", method}}));
  }
  return family;
}

MetricFamily MemoryFamily(const Catalog& catalog) {
  MetricFamily family{"quire_archive_memory_bytes",
                      "RAM that an archive holds, by part.",
                      MetricType::Gauge,
                      {}};
  for (const auto& [name, served] : catalog.Get()) {
    const ArchiveMemory& memory = served->archive->memory();
    const std::pair<const char*, uint64_t> parts[] = {
        {"dictionary", memory.dictionary_bytes},
        {"symbol_table", memory.symbol_table_bytes},
        {"codec", memory.codec_bytes},
        {"block_index", memory.block_index_bytes},
        {"layout", memory.layout_bytes},
        {"document_starts", memory.document_starts_bytes},
        {"document_ids", memory.document_ids_bytes},
        {"id_filters", memory.id_filters_bytes},
        {"document_attributes", memory.document_attributes_bytes}};
    for (const auto& [part, size_bytes] : parts) {
      family.metric.push_back(Sample(MetricType::Gauge,
                                     static_cast<double>(size_bytes),
                                     {{"archive", name}, {"part", part}}));
    }
  }
  return family;
}

// Adds what the log, certificate, rules of access and open archives tell.
void AddService(const ServerCollector::Sources& sources,
                std::vector<MetricFamily>& families) {
  families.push_back(Single(MetricType::Counter,
                            "quire_access_log_dropped_lines_total",
                            "Lines of the access log that were not written.",
                            sources.dropped_log_lines()));
  families.push_back(Single(MetricType::Counter, "quire_stalled_calls_total",
                            "Calls ended by --stall-timeout.",
                            sources.stalled_calls()));
  families.push_back(
      ExpiryFamily("quire_certificate_expiry_timestamp_seconds",
                   "Expiry of the server's certificate, in seconds since 1970.",
                   sources.certificate_expiry()));
  families.push_back(ExpiryFamily(
      "quire_access_expiry_timestamp_seconds",
      "Next expiry of an identity of --access, in seconds since 1970.",
      sources.access_expiry()));
  families.push_back(InfoFamily(sources.catalog));
  families.push_back(WithdrawnFamily(sources.catalog));
  families.push_back(MemoryFamily(sources.catalog));
}

void AddDrives(const BlockStoreStats& stats,
               std::vector<MetricFamily>& families) {
  families.push_back(DriveFamily(MetricType::Counter, "quire_drive_reads_total",
                                 "Reads sent to a drive.", stats,
                                 &DriveStats::reads));
  families.push_back(
      DriveFamily(MetricType::Counter, "quire_drive_errors_total",
                  "Reads of a drive that failed.", stats, &DriveStats::errors));
  families.push_back(DriveFamily(
      MetricType::Gauge, "quire_drive_reads_in_flight", "Reads at a drive now.",
      stats, &DriveStats::reads_in_flight));
  families.push_back(DriveFamily(
      MetricType::Gauge, "quire_drive_queued_requests",
      "Requests that wait for a drive, of one block or several in a "
      "row.",
      stats, &DriveStats::queued_requests));
  families.push_back(
      DriveFamily("quire_drive_read_duration_seconds",
                  "From the start of an operation of a drive to its result.",
                  stats, &DriveStats::read_durations));
  families.push_back(
      DriveFamily("quire_drive_queue_wait_seconds",
                  "From a block fetch until its read was started.", stats,
                  &DriveStats::queue_waits));
}

}  // namespace

std::vector<MetricFamily> ServerCollector::Collect() const {
  const BlockStoreStats stats = sources_.store.Stats();
  const auto counter = [](const char* name, const char* help, uint64_t value) {
    return Single(MetricType::Counter, name, help, value);
  };
  const auto gauge = [](const char* name, const char* help, uint64_t value) {
    return Single(MetricType::Gauge, name, help, value);
  };
  const MemoryPlan& plan = sources_.plan;
  std::vector<MetricFamily> families = {
      counter("quire_cache_hits_total", "Blocks found in the cache.",
              stats.cache_hits),
      counter("quire_cache_misses_total", "Blocks not found in the cache.",
              stats.cache_misses),
      counter("quire_cache_evictions_total", "Blocks dropped from the cache.",
              stats.cache_evictions),
      gauge("quire_cache_bytes", "Decoded blocks in the cache.",
            stats.cache_size_bytes),
      gauge("quire_cache_capacity_bytes", "Limit on quire_cache_bytes.",
            stats.cache_capacity_bytes),
      gauge("quire_cache_blocks", "Blocks in the cache.", stats.cache_blocks),
      counter("quire_joined_fetches_total",
              "Block fetches that shared another one's read.",
              stats.joined_fetches),
      counter("quire_cancelled_fetches_total",
              "Block fetches withdrawn before their read.",
              stats.cancelled_fetches),
      counter("quire_device_reads_total", "Reads sent to a device.",
              stats.device_reads),
      counter("quire_device_read_bytes_total", "Bytes read from devices.",
              stats.device_read_bytes),
      counter("quire_device_errors_total", "Device reads that failed.",
              stats.device_errors),
      counter("quire_blocks_decoded_total",
              "Blocks decoded; of those in partitions, partitions.",
              stats.blocks_decoded),
      counter("quire_decoded_bytes_total", "Text decoded.",
              stats.decoded_bytes),
      DecodesFamily(stats),
      counter("quire_block_failures_total",
              "Blocks whose checksum or decoding failed, or whose file ends "
              "early.",
              stats.decode_failures),
      counter("quire_repeated_blocks_total",
              "Blocks read a second time, after an error or as damaged.",
              stats.repeated_blocks),
      counter("quire_recovered_blocks_total",
              "Blocks whose second read was good.", stats.recovered_blocks),
      gauge("quire_queued_fetches", "Block fetches waiting for a device.",
            stats.queued_fetches),
      gauge("quire_device_reads_in_flight", "Reads at a device now.",
            stats.device_reads_in_flight),
      gauge("quire_read_buffers_bytes",
            "Buffers of reads and decodes in flight.",
            stats.buffers_size_bytes),
      gauge("quire_read_buffers_limit_bytes",
            "Limit of quire_read_buffers_bytes.", plan.buffers_bytes),
      gauge("quire_memory_limit_bytes",
            "Memory limit of the process: --memory or its default.",
            plan.total_bytes),
      gauge("quire_in_flight_limit_bytes", "Limit of quire_in_flight_bytes.",
            plan.in_flight_bytes),
      gauge("quire_in_flight_bytes", "Answers in memory, in decoded bytes.",
            sources_.admission.in_flight_bytes()),
      counter("quire_admission_rejected_total",
              "Claims on answer memory that were refused.",
              sources_.admission.rejected_count()),
      gauge("quire_admission_waiting",
            "Single answers that wait for answer memory.",
            sources_.admission.waiting_count()),
  };
  AddDrives(stats, families);
  AddService(sources_, families);
  AddArchives(sources_.catalog, sources_.listed_archives(), families);
  AddScrub(sources_.scrub(), sources_.scrub_interval, families);
  if (sources_.remote_store != nullptr) {
    AddRemoteStore(sources_.remote_store->GetStats(), sources_.stale(),
                   families);
  }
  AddConnections(sources_.connections(), families);
  AddIdentities(sources_.calls, families);
  families.push_back(HandshakesFamily(sources_.handshake_failures()));
  for (const ProcessFigure& figure : ReadProcessFigures()) {
    families.push_back(
        Single(figure.is_counter ? MetricType::Counter : MetricType::Gauge,
               figure.name, absl::StrCat(figure.help, "."), figure.value));
  }
  return families;
}

}  // namespace quire
