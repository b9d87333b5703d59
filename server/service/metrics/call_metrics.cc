// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/service/metrics/call_metrics.h"

#include <string>
#include <utility>

#include "absl/status/status.h"

namespace quire {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;

const prometheus::Histogram::BucketBoundaries kDurationSeconds = {
    0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1,
    0.25,   0.5,     1,      2.5,   5,      10,    30,   60,    300};
const prometheus::Histogram::BucketBoundaries kBatchItems = {1,   4,    16,  64,
                                                             256, 1024, 4096};

// The code as gRPC's tools write it, "DEADLINE_EXCEEDED".
std::string CodeName(int code) {
  return code == 0
             ? "OK"
             : absl::StatusCodeToString(static_cast<absl::StatusCode>(code));
}

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
                    uint64_t value) {
  return {std::move(name),
          std::move(help),
          type,
          {Sample(type, static_cast<double>(value))}};
}

// One level or counter of each drive.
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

MetricFamily ArchivesFamily(const Catalog& catalog) {
  const size_t opening = catalog.GetOpening()->size();
  return {"quire_archives",
          "Archives that are served, by state.",
          MetricType::Gauge,
          {Sample(MetricType::Gauge, static_cast<double>(catalog.Get()->size()),
                  {{"state", "open"}}),
           Sample(MetricType::Gauge, static_cast<double>(opening),
                  {{"state", "opening"}})}};
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
  const std::shared_ptr<const Catalog::ByName> archives = catalog.Get();
  for (const auto& [name, served] : *archives) {
    const ArchiveMemory& memory = served->archive->memory();
    const std::pair<const char*, uint64_t> parts[] = {
        {"dictionary", memory.dictionary_bytes},
        {"symbol_table", memory.symbol_table_bytes},
        {"codec", memory.codec_bytes},
        {"block_index", memory.block_index_bytes},
        {"layout", memory.layout_bytes},
        {"document_starts", memory.document_starts_bytes},
        {"document_ids", memory.document_ids_bytes},
        {"document_attributes", memory.document_attributes_bytes}};
    for (const auto& [part, size_bytes] : parts) {
      family.metric.push_back(Sample(MetricType::Gauge,
                                     static_cast<double>(size_bytes),
                                     {{"archive", name}, {"part", part}}));
    }
  }
  return family;
}

}  // namespace

const char* MethodName(Method method) {
  static constexpr std::array<const char*, kMethodCount> kNames = {
      "ListArchives",  "GetArchive",    "Read",
      "ReadStream",    "BatchRead",     "Scan",
      "ListDocuments", "GetDictionary", "GetSymbolTable"};
  return kNames[static_cast<size_t>(method)];
}

CallMetrics::CallMetrics(prometheus::Registry& registry) {
  auto& ended = prometheus::BuildCounter()
                    .Name("quire_calls_total")
                    .Help("Calls that have ended, by method and gRPC code.")
                    .Register(registry);
  auto& in_flight = prometheus::BuildGauge()
                        .Name("quire_calls_in_flight")
                        .Help("Calls that have begun and not ended.")
                        .Register(registry);
  auto& duration = prometheus::BuildHistogram()
                       .Name("quire_call_duration_seconds")
                       .Help(
                           "From arrival of a call until its answer was "
                           "handed to the transport.")
                       .Register(registry);
  auto& sent = prometheus::BuildCounter()
                   .Name("quire_sent_bytes_total")
                   .Help("Decoded bytes in answers, by method.")
                   .Register(registry);
  for (size_t i = 0; i < kMethodCount; ++i) {
    const std::string method = MethodName(static_cast<Method>(i));
    for (size_t code = 0; code < methods_[i].ended_by_code.size(); ++code) {
      methods_[i].ended_by_code[code] = &ended.Add(
          {{"method", method}, {"code", CodeName(static_cast<int>(code))}});
    }
    methods_[i].in_flight = &in_flight.Add({{"method", method}});
    methods_[i].duration_seconds =
        &duration.Add({{"method", method}}, kDurationSeconds);
    methods_[i].sent_bytes = &sent.Add({{"method", method}});
  }
  RegisterEncodings(registry);
  batch_message_items_ = &prometheus::BuildHistogram()
                              .Name("quire_batch_message_items")
                              .Help("Items in one message of BatchRead.")
                              .Register(registry)
                              .Add({}, kBatchItems);
  auto& reloads = prometheus::BuildCounter()
                      .Name("quire_reloads_total")
                      .Help("Archives opened anew on SIGHUP, by outcome.")
                      .Register(registry);
  reloads_succeeded_ = &reloads.Add({{"outcome", "succeeded"}});
  reloads_failed_ = &reloads.Add({{"outcome", "failed"}});
}

