// SPDX-License-Identifier: Apache-2.0
//
// A server of archives in memory, with faults on request. For tests of the
// client only: it shares no code with the real server, so that the two cannot
// have the same bugs.
#ifndef QUIRE_CLIENT_QUIRE_TESTING_FAKE_SERVER_H_
#define QUIRE_CLIENT_QUIRE_TESTING_FAKE_SERVER_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "grpcpp/server.h"

#include "proto/quire/v1/archive.pb.h"

#include "codecs/filter/field_value.h"
#include "codecs/filter/filter.h"

namespace quire {

struct FakeDocument {
  std::string id;
  std::string text;
  std::optional<int64_t> capture_time_ms = {};
  std::optional<std::string> media_type = {};
  std::optional<std::string> record_type = {};
  // Lists omit it, reads of it are refused, and its text is zeros.
  bool is_withdrawn = false;
  // Removed from the archive: listed without its id, as of type "withdrawn".
  bool is_redacted = false;
  // Values of FakeArchive::fields; missing ones are null.
  std::vector<FieldValue> fields = {};
};

struct FakeArchive {
  std::vector<FakeDocument> documents;
  // Empty: the archive has none.
  std::string dictionary = {};
  // True if answers are available in FSST.
  bool has_symbol_table = false;
  // Codec of the blocks in which answers are available, coded with
  // `dictionary`. Empty: they are not available, and the dictionary's hash is
  // made up.
  std::string codec = {};
  std::vector<FieldColumn> fields = {};
};

// Faults to produce. Counts decrease as the faults happen; -1 means always.
struct FakeFaults {
  // Calls that fail with Unavailable before their first message: those that
  // read or list, ListArchives only with `with_listing`.
  int unavailable_calls = 0;
  bool with_listing = false;
  // Calls that fail as those that gRPC resets by its flow control.
  int reset_calls = 0;
  // Streams that break with Unavailable after `messages_before_break`.
  int broken_streams = 0;
  int messages_before_break = 1;
  // Streams that end early with OK after `messages_before_break`.
  int early_ends = 0;
  // Scans with a resume token that fail, as documents were withdrawn.
  int refused_resumes = 0;
  // Payloads with a checksum that is wrong by one bit.
  int wrong_checksums = 0;
  // Answers whose range starts one byte too late.
  int wrong_ranges = 0;
  // Answers that name another document than the requested one.
  int wrong_documents = 0;
  // Results of a batch with an unknown tag.
  int unknown_tags = 0;
  // Results of a batch that are sent twice.
  int repeated_results = 0;
  // Calls that wait for Release(), after `calls_before_stall` normal ones.
  int stalled_calls = 0;
  int calls_before_stall = 0;
  // Calls for text that fail with ResourceExhausted, SERVER_BUSY, and their
  // retry delay.
  int busy_calls = 0;
  absl::Duration busy_retry_delay = absl::Seconds(2);
  // Calls of any kind that fail with ResourceExhausted, QUOTA_EXCEEDED, or with
  // Unavailable, ARCHIVE_OPENING, and their retry delay.
  int over_quota_calls = 0;
  int opening_calls = 0;
  absl::Duration told_delay = absl::Milliseconds(1);
  // Symbol tables and dictionaries whose last byte is changed.
  int wrong_tables = 0;
  // Calls for symbol tables and dictionaries that fail with NotFound.
  int missing_tables = 0;
  // Calls for them that fail because documents were withdrawn.
  int withheld_tables = 0;
  // Documents at an archive's end that lists omit.
  size_t unlisted_documents = 0;
  // Changes encoded answers; their checksum is that of the result.
  std::function<void(v1::EncodingDetails& details, std::string& data)> spoil;
  // Changes each message of a scan.
  std::function<void(v1::ScanResponse& message)> edit_scan;
  // Done to each page of documents.
  std::function<void(v1::ListDocumentsResponse& page)> edit_list;
  // Answers ListCaptures, with the page's uuid set; null: the server does not
  // know that call.
  std::function<grpc::Status(const v1::ListCapturesRequest& request,
                             v1::ListCapturesResponse& page)>
      list_captures;
  // Lists and describes as a server that does not know fields and filters.
  bool knows_no_fields = false;
};

struct FakeSettings {
  // "127.0.0.1:0" means any free port; or "unix:PATH".
  std::string listen = "127.0.0.1:0";
  // Small, so that small tests reach the limits.
  uint64_t read_size_bytes_max = 10000;
  uint64_t chunk_size_bytes_max = 1000;
  // Announced instead of the two above, which still limit the answers.
  std::optional<uint64_t> announced_size_bytes_max = {};
  uint64_t batch_message_items_max = 100;
  uint32_t page_size_max = 10;
  // Items of a batch that are collected and then answered in random order. Less
  // than any client keeps in flight, since a server does not wait for more.
  size_t batch_window_items = 50;
  uint64_t seed = 1;
};

// Thread-safe.
class FakeServer {
 public:
  // Listens when it returns; null if the address is not available.
  static std::unique_ptr<FakeServer> Start(
      const FakeSettings& settings,
      const std::map<std::string, FakeArchive>& archives);

  // Cancels running calls.
  ~FakeServer();
  FakeServer(const FakeServer&) = delete;
  FakeServer& operator=(const FakeServer&) = delete;

  // For ClientOptions::address.
  const std::string& address() const { return address_; }

  void SetFaults(const FakeFaults& faults);

  // Replaces the archives for calls that begin from now on.
  void Reload(const std::map<std::string, FakeArchive>& archives);

  // Resumes stalled calls, now and from now on.
  void Release();

  // Number of received calls, by method name such as "Read".
  int CallCount(const std::string& method) const;

  // Largest number of items in one message of a batch.
  int LargestBatchMessage() const;

  // The `traceparent` header of each received call, in order; empty if a call
  // had none.
  std::vector<std::string> TraceParents() const;

  // The `quire-attempt` header of each received call, after the method's name:
  // "Read 1"; only the name if a call had none. In order.
  std::vector<std::string> Attempts() const;

  // The `quire-archive` header of each received call, after the method's name:
  // "Read web"; only the name if a call had none. In order.
  std::vector<std::string> ArchiveHeaders() const;

 private:
  class Service;

  FakeServer();

  std::unique_ptr<Service> service_;
  std::unique_ptr<grpc::Server> server_;
  std::string address_;
};

}  // namespace quire

#endif  // QUIRE_CLIENT_QUIRE_TESTING_FAKE_SERVER_H_
