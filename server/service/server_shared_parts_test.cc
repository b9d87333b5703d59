// SPDX-License-Identifier: GPL-3.0-or-later
//
// Dictionaries and symbol tables that archives share, while one of the archives
// has withdrawn documents and is not open.
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "grpcpp/client_context.h"

#include "server/archive/archive.h"
#include "server/service/testing/server_fixture.h"
#include "testing/base/status_matchers.h"

namespace quire {
namespace {

namespace fs = std::filesystem;
using ::testing::Contains;
using ::testing::HasSubstr;

constexpr char kWithheld[] = "DOCUMENT_WITHDRAWN";

// "b" has the rule, "c" the same dictionary and table, "d" others.
class ServerSharedPartsTest : public ServerTest {
 protected:
  ServerSharedPartsTest() {
    Write("b", 1);
    fs::copy(PathOf("b"), PathOf("c"));
    Write("d", 2);
    SetRule("b id dir1/page1 block");
  }

  ~ServerSharedPartsTest() override { StopServer(); }

  std::string PathOf(const std::string& name) const {
    return absl::StrCat(directory(), "/", name, ".quire");
  }

  void Write(const std::string& name, uint64_t seed) {
    const std::vector<TestDocument> documents = MakeDocuments(20, seed);
    WriteArchive(PathOf(name), documents, "rlz", TrainTable(documents));
  }

  void SetRule(const std::string& rule) const {
    std::ofstream(directory() + "/withdrawn") << rule << "\n";
  }

  ServerOptions Options() const {
    ServerOptions options;
    for (const char* name : {"b", "c", "d"}) {
      options.archives.push_back({name, PathOf(name)});
    }
    options.withdrawn_path = directory() + "/withdrawn";
    options.skip_broken = true;
    return options;
  }

  // Returns the reasons for which the dictionary and the symbol table that
  // `name` has on disk are refused; "" where they are sent.
  std::vector<std::string> Reasons(const std::string& name) {
    const ArchiveInfo info = Archive::ReadOutline(PathOf(name))->info;
    std::vector<std::string> reasons;
    {
      v1::GetDictionaryRequest request;
      request.set_hash(info.dictionary_hash);
      grpc::ClientContext context;
      const auto stream = stub().GetDictionary(&context, request);
      v1::GetDictionaryResponse part;
      std::string text;
      while (stream->Read(&part)) {
        text += part.data();
      }
      const grpc::Status status = stream->Finish();
      EXPECT_EQ(text.size(), status.ok() ? info.dictionary_size_bytes : 0);
      reasons.push_back(ReasonIn(status));
    }
    v1::GetSymbolTableRequest request;
    request.set_hash(info.symbol_table_hash);
    v1::GetSymbolTableResponse response;
    grpc::ClientContext context;
    const grpc::Status status =
        stub().GetSymbolTable(&context, request, &response);
    EXPECT_EQ(response.table().empty(), !status.ok());
    reasons.push_back(ReasonIn(status));
    return reasons;
  }

  void ExpectWithheld(const std::string& name) {
    EXPECT_THAT(Reasons(name), ::testing::Each(kWithheld)) << name;
  }

  void ExpectSent(const std::string& name) {
    EXPECT_THAT(Reasons(name), ::testing::Each("")) << name;
  }

  // Archive "b" is not to be served any more; its text is still in "c".
  void ExpectWithheldWhileARuleNamesTheRemoved() {
    std::erase_if(changes_.archives,
                  [](const ArchiveArgument& one) { return one.name == "b"; });
    Reload();
    ExpectWithheld("c");
    SetRule("d id none block");
    Reload();
    ExpectSent("c");
  }

