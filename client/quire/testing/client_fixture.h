// SPDX-License-Identifier: Apache-2.0
//
// Fixture of the client's tests: archives with known contents, a fake server
// that serves them, and a client with short delays. All texts come from fixed
// seeds, so that contents are the same in every run and on every machine.
#ifndef QUIRE_CLIENT_QUIRE_TESTING_CLIENT_FIXTURE_H_
#define QUIRE_CLIENT_QUIRE_TESTING_CLIENT_FIXTURE_H_

#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

#include "client/quire/client.h"
#include "client/quire/testing/fake_server.h"
#include "codecs/base/bytes.h"
#include "codecs/base/checksum.h"
#include "testing/base/noise.h"

namespace quire {

// Returns the name of a symbol table or dictionary with these bytes on the
// wire.
inline uint64_t HashOf(const std::string& text) {
  return Checksum64(AsBytes(text));
}

// Returns three archives. "web" has documents "doc/00" to "doc/39" of 0 to 390
// bytes, then two with the id "twice", one with a binary id, and "large" with
// 25,000 bytes. "tiny" has one document, "only". "empty" has none.
inline std::map<std::string, FakeArchive> TestArchives() {
  FakeArchive web;
  for (size_t i = 0; i < 40; ++i) {
    FakeDocument document;
    document.id = absl::StrCat("doc/", i / 10, i % 10);
    document.text = Noise(10 * i, i);
    web.documents.push_back(std::move(document));
  }
  web.documents.push_back({"twice", "first version", 1000, "text/html"});
  web.documents.push_back({"twice", "second version", 2000, "text/plain"});
  web.documents.push_back({"\x01\x1B[31m\xFF\n", "binary", {}, {}});
  web.documents.push_back({"large", Noise(25000, 99), {}, {}});
  web.dictionary = Noise(4500, 7);
  FakeArchive tiny;
  tiny.documents.push_back({"only", "the only document", {}, {}});
  return {{"web", std::move(web)}, {"tiny", std::move(tiny)}, {"empty", {}}};
}

// Returns compressible words and numbers, including bytes that are not UTF-8.
// Equal seeds give equal texts.
inline std::string WordyText(uint64_t seed, size_t size_bytes) {
  std::mt19937_64 random(seed);
  const char* const words[] = {"the ", "words of ", "document ", "a\xE9 ",
                               "wordy, "};
  std::string text;
  while (text.size() < size_bytes) {
    text += words[random() % std::size(words)];
    text += std::to_string(random() % 50);
  }
  text.resize(size_bytes);
  return text;
}

// Returns all documents concatenated: the logical space of the archive.
inline std::string WholeText(const FakeArchive& archive) {
  std::string text;
  for (const FakeDocument& document : archive.documents) {
    text += document.text;
  }
  return text;
}

// A server of TestArchives() and a client of it, both new for each test. For
// other settings call StartServer() or Connect() again, which replaces the
// server or the client. Thread-compatible; a failed start is fatal for the
// test.
class ClientFixture : public ::testing::Test {
 protected:
  // Serves `archives_` on a free port and connects to it.
  void StartServer(const FakeSettings& settings = {}) {
    server_ = FakeServer::Start(settings, archives_);
    ASSERT_NE(server_, nullptr);
    options_.address = server_->address();
    options_.retry_backoff = absl::Milliseconds(1);
    Connect();
  }

  // Makes a new client with `options_`.
  void Connect() {
    absl::StatusOr<std::unique_ptr<Client>> client = Client::Connect(options_);
    ASSERT_TRUE(client.ok()) << client.status();
    client_ = *std::move(client);
  }

  void SetUp() override { StartServer(); }

  // Appends the result of a ReadStream of "web" to `text`, including the bytes
  // before an error, and returns its status.
  absl::Status Stream(const ReadTarget& target, std::string& text) {
    return client_->ReadStream(
        "web", target, [](const v1::Document&) { return absl::OkStatus(); },
        [&](uint64_t, ByteView data) {
          text.append(AsText(data).data(), data.size());
          return absl::OkStatus();
        });
  }

  // Destroyed from the last to the first: the client before its server.
  const std::map<std::string, FakeArchive> archives_ = TestArchives();
  const std::string web_text_ = WholeText(archives_.at("web"));
  ClientOptions options_;
  std::unique_ptr<FakeServer> server_;
  std::unique_ptr<Client> client_;
};

}  // namespace quire

#endif  // QUIRE_CLIENT_QUIRE_TESTING_CLIENT_FIXTURE_H_
