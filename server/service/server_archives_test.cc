// SPDX-License-Identifier: GPL-3.0-or-later
//
// Tests archives that are added, removed and damaged while the server runs.
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "grpcpp/client_context.h"

#include "codecs/base/mutex.h"
#include "server/service/testing/server_fixture.h"
#include "testing/base/status_matchers.h"

namespace quire {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class ServerArchivesTest : public ServerTest {
 protected:
  // Writes the archive NAME and returns the argument that serves it.
  ArchiveArgument Make(const std::string& name, uint64_t seed,
                       size_t count = 20) {
    const std::string path = absl::StrCat(directory(), "/", name, ".quire");
    WriteArchive(path, MakeDocuments(count, seed));
    return {name, path};
  }

  // The size of a file is in the manifest: reading that detects it.
  static void TruncateSegment(const ArchiveArgument& archive) {
    std::filesystem::resize_file(archive.path + "/segment-00000000", 100);
  }

  // The size stays: only opening detects it.
  static void DamageFooter(const ArchiveArgument& archive) {
    FILE* file = fopen((archive.path + "/segment-00000000").c_str(), "r+");
    ASSERT_NE(file, nullptr);
    fseek(file, -100, SEEK_END);
    const int byte = fgetc(file);
    fseek(file, -100, SEEK_END);
    fputc(byte ^ 1, file);
    fclose(file);
  }

  std::vector<std::string> Listed() {
    grpc::ClientContext context;
    v1::ListArchivesResponse response;
    EXPECT_TRUE(stub().ListArchives(&context, {}, &response).ok());
    std::vector<std::string> names;
    for (const v1::ArchiveDescription& archive : response.archives()) {
      names.push_back(archive.name());
    }
    return names;
  }

  grpc::StatusCode Read(const std::string& archive) {
    v1::ReadRequest request;
    request.set_archive(archive);
    request.mutable_document()->set_ordinal(1);
    v1::ReadResponse response;
    grpc::ClientContext context;
    return stub().Read(&context, request, &response).error_code();
  }

  std::string Metrics() {
    return HttpGet(server().metrics_address(), "/metrics");
  }

  // Returns the server's messages during its start.
  std::vector<std::string> said() ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    return said_;
  }

  ServerOptions Options(std::vector<ArchiveArgument> archives) {
    ServerOptions options;
    options.archives = std::move(archives);
    options.metrics_address = "127.0.0.1:0";
    options.log = [this](LogLevel /*level*/, const std::string& text) {
      MutexLock lock(&mutex_);
      said_.push_back(text);
    };
    return options;
  }

 private:
  Mutex mutex_;
  std::vector<std::string> said_ ABSL_GUARDED_BY(mutex_);
};

