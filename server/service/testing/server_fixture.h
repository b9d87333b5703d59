// SPDX-License-Identifier: GPL-3.0-or-later
//
// A real archive in a directory of its own, a real server over it on a loopback
// port, and a stub that talks to it. For tests.
#ifndef QUIRE_SERVER_SERVICE_TESTING_SERVER_FIXTURE_H_
#define QUIRE_SERVER_SERVICE_TESTING_SERVER_FIXTURE_H_

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "grpcpp/channel.h"

#include "proto/quire/v1/archive.grpc.pb.h"

#include "codecs/base/status_matchers.h"
#include "server/service/server.h"

namespace quire {

struct TestDocument {
  std::string id;
  std::string text;
  std::string record_type = "";
  // Unset: as many milliseconds as the text has bytes.
  std::optional<int64_t> capture_time_ms = {};
};

// `count` documents of 0 to about 40,000 bytes with ids "dir<k>/page<i>"; the
// text is such that codecs find something to do. Equal seeds, equal documents.
std::vector<TestDocument> MakeDocuments(size_t count, uint64_t seed);

// All texts in a row: the logical space.
std::string Concatenate(const std::vector<TestDocument>& documents);

// A serialised symbol table trained on the texts.
std::string TrainTable(const std::vector<TestDocument>& documents);

// The body of the answer to one HTTP/1.0 GET, empty if no one answers.
// `address` is IPV4:PORT.
std::string HttpGet(const std::string& address, const std::string& path);

// The least that a server of the archives at `paths` needs, in bytes, rounded
// up to 16 KiB; if it `can_reload`, with space for one more of the largest.
uint64_t LeastMemoryBytes(const std::vector<std::string>& paths,
                          bool can_reload);

class ServerTest : public ::testing::Test {
 protected:
  ServerTest();
  ~ServerTest() override;

  // Writes an archive of 16 KiB blocks at `path`, replacing one that is there,
  // with a serialised symbol table unless that is empty. If it `is_reordered`,
  // the text is stored in pieces of 12,000 to 40,000 bytes, the last first.
  void WriteArchive(const std::string& path,
                    const std::vector<TestDocument>& documents,
                    const std::string& codec = "zstd",
                    const std::string& symbol_table = "",
                    bool is_reordered = false);
  // Serves the archive at "archive_path()" as "docs", and makes the stub.
  void StartServer(ServerOptions options = {});
  // The same, but opens no archive yet.
  void ListenServer(ServerOptions options = {});

  std::string archive_path() const { return directory_ + "/docs.quire"; }

  const std::string& directory() const { return directory_; }

  v1::Archive::Stub& stub() { return *stub_; }

  Server& server() { return *server_; }

  // What the server says of a reload with `changes_`.
  std::vector<std::string> Reload();

  // Stops the server before the test looks at what is left.
  void StopServer() { server_.reset(); }

  // The reason among the details of a failed call.
  static std::string ReasonIn(const grpc::Status& status);

  // At first what the server was started with.
  ServerChanges changes_;

 private:
  std::string directory_;
  std::unique_ptr<Server> server_;
  std::unique_ptr<v1::Archive::Stub> stub_;
};

}  // namespace quire

#endif  // QUIRE_SERVER_SERVICE_TESTING_SERVER_FIXTURE_H_
