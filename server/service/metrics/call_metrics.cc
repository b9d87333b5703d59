// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/service/metrics/call_metrics.h"

#include <string>
#include <utility>

#include "absl/status/status.h"

namespace quire {
namespace {

// Upper bound on identities with their own series.
constexpr size_t kIdentitiesMax = 1000;

const prometheus::Histogram::BucketBoundaries kDurationSeconds = {
    0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1,
    0.25,   0.5,     1,      2.5,   5,      10,    30,   60,    300};
const prometheus::Histogram::BucketBoundaries kBatchItems = {1,   4,    16,  64,
                                                             256, 1024, 4096};

}  // namespace

std::string CodeName(int code) {
  return code == 0
             ? "OK"
             : absl::StatusCodeToString(static_cast<absl::StatusCode>(code));
}

const char* MethodName(Method method) {
  static constexpr std::array<const char*, kMethodCount> kNames = {
      "ListArchives", "GetArchive", "Read",          "ReadStream",
      "BatchRead",    "Scan",       "ListDocuments", "ListCaptures",
      "ListFiles",    "ReadFile",   "GetDictionary", "GetSymbolTable"};
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
  RegisterReasons(registry);
  RegisterReloads(registry);
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
                      .Help("Decoded size of answers, by encoding.")
                      .Register(registry);
  auto& wire = prometheus::BuildCounter()
                   .Name("quire_answer_wire_bytes_total")
                   .Help("Encoded size of answers, by encoding.")
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

void CallMetrics::RegisterReasons(prometheus::Registry& registry) {
  auto& errors = prometheus::BuildCounter()
                     .Name("quire_call_errors_total")
                     .Help("Calls that ended with an error, by its reason.")
                     .Register(registry);
  for (int reason = v1::ErrorReason_MIN; reason <= v1::ErrorReason_MAX;
       ++reason) {
    if (v1::ErrorReason_IsValid(reason) &&
        reason != v1::ERROR_REASON_UNSPECIFIED) {
      errors_[static_cast<size_t>(reason)] = &errors.Add(
          {{"reason",
            v1::ErrorReason_Name(static_cast<v1::ErrorReason>(reason))}});
    }
  }
}

void CallMetrics::RegisterReloads(prometheus::Registry& registry) {
  auto& reloads = prometheus::BuildCounter()
                      .Name("quire_reloads_total")
                      .Help("New and changed archives that a SIGHUP opened.")
                      .Register(registry);
  reloads_succeeded_ = &reloads.Add({{"outcome", "succeeded"}});
  reloads_failed_ = &reloads.Add({{"outcome", "failed"}});
  last_reload_succeeded_ =
      &prometheus::BuildGauge()
           .Name("quire_last_reload_succeeded")
           .Help("1 unless part of the last SIGHUP failed, or of the start.")
           .Register(registry)
           .Add({});
  last_reload_time_seconds_ =
      &prometheus::BuildGauge()
           .Name("quire_last_reload_timestamp_seconds")
           .Help("End of the last SIGHUP or of the start, since 1970.")
           .Register(registry)
           .Add({});
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

void CallMetrics::CallFailed(v1::ErrorReason reason) {
  const auto number = static_cast<size_t>(reason);
  if (number < errors_.size() && errors_[number] != nullptr) {
    errors_[number]->Increment();
  }
}

void CallMetrics::BytesSent(Method method, uint64_t size_bytes) {
  methods_[static_cast<size_t>(method)].sent_bytes->Increment(
      static_cast<double>(size_bytes));
}

void CallMetrics::BatchMessage(uint64_t item_count) {
  batch_message_items_->Observe(static_cast<double>(item_count));
}

void CallMetrics::IdentityServed(const std::string& identity,
                                 uint64_t sent_bytes) {
  MutexLock lock(&identities_mutex_);
  auto found = identities_.find(identity);
  if (found == identities_.end()) {
    found = identities_
                .try_emplace(identities_.size() < kIdentitiesMax ? identity
                                                                 : "other")
                .first;
  }
  ++found->second.call_count;
  found->second.sent_bytes += sent_bytes;
}

std::map<std::string, CallMetrics::IdentityTotals> CallMetrics::identities()
    const {
  MutexLock lock(&identities_mutex_);
  return identities_;
}

void CallMetrics::ReloadEnded(bool succeeded) {
  (succeeded ? reloads_succeeded_ : reloads_failed_)->Increment();
}

void CallMetrics::AllReloaded(absl::Time time, bool succeeded) {
  last_reload_succeeded_->Set(succeeded ? 1 : 0);
  last_reload_time_seconds_->Set(
      absl::ToDoubleSeconds(time - absl::UnixEpoch()));
}

}  // namespace quire