void CallMetrics::RegisterEncodings(prometheus::Registry& registry) {
  auto& answers = prometheus::BuildCounter()
                      .Name("quire_answers_total")
                      .Help(
                          "Answers, items of batches and messages of "
                          "streams, by encoding.")
                      .Register(registry);
  auto& decoded = prometheus::BuildCounter()
                      .Name("quire_answer_decoded_bytes_total")
                      .Help("What answers decode to, by encoding.")
                      .Register(registry);
  auto& wire = prometheus::BuildCounter()
                   .Name("quire_answer_wire_bytes_total")
                   .Help("Data of answers as it is sent, by encoding.")
                   .Register(registry);
  const std::pair<v1::WireEncoding, const char*> names[] = {
      {v1::WIRE_ENCODING_IDENTITY, "identity"},
      {v1::WIRE_ENCODING_FSST, "fsst"},
      {v1::WIRE_ENCODING_STORED, "stored"}};
  for (const auto& [encoding, name] : names) {
    encodings_[static_cast<size_t>(encoding)] = {
        &answers.Add({{"encoding", name}}), &decoded.Add({{"encoding", name}}),
        &wire.Add({{"encoding", name}})};
  }
}

void CallMetrics::AnswersSent(v1::WireEncoding encoding,
                              const AnswerTally& answers) {
  const PerEncoding& counters = encodings_[static_cast<size_t>(encoding)];
  counters.answers->Increment(static_cast<double>(answers.answer_count));
  counters.decoded_bytes->Increment(static_cast<double>(answers.size_bytes));
  counters.wire_bytes->Increment(static_cast<double>(answers.data_size_bytes));
}

void CallMetrics::CallStarted(Method method) {
  methods_[static_cast<size_t>(method)].in_flight->Increment();
}

void CallMetrics::CallEnded(Method method, grpc::StatusCode status_code,
                            absl::Duration duration) {
  const PerMethod& per_method = methods_[static_cast<size_t>(method)];
  per_method.in_flight->Decrement();
  const auto code = static_cast<size_t>(status_code);
  if (code < per_method.ended_by_code.size()) {
    per_method.ended_by_code[code]->Increment();
  }
  per_method.duration_seconds->Observe(absl::ToDoubleSeconds(duration));
}

void CallMetrics::BytesSent(Method method, uint64_t size_bytes) {
  methods_[static_cast<size_t>(method)].sent_bytes->Increment(
      static_cast<double>(size_bytes));
}

void CallMetrics::BatchMessage(uint64_t item_count) {
  batch_message_items_->Observe(static_cast<double>(item_count));
}

void CallMetrics::ReloadEnded(bool succeeded) {
  (succeeded ? reloads_succeeded_ : reloads_failed_)->Increment();
}

std::vector<MetricFamily> ServerCollector::Collect() const {
  const BlockStoreStats stats = store_.Stats();
  const auto counter = [](const char* name, const char* help, uint64_t value) {
    return Single(MetricType::Counter, name, help, value);
  };
  const auto gauge = [](const char* name, const char* help, uint64_t value) {
    return Single(MetricType::Gauge, name, help, value);
  };
  return {
      counter("quire_cache_hits_total", "Blocks found in the cache.",
              stats.cache_hits),
      counter("quire_cache_misses_total", "Blocks not found in the cache.",
              stats.cache_misses),
      counter("quire_cache_evictions_total", "Blocks dropped from the cache.",
              stats.cache_evictions),
      gauge("quire_cache_bytes",
            "Blocks in the cache, in the form it holds them.",
            stats.cache_size_bytes),
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
              "Blocks whose checksum or decoding failed.",
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
            "Buffers of reads and decodings under way.",
            stats.buffers_size_bytes),
      gauge("quire_in_flight_bytes", "Answers in memory, in decoded bytes.",
            admission_.in_flight_bytes()),
      counter("quire_admission_rejected_total",
              "Claims on answer memory that were refused.",
              admission_.rejected_count()),
      DriveFamily(MetricType::Counter, "quire_drive_reads_total",
                  "Reads sent to a drive.", stats, &DriveStats::reads),
      DriveFamily(MetricType::Gauge, "quire_drive_reads_in_flight",
                  "Reads at a drive now.", stats, &DriveStats::reads_in_flight),
      DriveFamily(MetricType::Gauge, "quire_drive_queued_requests",
                  "Blocks that wait for a drive.", stats,
                  &DriveStats::queued_requests),
      ArchivesFamily(catalog_),
      MemoryFamily(catalog_),
  };
}

}  // namespace quire