TEST_F(ServerArchivesTest, ArchivesComeAndGo) {
  const ArchiveArgument a = Make("a", 1);
  const ArchiveArgument b = Make("b", 2);
  int opened = 0;
  ServerOptions options = Options({a});
  options.before_opening = [&](const std::string& /*name*/) { ++opened; };
  StartServer(options);
  changes_.archives = {a, b};
  EXPECT_THAT(Reload(), ElementsAre("archive b: added, 20 documents",
                                    StartsWith("archive a: unchanged")));
  // Unchanged archives are neither opened nor held twice.
  EXPECT_EQ(opened, 2);
  EXPECT_THAT(Listed(), ElementsAre("a", "b"));
  EXPECT_EQ(Read("b"), grpc::StatusCode::OK);

  changes_.archives = {b};
  EXPECT_THAT(Reload(), ElementsAre(StartsWith("archive a: removed"),
                                    StartsWith("archive b: unchanged")));
  EXPECT_THAT(Listed(), ElementsAre("b"));
  EXPECT_EQ(Read("a"), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(opened, 2);
  // Another path under the same name is another archive.
  changes_.archives = {{"b", a.path}};
  EXPECT_THAT(Reload(), ElementsAre("archive b: replaced, 20 documents"));
  changes_.archives = {};
  EXPECT_THAT(Reload(), ElementsAre(StartsWith("archive b: removed")));
  EXPECT_THAT(Listed(), ElementsAre());
}

TEST_F(ServerArchivesTest, CallsGoOnWithAnArchiveThatIsRemoved) {
  const std::vector<TestDocument> documents = MakeDocuments(400, 3);
  WriteArchive(archive_path(), documents);
  StartServer();
  v1::ScanRequest request;
  request.set_archive("docs");
  grpc::ClientContext context;
  const auto reader = stub().Scan(&context, request);
  v1::ScanResponse response;
  ASSERT_TRUE(reader->Read(&response));
  std::string got = response.data();
  changes_.archives = {};
  EXPECT_THAT(Reload(), ElementsAre(HasSubstr("calls that read it continue")));
  std::filesystem::remove_all(archive_path());
  while (reader->Read(&response)) {
    got += response.data();
  }
  EXPECT_TRUE(reader->Finish().ok());
  EXPECT_TRUE(got == Concatenate(documents));
}

TEST_F(ServerArchivesTest, AStartNamesAllBrokenArchives) {
  const std::vector<ArchiveArgument> archives = {Make("a", 1), Make("b", 2),
                                                 Make("c", 3), Make("d", 4)};
  TruncateSegment(archives[0]);
  TruncateSegment(archives[2]);
  EXPECT_THAT(Server::Listen(Options(archives)),
              FailsWith(absl::StatusCode::kDataLoss,
                        ::testing::AllOf(HasSubstr("2 archives"),
                                         HasSubstr("a.quire/segment"),
                                         HasSubstr("c.quire/segment"),
                                         EndsWith("; --skip-broken serves the "
                                                  "other archives"))));
  DamageFooter(archives[1]);
  DamageFooter(archives[3]);
  ListenServer(Options({archives[1], archives[3]}));
  EXPECT_THAT(server().OpenArchives(),
              FailsWith(absl::StatusCode::kDataLoss,
                        ::testing::AllOf(HasSubstr("2 archives"),
                                         HasSubstr("b.quire/segment"),
                                         HasSubstr("d.quire/segment"),
                                         Not(HasSubstr("--skip-broken")))));
}

TEST_F(ServerArchivesTest, BrokenArchivesAreLeftOutUntilTheyAreGood) {
  const std::vector<ArchiveArgument> archives = {Make("a", 1), Make("b", 2),
                                                 Make("c", 3)};
  TruncateSegment(archives[0]);
  DamageFooter(archives[1]);
  ServerOptions options = Options(archives);
  options.skip_broken = true;
  StartServer(options);
  EXPECT_THAT(said(), Contains(StartsWith("archive a is left out: ")));
  EXPECT_THAT(said(), Contains(StartsWith("archive b is left out: ")));
  EXPECT_THAT(Metrics(), HasSubstr("quire_archives{state=\"broken\"} 2"));
  EXPECT_THAT(Metrics(), HasSubstr("quire_last_reload_succeeded 0"));
  EXPECT_THAT(Listed(), ElementsAre("c"));
  EXPECT_EQ(Read("a"), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(Read("b"), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(Read("d"), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(Read("c"), grpc::StatusCode::OK);
  EXPECT_EQ(HttpGet(server().metrics_address(), "/readyz"), "ready\n");

  Make("b", 2);
  // An archive that was good stays.
  TruncateSegment(archives[2]);
  EXPECT_THAT(Reload(), ElementsAre(StartsWith("archive a is left out: "),
                                    "archive b: added, 20 documents",
                                    StartsWith("archive c stays unchanged: ")));
  EXPECT_THAT(Metrics(), HasSubstr("quire_archives{state=\"broken\"} 1"));
  EXPECT_THAT(Metrics(), HasSubstr("quire_last_reload_succeeded 0"));
  EXPECT_EQ(Read("b"), grpc::StatusCode::OK);
  EXPECT_EQ(Read("c"), grpc::StatusCode::OK);
  Make("a", 1);
  Make("c", 3);
  Reload();
  EXPECT_THAT(Metrics(), HasSubstr("quire_last_reload_succeeded 1"));
}

TEST_F(ServerArchivesTest, AnArchiveThatAPeriodicLookOpensIsNotBroken) {
  const std::vector<ArchiveArgument> archives = {Make("a", 1), Make("b", 2)};
  TruncateSegment(archives[0]);
  ServerOptions options = Options(archives);
  options.skip_broken = true;
  StartServer(options);
  server().ReloadGrown(archives);
  EXPECT_THAT(Metrics(), HasSubstr("quire_archives{state=\"broken\"} 1"));
  Make("a", 1);
  server().ReloadGrown(archives);
  EXPECT_EQ(Read("a"), grpc::StatusCode::OK);
  EXPECT_THAT(Metrics(), HasSubstr("quire_archives{state=\"broken\"} 0"));
}

TEST_F(ServerArchivesTest, ArchivesThatAreKeptAreNotLookedAt) {
  const ArchiveArgument a = Make("a", 1);
  const ArchiveArgument b = Make("b", 2);
  StartServer(Options({a, b}));
  Make("b", 3);
  std::filesystem::remove_all(a.path);
  changes_.archives = {};
  changes_.kept_archives = {"a", "b"};
  EXPECT_THAT(Reload(), ElementsAre());
  EXPECT_THAT(Listed(), ElementsAre("a", "b"));
  EXPECT_EQ(Read("a"), grpc::StatusCode::OK);
  EXPECT_THAT(Metrics(), HasSubstr("quire_archives{state=\"broken\"} 0"));
}

TEST_F(ServerArchivesTest, ReloadsCountWhatTheyOpened) {
  const ArchiveArgument a = Make("a", 1);
  const ArchiveArgument b = Make("b", 2);
  StartServer(Options({a, b}));
  const auto counted = [](int succeeded, int failed) {
    return AllOf(
        HasSubstr(absl::StrCat("quire_reloads_total{outcome=\"succeeded\"} ",
                               succeeded, "\n")),
        HasSubstr(absl::StrCat("quire_reloads_total{outcome=\"failed\"} ",
                               failed, "\n")));
  };
  Reload();
  EXPECT_THAT(Metrics(), counted(0, 0));
  Make("b", 3);
  Reload();
  EXPECT_THAT(Metrics(), counted(1, 0));
  Make("a", 4);
  TruncateSegment(b);
  Reload();
  EXPECT_THAT(Metrics(), counted(2, 1));
}

TEST_F(ServerArchivesTest, OneArchiveMustBeGood) {
  const std::vector<ArchiveArgument> archives = {Make("a", 1), Make("b", 2)};
  ServerOptions options = Options(archives);
  options.skip_broken = true;
  DamageFooter(archives[0]);
  DamageFooter(archives[1]);
  ListenServer(options);
  EXPECT_THAT(server().OpenArchives(), HasCode(absl::StatusCode::kDataLoss));
  TruncateSegment(archives[0]);
  TruncateSegment(archives[1]);
  EXPECT_THAT(Server::Listen(options), HasCode(absl::StatusCode::kDataLoss));
}

TEST_F(ServerArchivesTest, AnArchiveThatDoesNotFitIsLeftOut) {
  const ArchiveArgument a = Make("a", 1);
  const std::vector<TestDocument> many = DocumentsOfRandomIds(30'000);
  const ArchiveArgument large = {"large", directory() + "/large.quire"};
  WriteArchive(large.path, many);
  ServerOptions options = Options({a});
  options.memory_bytes = LeastMemoryBytes({a.path}, /*can_reload=*/true);
  StartServer(options);
  changes_.archives = {a, large};
  EXPECT_THAT(Reload(), Contains(::testing::AllOf(
                            StartsWith("archive large is left out: it needs"),
                            HasSubstr("restart with more --memory"))));
  EXPECT_EQ(Read("large"), grpc::StatusCode::UNAVAILABLE);
  // A server with a directory of archives reserves memory for more.
  options = Options({a});
  options.archives_directory = directory();
  StartServer(options);
  changes_.archives = {a, large};
  EXPECT_THAT(Reload(), Contains("archive large: added, 30,000 documents"));
}

TEST_F(ServerArchivesTest, ADirectoryMayBeEmptyAtTheStart) {
  ServerOptions options = Options({});
  options.archives_directory = directory();
  QUIRE_ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Server> empty,
                             Server::Start(options));
  EXPECT_TRUE(empty->Reload({}).empty());
  const std::vector<LogLine> lines =
      empty->Reload({.archives = {Make("a", 1)}, .default_quota = {}});
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0].text, "archive a: added, 20 documents");
}

TEST_F(ServerArchivesTest, TheQuotaChanges) {
  const ArchiveArgument a = Make("a", 1);
  StartServer(Options({a}));
  EXPECT_EQ(Read("a"), grpc::StatusCode::OK);
  changes_.default_quota.calls_per_second = 1;
  Reload();
  bool is_refused = false;
  for (int i = 0; i < 1000 && !is_refused; ++i) {
    is_refused = Read("a") == grpc::StatusCode::RESOURCE_EXHAUSTED;
  }
  EXPECT_TRUE(is_refused);
  changes_.default_quota = {};
  Reload();
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(Read("a"), grpc::StatusCode::OK);
  }
}

}  // namespace
}  // namespace quire
