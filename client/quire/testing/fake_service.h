// SPDX-License-Identifier: Apache-2.0
//
// The service of FakeServer, internal to it: include fake_server.h.
//
// Written from the proto alone, with the synchronous API and all text of an
// archive in memory, so that it shares only the API with the real server.
#ifndef QUIRE_CLIENT_QUIRE_TESTING_FAKE_SERVICE_H_
#define QUIRE_CLIENT_QUIRE_TESTING_FAKE_SERVICE_H_

#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>
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

// Returns a status like the server's: an ErrorInfo with `reason`, as the client
// parses it, and a RetryInfo if `retry_delay` is set. `message` is for people
// and may be any text. REQUIRES: `code` is not OK. Thread-safe.
grpc::Status FakeFailure(grpc::StatusCode code, v1::ErrorReason reason,
                         const std::string& message,
                         std::optional<absl::Duration> retry_delay = {});

// Thread-safe: gRPC calls it on its own threads while a test sets faults and
// reads counts. Calls that stall (FakeFaults::stalled_calls) block their thread
// until Release(), so call that before the server shuts down. It must outlive
// the grpc::Server that it is registered with; FakeServer owns both.
class FakeServer::Service final : public v1::Archive::Service {
 public:
  // The first generation of archives, by name; they are copied.
  Service(FakeSettings settings,
          const std::map<std::string, FakeArchive>& archives);

  // As FakeServer's methods of these names. Archives are copied; replaced ones
  // are kept, since running calls may use them.
  void Reload(const std::map<std::string, FakeArchive>& archives);

  // Replaces all faults that are still due. Calls that run see the new ones.
  void SetFaults(const FakeFaults& faults);
  void Release();
  int CallCount(const std::string& method) const;
  int LargestBatchMessage() const;
  std::vector<std::string> TraceParents() const;
  std::vector<std::string> ArchiveHeaders() const;
  std::vector<std::string> Attempts() const;

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
  grpc::Status ListCaptures(grpc::ServerContext* context,
                            const v1::ListCapturesRequest* request,
                            v1::ListCapturesResponse* response) override;
  grpc::Status GetDictionary(
      grpc::ServerContext* context, const v1::GetDictionaryRequest* request,
      grpc::ServerWriter<v1::GetDictionaryResponse>* writer) override;
  grpc::Status GetSymbolTable(grpc::ServerContext* context,
                              const v1::GetSymbolTableRequest* request,
                              v1::GetSymbolTableResponse* response) override;

 private:
  // An archive in its served form.
  struct Held {
    std::string text;
    std::vector<v1::Document> documents;
    // All fields of each document.
    std::vector<std::vector<v1::FieldValue>> fields;
    // Ordinals of the withdrawn ones.
    std::set<uint64_t> withdrawn;
    std::string dictionary;
    v1::ArchiveDescription description;
    std::unique_ptr<FakeEncodings> encodings;
  };

  using HeldArchives = std::map<std::string, Held>;
  // Type of the field in requests.
  using Accepted = google::protobuf::RepeatedField<int>;

  // Target of a request, or the reason why it is not available.
  struct Resolved {
    grpc::Status status;
    const Held* archive = nullptr;
    v1::ByteRange range = {};
    const v1::Document* document = nullptr;
  };

  // Reduces a page to the documents that match the filter, and adds fields.
  grpc::Status ApplyFields(const v1::ListDocumentsRequest& request,
                           const Held& held,
                           v1::ListDocumentsResponse& response) const;
  // Returns the refusal with a retry delay that is due, or OK.
  grpc::Status RefusalAsTold() ABSL_LOCKS_EXCLUDED(mutex_);
  // Counts the call and produces faults that precede it.
  grpc::Status Enter(const char* method, const grpc::ServerContext& context)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // True if this fault is due now; then decreases its count.
  bool Due(int FakeFaults::*fault) ABSL_LOCKS_EXCLUDED(mutex_);
  void EditScan(v1::ScanResponse& message) ABSL_LOCKS_EXCLUDED(mutex_);
  // Decides how a stream continues after this many messages.
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

  // Resolves the target of `request`, a ReadRequest or a BatchItem.
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
  // Sets range, document, checksum and data of any kind of answer.
  template <typename Answer>
  void Fill(const Resolved& resolved, const Accepted& accepted, Answer& answer);
  v1::Limits Limits() const;
  v1::BatchResult AnswerItem(const std::string& archive,
                             const Accepted& accepted,
                             const v1::BatchItem& item);

  const FakeSettings settings_;
  // All archives so far, since running calls may use them; the last is served.
  std::list<HeldArchives> generations_ ABSL_GUARDED_BY(mutex_);
  mutable Mutex mutex_;
  CondVar released_changed_;
  FakeFaults faults_ ABSL_GUARDED_BY(mutex_);
  bool released_ ABSL_GUARDED_BY(mutex_) = false;
  std::map<std::string, int> call_counts_ ABSL_GUARDED_BY(mutex_);
  int largest_batch_message_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<std::string> trace_parents_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::string> archive_headers_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::string> attempts_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace quire

#endif  // QUIRE_CLIENT_QUIRE_TESTING_FAKE_SERVICE_H_