  void Flip(const std::string& path) {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(-100, std::ios::end);
    const auto place = file.tellp();
    const int byte = file.get();
    file.seekp(place);
    file.put(static_cast<char>(byte ^ 1));
  }
};

TEST_F(ServerSharedPartsTest, ABrokenArchiveWithholdsWhatItShares) {
  const std::string path = PathOf("b");
  fs::copy(path, directory() + "/good");
  const std::vector<std::function<void()>> damages = {
      // Found when it is opened.
      [&] { Flip(path + "/segment-00000000"); },
      // Found before; the manifest names its parts.
      [&] { fs::remove(path + "/segment-00000000"); },
      [&] {
        fs::remove(path + "/segment-00000000");
        const ArchiveInfo info = Archive::ReadOutline(PathOf("c"))->info;
        fs::remove(absl::StrCat(path, "/dictionary-", info.dictionary_hash));
        fs::remove(absl::StrCat(path, "/symbols-", info.symbol_table_hash));
      },
      // Only the names of files are known.
      [&] { std::ofstream(path + "/MANIFEST") << "x"; },
      [&] { fs::remove(path + "/MANIFEST"); }};
  for (size_t i = 0; i < damages.size(); ++i) {
    SCOPED_TRACE(i);
    damages[i]();
    StartServer(Options());
    ExpectWithheld("c");
    ExpectSent("d");
    // A rule of another name, and the rule again.
    SetRule("d id none block");
    Reload();
    ExpectSent("c");
    ExpectSent("d");
    SetRule("b id dir1/page1 block");
    Reload();
    ExpectWithheld("c");
    // Once it is open its documents count.
    fs::remove_all(path);
    fs::copy(directory() + "/good", path);
    EXPECT_THAT(Reload(), Contains(HasSubstr("archive b: added")));
    ExpectWithheld("c");
    SetRule("b id none block");
    Reload();
    ExpectSent("c");
    SetRule("b id dir1/page1 block");
    StopServer();
  }
}

// It has no files, or others.
TEST_F(ServerSharedPartsTest, AnUnreadableManifestWithholdsNothingElse) {
  fs::remove_all(PathOf("b"));
  fs::copy(PathOf("d"), PathOf("b"));
  std::ofstream(PathOf("b") + "/MANIFEST") << "x";
  StartServer(Options());
  ExpectSent("c");
  ExpectWithheld("d");
  StopServer();
  fs::remove_all(PathOf("b"));
  StartServer(Options());
  ExpectSent("c");
  ExpectSent("d");
  StopServer();
  fs::create_directory(PathOf("b"));
  std::ofstream(PathOf("b") + "/MANIFEST") << "x";
  StartServer(Options());
  ExpectSent("c");
  ExpectSent("d");
}

TEST_F(ServerSharedPartsTest, AnArchiveThatOpensWithholdsWhatItShares) {
  // No document has it, but that is not known yet.
  SetRule("b id none block");
  absl::Notification may_open;
  ServerOptions options = Options();
  options.before_opening = [&](const std::string& name) {
    if (name == "b") {
      may_open.WaitForNotification();
    }
  };
  ListenServer(options);
  absl::Status opened;
  std::jthread opener([&] { opened = server().OpenArchives(); });
  while (server().opening_progress().open_count < 2) {
    std::this_thread::yield();
  }
  ExpectWithheld("c");
  ExpectSent("d");
  may_open.Notify();
  opener.join();
  QUIRE_EXPECT_OK(opened);
  ExpectSent("c");
}

// The contents that cannot be opened have parts that "c" gets now.
TEST_F(ServerSharedPartsTest, NewContentsWithholdWhatTheyShare) {
  StartServer(Options());
  ExpectWithheld("c");
  Write("b", 3);
  Write("c", 3);
  Flip(PathOf("b") + "/segment-00000000");
  EXPECT_THAT(Reload(), Contains(HasSubstr("archive b stays unchanged")));
  ExpectWithheld("c");
  ExpectSent("d");
  ExpectWithheldWhileARuleNamesTheRemoved();
}

TEST_F(ServerSharedPartsTest, FormerContentsWithholdWhatTheyShared) {
  for (const bool is_listed : {false, true}) {
    SCOPED_TRACE(is_listed);
    fs::remove_all(PathOf("b"));
    fs::copy(PathOf("c"), PathOf("b"));
    SetRule("b id dir1/page1 block");
    ServerOptions options = Options();
    options.archives[0].is_listed = is_listed;
    options.archives_list = "list";
    StartServer(options);
    // Other contents, without the document.
    WriteArchive(PathOf("b"), {{.id = "x", .text = "y"}}, "zstd");
    Reload();
    if (is_listed) {
      v1::ReadRequest request;
      request.set_archive("b");
      request.mutable_document()->set_id("x");
      v1::ReadResponse response;
      grpc::Status status;
      do {
        grpc::ClientContext context;
        status = stub().Read(&context, request, &response);
      } while (status.error_code() == grpc::StatusCode::UNAVAILABLE);
      EXPECT_EQ(response.data(), "y");
    }
    ExpectWithheld("c");
    ExpectSent("d");
    ExpectWithheldWhileARuleNamesTheRemoved();
    StopServer();
  }
}

TEST_F(ServerSharedPartsTest, AListedArchiveThatWasNeverReadWithholds) {
  for (const bool has_names : {true, false}) {
    ServerOptions options = Options();
    options.archives[0].is_listed = true;
    options.archives_list = "list";
    std::ofstream(PathOf("b") + "/MANIFEST") << "x";
    if (!has_names) {
      for (const auto& file : fs::directory_iterator(PathOf("b"))) {
        fs::remove(file);
      }
    }
    StartServer(options);
    has_names ? ExpectWithheld("c") : ExpectSent("c");
    ExpectSent("d");
    StopServer();
  }
}

}  // namespace
}  // namespace quire
