// SPDX-License-Identifier: Apache-2.0
//
// A server of archives that are held in memory, and that fails as told. For
// tests of the client only: it shares no code with the real server, so the two
// cannot be wrong in the same way.
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

namespace quire {

struct FakeDocument {
  std::string id;
  std::string text;
  std::optional<int64_t> capture_time_ms = {};
  std::optional<std::string> media_type = {};
  std::optional<std::string> record_type = {};
};

struct FakeArchive {
  std::vector<FakeDocument> documents;
  // Empty: the archive has none.
  std::string dictionary = {};
  // Whether answers can be had in FSST.
  bool has_symbol_table = false;
  // Answers can be had as blocks of this codec, coded with `dictionary`. Empty:
  // they cannot, and the dictionary's hash is made up.
  std::string codec = {};
};

// What goes wrong. Counts go down as the faults happen; -1 is for ever.
struct FakeFaults {
  // Calls (of those that read or list; not ListArchives unless `with_listing`)
  // that fail with Unavailable before their first message.
  int unavailable_calls = 0;
  bool with_listing = false;
  // Streams that break with Unavailable after `messages_before_break`.
  int broken_streams = 0;
  int messages_before_break = 1;
  // Streams that end with OK after `messages_before_break`, whatever is left.
  int early_ends = 0;
  // Payloads that are sent with a checksum that is off by one bit.
  int wrong_checksums = 0;
  // Answers whose range is one byte further on than asked.
  int wrong_ranges = 0;
  // Answers that name another document than asked.
  int wrong_documents = 0;
  // Results of a batch that carry a tag no one sent.
  int unknown_tags = 0;
  // Results of a batch that are sent twice.
  int repeated_results = 0;
  // Calls that do nothing until Release(), after so many that go on.
  int stalled_calls = 0;
  int calls_before_stall = 0;
  // Calls for text that fail with ResourceExhausted, SERVER_BUSY, and when to
  // retry.
  int busy_calls = 0;
  absl::Duration busy_retry_delay = absl::Seconds(2);
  // Symbol tables and dictionaries that are sent with another last byte.
  int wrong_tables = 0;
  // Calls for those that fail with NotFound.
  int missing_tables = 0;
  // Documents at an archive's end that lists leave out.
  size_t unlisted_documents = 0;
  // Done to answers that are encoded; their checksum is of what this leaves.
  std::function<void(v1::EncodingDetails& details, std::string& data)> spoil;
  // Done to each message of a scan.
  std::function<void(v1::ScanResponse& message)> edit_scan;
  // Done to each page of documents.
  std::function<void(v1::ListDocumentsResponse& page)> edit_list;
};

struct FakeSettings {
  // "127.0.0.1:0" takes any free port; or "unix:PATH".
  std::string listen = "127.0.0.1:0";
  // Small, so that small tests reach them.
  uint64_t read_size_bytes_max = 10000;
  uint64_t chunk_size_bytes_max = 1000;
  // What the server announces instead of the two above, though its answers are
  // as long as they say.
  std::optional<uint64_t> announced_size_bytes_max = {};
  uint64_t batch_message_items_max = 100;
  uint32_t page_size_max = 10;
  // Items of a batch that are gathered, and then answered in random order.
  // Fewer than any client keeps in flight: a server does not wait for more.
  size_t batch_window_items = 50;
  uint64_t seed = 1;
};

// Thread-safe.
class FakeServer {
 public:
  // Listens when it returns; null if the address cannot be had.
  static std::unique_ptr<FakeServer> Start(
      const FakeSettings& settings,
      const std::map<std::string, FakeArchive>& archives);

  // Cancels what runs.
  ~FakeServer();
  FakeServer(const FakeServer&) = delete;
  FakeServer& operator=(const FakeServer&) = delete;

  // For ClientOptions::address.
  const std::string& address() const { return address_; }

  void SetFaults(const FakeFaults& faults);

  // What calls find that begin from now on.
  void Reload(const std::map<std::string, FakeArchive>& archives);

  // Lets stalled calls go on, now and from now on.
  void Release();

  // Calls that arrived, by method name such as "Read".
  int CallCount(const std::string& method) const;

  // Largest number of items that one message of a batch had.
  int LargestBatchMessage() const;

  // The `traceparent` header of each call that arrived, in that order; empty
  // where there was none.
  std::vector<std::string> TraceParents() const;

 private:
  class Service;

  FakeServer();

  std::unique_ptr<Service> service_;
  std::unique_ptr<grpc::Server> server_;
  std::string address_;
};

}  // namespace quire

#endif  // QUIRE_CLIENT_QUIRE_TESTING_FAKE_SERVER_H_
