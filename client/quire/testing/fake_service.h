// SPDX-License-Identifier: Apache-2.0
//
// The service of FakeServer, which is what to include; internal to it.
//
// Written from the proto alone, by way of the synchronous API and with all of
// an archive's text in memory, so that it has nothing in common with the server
// but what the API says.
#ifndef QUIRE_CLIENT_QUIRE_TESTING_FAKE_SERVICE_H_
#define QUIRE_CLIENT_QUIRE_TESTING_FAKE_SERVICE_H_

#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "grpcpp/server_context.h"

#include "proto/quire/v1/archive.grpc.pb.h"

#include "client/quire/testing/fake_encodings.h"
#include "client/quire/testing/fake_server.h"
#include "codecs/base/mutex.h"

namespace quire {

// A status as the server's are: with the reason, and how long to wait where
// `retry_delay` is set, among its details. Thread-safe.
grpc::Status FakeFailure(grpc::StatusCode code, v1::ErrorReason reason,
                         const std::string& message,
                         std::optional<absl::Duration> retry_delay = {});

// Thread-safe: gRPC calls it on threads of its own, a test sets faults and asks
// for counts meanwhile. Calls that are held (FakeFaults::stalled_calls) block
// their thread until Release().
class FakeServer::Service final : public v1::Archive::Service {
 public:
  Service(FakeSettings settings,
          const std::map<std::string, FakeArchive>& archives);

  // As FakeServer's methods of these names. Archives are copied; what was
  // served before is kept, as calls may still be at it.
  void Reload(const std::map<std::string, FakeArchive>& archives);

  void SetFaults(const FakeFaults& faults);
  void Release();
  int CallCount(const std::string& method) const;
  int LargestBatchMessage() const;
  std::vector<std::string> TraceParents() const;

  // The calls, with the errors that the proto lists for each.
  grpc::Status ListArchives(grpc::ServerContext* context,
                            const v1::ListArchivesRequest* request,
                            v1::ListArchivesResponse* response) override;
  grpc::Status GetArchive(grpc::ServerContext* context,
                          const v1::GetArchiveRequest* request,
                          v1::GetArchiveResponse* response) override;
  grpc::Status Read(grpc::ServerContext* context,
                    const v1::ReadRequest* request,
                    v1::ReadResponse* response) override;
  grpc::Status ReadStream(
      grpc::ServerContext* context, const v1::ReadRequest* request,
      grpc::ServerWriter<v1::ReadStreamResponse>* writer) override;
  grpc::Status BatchRead(
      grpc::ServerContext* context,
      grpc::ServerReaderWriter<v1::BatchReadResponse, v1::BatchReadRequest>*
          stream) override;
  grpc::Status Scan(grpc::ServerContext* context,
                    const v1::ScanRequest* request,
                    grpc::ServerWriter<v1::ScanResponse>* writer) override;
  grpc::Status ListDocuments(grpc::ServerContext* context,
                             const v1::ListDocumentsRequest* request,
                             v1::ListDocumentsResponse* response) override;
  grpc::Status GetDictionary(
      grpc::ServerContext* context, const v1::GetDictionaryRequest* request,
      grpc::ServerWriter<v1::GetDictionaryResponse>* writer) override;
  grpc::Status GetSymbolTable(grpc::ServerContext* context,
                              const v1::GetSymbolTableRequest* request,
                              v1::GetSymbolTableResponse* response) override;

 private:
  // An archive as it is served.
  struct Held {
    std::string text;
    std::vector<v1::Document> documents;
    std::string dictionary;
    v1::ArchiveDescription description;
    std::unique_ptr<FakeEncodings> encodings;
  };

  using HeldArchives = std::map<std::string, Held>;
  // As requests have it.
  using Accepted = google::protobuf::RepeatedField<int>;

  // What a request asks for, or why it cannot be had.
  struct Resolved {
    grpc::Status status;
    const Held* archive = nullptr;
    v1::ByteRange range = {};
    const v1::Document* document = nullptr;
  };

  // Counts the call and does what faults say before it begins.
  grpc::Status Enter(const char* method, const grpc::ServerContext& context)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Whether this fault is due now; if so, once less from now on.
  bool Due(int FakeFaults::*fault) ABSL_LOCKS_EXCLUDED(mutex_);
  void EditScan(v1::ScanResponse& message) ABSL_LOCKS_EXCLUDED(mutex_);
  // OK to go on with a stream that has sent so many messages, or how it ends.
  enum class StreamFate { kGoOn, kBreak, kEnd };
  StreamFate FateAfter(int message_count) ABSL_LOCKS_EXCLUDED(mutex_);

  const HeldArchives& archives() const ABSL_LOCKS_EXCLUDED(mutex_);
  const Held* Find(const std::string& archive) const;

  // Sets `held` to the archive and contents that `request` names, or says why
  // they cannot be had.
  template <typename Request>
  grpc::Status FindContents(const Request& request, const Held*& held) const {
    return FindContents(
        request.archive(),
        request.has_archive_uuid() ? &request.archive_uuid() : nullptr, held);
  }

  grpc::Status FindContents(const std::string& archive, const std::string* uuid,
                            const Held*& held) const;

  // Of `request`, a ReadRequest or a BatchItem.
  template <typename Request>
  Resolved ResolveTarget(const std::string& archive, const std::string* uuid,
                         const Request& request) const {
    return Resolve(archive, uuid,
                   request.has_range() ? &request.range() : nullptr,
                   request.has_document() ? &request.document() : nullptr);
  }

  Resolved Resolve(const std::string& archive, const std::string* uuid,
                   const v1::ByteRange* range,
                   const v1::DocumentName* document) const;
  static Resolved ResolveRange(const Held& archive, const v1::ByteRange& range);
  static Resolved ResolveDocument(const Held& archive,
                                  const v1::DocumentName& name);
  // Fills in range, document, checksum and data of any kind of answer.
  template <typename Answer>
  void Fill(const Resolved& resolved, const Accepted& accepted, Answer& answer);
  v1::Limits Limits() const;
  v1::BatchResult AnswerItem(const std::string& archive,
                             const Accepted& accepted,
                             const v1::BatchItem& item);

  const FakeSettings settings_;
  // All that were ever served, as calls may still use them; the last is served.
  std::list<HeldArchives> generations_ ABSL_GUARDED_BY(mutex_);
  mutable Mutex mutex_;
  CondVar released_changed_;
  FakeFaults faults_ ABSL_GUARDED_BY(mutex_);
  bool released_ ABSL_GUARDED_BY(mutex_) = false;
  std::map<std::string, int> call_counts_ ABSL_GUARDED_BY(mutex_);
  int largest_batch_message_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<std::string> trace_parents_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace quire

#endif  // QUIRE_CLIENT_QUIRE_TESTING_FAKE_SERVICE_H_
