// SPDX-License-Identifier: GPL-3.0-or-later
//
// Prometheus metrics of calls. All names start with quire_; METRICS.md lists
// them.
#ifndef QUIRE_SERVER_SERVICE_METRICS_CALL_METRICS_H_
#define QUIRE_SERVER_SERVICE_METRICS_CALL_METRICS_H_

#include <array>
#include <cstdint>
#include <map>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "grpcpp/support/status.h"
#include "prometheus/counter.h"
#include "prometheus/family.h"
#include "prometheus/gauge.h"
#include "prometheus/histogram.h"
#include "prometheus/registry.h"

#include "proto/quire/v1/archive.pb.h"
#include "proto/quire/v1/wire_encoding.pb.h"

#include "codecs/base/mutex.h"

namespace quire {

enum class Method {
  kListArchives,
  kGetArchive,
  kRead,
  kReadStream,
  kBatchRead,
  kScan,
  kListDocuments,
  kListCaptures,
  kListFiles,
  kReadFile,
  kGetDictionary,
  kGetSymbolTable,
};

inline constexpr size_t kMethodCount = 12;

const char* MethodName(Method method);

// The code as gRPC's tools write it, such as "DEADLINE_EXCEEDED".
std::string CodeName(int code);

// Answers, or messages of a stream.
struct AnswerTally {
  uint64_t answer_count = 0;
  // Decoded size of the answers, and size of their data as sent.
  uint64_t size_bytes = 0;
  uint64_t data_size_bytes = 0;
};

// Counters of calls. Thread-safe; recording is a few relaxed atomic adds.
class CallMetrics {
 public:
  explicit CallMetrics(prometheus::Registry& registry);

  void CallStarted(Method method);
  // `status_code` as sent; `duration` from arrival until the last byte of the
  // answer was passed to the transport.
  void CallEnded(Method method, grpc::StatusCode status_code,
                 absl::Duration duration);
  // Records why a call ended with an error.
  void CallFailed(v1::ErrorReason reason);
  // Adds decoded bytes of answers.
  void BytesSent(Method method, uint64_t size_bytes);
  void AnswersSent(v1::WireEncoding encoding, const AnswerTally& answers);
  void BatchMessage(uint64_t item_count);
  // Records the end of a call by an identity of --access. At most 1,000 have
  // their own series; later ones count as "other".
  void IdentityServed(const std::string& identity, uint64_t sent_bytes)
      ABSL_LOCKS_EXCLUDED(identities_mutex_);
  void ReloadEnded(bool succeeded);

  // Calls and decoded bytes of an identity.
  struct IdentityTotals {
    uint64_t call_count = 0;
    uint64_t sent_bytes = 0;
  };

  std::map<std::string, IdentityTotals> identities() const
      ABSL_LOCKS_EXCLUDED(identities_mutex_);

  // Records the completion of a SIGHUP at `time`, with or without errors.
  void AllReloaded(absl::Time time, bool succeeded);

 private:
  struct PerMethod {
    // By gRPC code, 0 to 16; all created at the start, since creation takes a
    // lock.
    std::array<prometheus::Counter*, 17> ended_by_code;
    prometheus::Gauge* in_flight;
    prometheus::Histogram* duration_seconds;
    prometheus::Counter* sent_bytes;
  };

  struct PerEncoding {
    prometheus::Counter* answers;
    prometheus::Counter* decoded_bytes;
    prometheus::Counter* wire_bytes;
  };

  void RegisterEncodings(prometheus::Registry& registry);
  void RegisterReasons(prometheus::Registry& registry);
  void RegisterReloads(prometheus::Registry& registry);

  mutable Mutex identities_mutex_;
  std::map<std::string, IdentityTotals> identities_
      ABSL_GUARDED_BY(identities_mutex_);
  std::array<PerMethod, kMethodCount> methods_;
  // By encoding number.
  std::array<PerEncoding, v1::WireEncoding_ARRAYSIZE> encodings_ = {};
  // By reason number.
  std::array<prometheus::Counter*, v1::ErrorReason_ARRAYSIZE> errors_ = {};
  prometheus::Histogram* batch_message_items_;
  prometheus::Counter* reloads_succeeded_;
  prometheus::Counter* reloads_failed_;
  prometheus::Gauge* last_reload_succeeded_;
  prometheus::Gauge* last_reload_time_seconds_;
};

}  // namespace quire

#endif  // QUIRE_SERVER_SERVICE_METRICS_CALL_METRICS_H_
