// SPDX-License-Identifier: GPL-3.0-or-later
//
// Test fixture: a real archive in its own directory, a real server for it on a
// loopback port, and a stub connected to it.
#ifndef QUIRE_SERVER_SERVICE_TESTING_SERVER_FIXTURE_H_
#define QUIRE_SERVER_SERVICE_TESTING_SERVER_FIXTURE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "grpcpp/channel.h"

#include "proto/quire/v1/archive.grpc.pb.h"

#include "codecs/filter/field_value.h"
#include "codecs/filter/filter.h"
#include "server/service/server.h"
#include "testing/base/status_matchers.h"
#include "testing/base/temporary_directory.h"

namespace quire {

struct TestDocument {
  std::string id;
  std::string text;
  std::string record_type = "";
  // Unset: the size of the text in bytes, as milliseconds.
  std::optional<int64_t> capture_time_ms = {};
  // Values of ServerTest::fields_.
  std::vector<FieldValue> fields = {};
  // Of a capture with this status.
  std::string url = {};
  uint32_t status = 0;
  // If set, the text is a deposited file.
  std::string deposit_path = {};
};

// Returns `count` documents of 0 to about 40,000 bytes with ids
// "dir<k>/page<i>" and compressible text. Equal seeds give equal documents.
std::vector<TestDocument> MakeDocuments(size_t count, uint64_t seed);

// Returns empty documents with ids that an index cannot compress.
std::vector<TestDocument> DocumentsOfRandomIds(uint64_t count);

// Returns all texts concatenated: the logical space.
std::string Concatenate(const std::vector<TestDocument>& documents);

// Returns a serialised symbol table trained on the texts.
std::string TrainTable(const std::vector<TestDocument>& documents);

// Returns the body of the answer to one HTTP/1.0 GET; empty without an answer.
// `address` is IPV4:PORT.
std::string HttpGet(const std::string& address, const std::string& path);

// Returns the minimum memory of a server of the archives at `paths`, in bytes,
// rounded up to 16 KiB. If it `can_reload`, includes space for one more of the
// largest.
uint64_t LeastMemoryBytes(const std::vector<std::string>& paths,
                          bool can_reload);

class ServerTest : public ::testing::Test {
 protected:
  // Writes an archive of 16 KiB blocks at `path`, replacing an existing one.
  // Adds the serialised symbol table unless it is empty. If it `is_reordered`,
  // the text is stored in pieces of 12,000 to 40,000 bytes in reverse order.
  void WriteArchive(const std::string& path,
                    const std::vector<TestDocument>& documents,
                    const std::string& codec = "zstd",
                    const std::string& symbol_table = "",
                    bool is_reordered = false);
  // Serves the archive at "archive_path()" as "docs", and creates the stub.
  void StartServer(ServerOptions options = {});
  // The same, but opens no archive yet.
  void ListenServer(ServerOptions options = {});

  std::string archive_path() const { return directory_ / "docs.quire"; }

  const std::string& directory() const { return directory_.path(); }

  v1::Archive::Stub& stub() { return *stub_; }

  Server& server() { return *server_; }

  // Reloads with `changes_` and returns the server's messages.
  std::vector<std::string> Reload();

  // Stops the server before the test examines the results.
  void StopServer() { server_.reset(); }

  // Returns the reason among the details of a failed call.
  static std::string ReasonIn(const grpc::Status& status);

  // Fields of the documents of WriteArchive().
  std::vector<FieldColumn> fields_;

  // Initially the options that the server was started with.
  ServerChanges changes_;

 private:
  const TemporaryDirectory directory_;
  std::unique_ptr<Server> server_;
  std::unique_ptr<v1::Archive::Stub> stub_;
};

}  // namespace quire

#endif  // QUIRE_SERVER_SERVICE_TESTING_SERVER_FIXTURE_H_
