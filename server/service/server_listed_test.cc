// SPDX-License-Identifier: GPL-3.0-or-later
//
// A server whose archives are opened on first use, as clients see it.
#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "grpcpp/client_context.h"

#include "proto/error_details.h"

#include "codecs/base/byte_size.h"
#include "codecs/base/bytes.h"
#include "codecs/base/mutex.h"
#include "server/archive/archive.h"
#include "server/archive/format/segment_format.h"
#include "server/service/limits/memory_plan.h"
#include "server/service/security/access_rules.h"
#include "server/service/testing/server_fixture.h"
#include "testing/base/status_matchers.h"
#include "testing/base/temporary_directory.h"

namespace quire {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

class ServerListedTest : public ServerTest {
 protected:
  // Before the lines that it writes.
  ~ServerListedTest() override { StopServer(); }

  std::string PathOf(const std::string& name) const {
    return absl::StrCat(directory(), "/", name, ".quire");
  }

  // Writes archives "a", "b" and "c" of different texts.
  void WriteAll() {
    for (const char* name : {"a", "b", "c"}) {
      documents_.push_back(MakeDocuments(30, static_cast<uint64_t>(name[0])));
      WriteArchive(PathOf(name), documents_.back(), "rlz",
                   TrainTable(documents_.back()));
    }
  }

  static ArchiveArgument Listed(const std::string& name,
                                const std::string& path) {
    return {.name = name, .path = path, .is_listed = true};
  }

  // Serves all, with the memory of one of them unless there is a limit.
  void Start(ServerOptions options = {}) {
    ListedNeed need = {.count = 3};
    for (const char* name : {"a", "b", "c"}) {
      options.archives.push_back(Listed(name, PathOf(name)));
      QUIRE_ASSERT_OK_AND_ASSIGN(const ArchiveOutline outline,
                                 Archive::ReadOutline(PathOf(name)));
      need.sum_bytes += outline.memory_bytes;
      if (outline.memory_bytes > need.largest.memory_bytes) {
        need.largest = {name, outline.memory_bytes};
      }
    }
    if (!options.memory_bytes.has_value()) {
      uint64_t memory_bytes = 64 * kMiB;
      while (!PlanMemory(memory_bytes, {}, false, 0, 0, need).ok()) {
        memory_bytes += 16 * kKiB;
      }
      options.memory_bytes = memory_bytes;
    }
    options.archives_list = "list";
    options.metrics_address = "127.0.0.1:0";
    options.before_opening = [this](const std::string& name) {
      MutexLock lock(&mutex_);
      opened_.push_back(name);
    };
    options.log = [this](LogLevel, const std::string& line) {
      MutexLock lock(&mutex_);
      lines_.push_back(line);
    };
    StartServer(options);
  }

  grpc::Status Read(const std::string& archive,
                    const std::string& authorization = "") {
    v1::ReadRequest request;
    request.set_archive(archive);
    request.mutable_document()->set_ordinal(1);
    v1::ReadResponse response;
    grpc::ClientContext context;
    if (!authorization.empty()) {
      context.AddMetadata("authorization", authorization);
    }
    const grpc::Status status = stub().Read(&context, request, &response);
    if (status.ok()) {
      EXPECT_EQ(response.data(),
                documents_[static_cast<size_t>(archive[0] - 'a')][1].text);
    }
    return status;
  }

  // Reads again until the archive is open.
  void Await(const std::string& archive) {
    grpc::Status status = Read(archive);
    while (status.error_code() == grpc::StatusCode::UNAVAILABLE) {
      EXPECT_EQ(ReasonIn(status), "ARCHIVE_OPENING");
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      status = Read(archive);
    }
    EXPECT_TRUE(status.ok()) << status.error_message();
  }

  std::vector<v1::ArchiveDescription> List() {
    grpc::ClientContext context;
    v1::ListArchivesResponse response;
    EXPECT_TRUE(stub().ListArchives(&context, {}, &response).ok());
    return {response.archives().begin(), response.archives().end()};
  }

  std::vector<v1::ArchiveState> States() {
    std::vector<v1::ArchiveState> states;
    for (const v1::ArchiveDescription& archive : List()) {
      states.push_back(archive.state());
    }
    return states;
  }

  std::vector<std::string> opened() {
    MutexLock lock(&mutex_);
    return opened_;
  }

  // Returns the lines of the log that begin with `prefix`.
  std::vector<std::string> said(absl::string_view prefix) {
    MutexLock lock(&mutex_);
    std::vector<std::string> lines;
    for (const std::string& line : lines_) {
      if (absl::StartsWith(line, prefix)) {
        lines.push_back(line);
      }
    }
    return lines;
  }

  std::string Metrics() {
    return HttpGet(server().metrics_address(), "/metrics");
  }

  std::vector<std::vector<TestDocument>> documents_;
  Mutex mutex_;
  std::vector<std::string> opened_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::string> lines_ ABSL_GUARDED_BY(mutex_);
};

TEST_F(ServerListedTest, ArchivesAreOpenedOnFirstUse) {
  WriteAll();
  Start();
  // They do not hold the server back.
  EXPECT_EQ(HttpGet(server().metrics_address(), "/readyz"), "ready\n");
  EXPECT_THAT(opened(), ElementsAre());
  EXPECT_THAT(States(),
              ElementsAre(v1::ARCHIVE_STATE_CLOSED, v1::ARCHIVE_STATE_CLOSED,
                          v1::ARCHIVE_STATE_CLOSED));
  EXPECT_EQ(server().opening_progress().archive_count, 0u);
  EXPECT_THAT(server().Description(),
              HasSubstr("3 archives of list: opened on first use"));
  EXPECT_THAT(Metrics(), AllOf(HasSubstr("quire_archives{state=\"closed\"} 3"),
                               HasSubstr("quire_archives{state=\"open\"} 0"),
                               HasSubstr("quire_listed_archives 3"),
                               HasSubstr("quire_listed_archives_open 0")));
  const v1::ArchiveDescription before = List()[1];
  EXPECT_EQ(before.document_count(), 30u);

  // A full description has the history, for which it must be open.
  v1::GetArchiveRequest get;
  get.set_archive("b");
  v1::GetArchiveResponse got;
  grpc::ClientContext get_context;
  EXPECT_EQ(ReasonIn(stub().GetArchive(&get_context, get, &got)),
            "ARCHIVE_OPENING");
  Await("b");
  grpc::ClientContext again_context;
  EXPECT_TRUE(stub().GetArchive(&again_context, get, &got).ok());
  EXPECT_EQ(got.archive().state(), v1::ARCHIVE_STATE_OPEN);
  EXPECT_THAT(opened(), ElementsAre("b"));
  Await("c");

  const grpc::Status first = Read("b");
  EXPECT_EQ(first.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(ReasonIn(first), "ARCHIVE_OPENING");
  EXPECT_TRUE(
      ParseErrorDetails(first.error_details())->retry_delay.has_value());
  Await("b");
  EXPECT_THAT(opened(), ElementsAre("b", "c", "b"));
  v1::ArchiveDescription after = List()[1];
  EXPECT_EQ(after.state(), v1::ARCHIVE_STATE_OPEN);
  after.set_state(before.state());
  EXPECT_EQ(after.SerializeAsString(), before.SerializeAsString());

  // There is memory for one.
  Await("c");
  EXPECT_THAT(States(),
              ElementsAre(v1::ARCHIVE_STATE_CLOSED, v1::ARCHIVE_STATE_CLOSED,
                          v1::ARCHIVE_STATE_OPEN));
  Await("b");
  EXPECT_THAT(opened(), ElementsAre("b", "c", "b", "c", "b"));
  // An opening counts a moment after the archive can be read.
  const absl::Time give_up = absl::Now() + absl::Seconds(60);
  while (!absl::StrContains(Metrics(), "{outcome=\"good\"} 5") &&
         absl::Now() < give_up) {
    absl::SleepFor(absl::Milliseconds(1));
  }
  EXPECT_THAT(
      Metrics(),
      AllOf(
          HasSubstr("quire_listed_archives_open 1"),
          HasSubstr("quire_listed_archive_openings_total{outcome=\"good\"} 5"),
          HasSubstr(
              "quire_listed_archive_openings_total{outcome=\"failed\"} 0"),
          HasSubstr("quire_listed_archive_closings_total 4")));
  // Traffic is that of all openings. A third call: the last may still count.
  Await("b");
  EXPECT_THAT(Metrics(), ::testing::ContainsRegex(
                             "quire_archive_calls_total.archive=\"b\". [2-9]"));
  EXPECT_EQ(Read("d").error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_THAT(Read("d").error_message(), HasSubstr("a, b, c"));
}

TEST_F(ServerListedTest, TablesOfAClosedArchiveLetItBeOpened) {
  WriteAll();
  Start();
  const v1::ArchiveDescription archive = List()[0];
  v1::GetSymbolTableRequest table;
  table.set_hash(archive.symbol_table_hash());
  v1::GetSymbolTableResponse table_response;
  v1::GetDictionaryRequest dictionary;
  dictionary.set_hash(archive.dictionary_hash());
  v1::GetDictionaryResponse part;
  {
    grpc::ClientContext context;
    const auto reader = stub().GetDictionary(&context, dictionary);
    EXPECT_FALSE(reader->Read(&part));
    EXPECT_EQ(ReasonIn(reader->Finish()), "ARCHIVE_OPENING");
  }
  while (States()[0] != v1::ARCHIVE_STATE_OPEN) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  {
    grpc::ClientContext context;
    const auto reader = stub().GetDictionary(&context, dictionary);
    EXPECT_TRUE(reader->Read(&part));
    EXPECT_TRUE(reader->Finish().ok());
  }
  Await("b");
  grpc::Status status;
  do {
    grpc::ClientContext context;
    status = stub().GetSymbolTable(&context, table, &table_response);
    EXPECT_TRUE(status.ok() || ReasonIn(status) == "ARCHIVE_OPENING");
  } while (!status.ok());
  EXPECT_FALSE(table_response.table().empty());
}

// A client without the right to an archive can neither see nor open it.
TEST_F(ServerListedTest, RightsHoldForClosedArchives) {
  WriteAll();
  const auto line = [](const std::string& id, const std::string& settings) {
    const Sha256 digest = Sha256Of("secret-of-" + id);
    return absl::StrCat(
        "token ", id, " sha256=",
        absl::BytesToHexString(
            {reinterpret_cast<const char*>(digest.data()), digest.size()}),
        " ", settings, "\n");
  };
  std::ofstream(directory() + "/access")
      << line("reader", "archives=b rights=list,read")
      << line("lister", "archives=* rights=list");
  ServerOptions options;
  options.access_path = directory() + "/access";
  Start(options);
  const std::string reader = "Bearer reader.secret-of-reader";
  EXPECT_EQ(Read("a", reader).error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(Read("a", reader).error_message(), "no archive \"a\" here, but b");
  EXPECT_EQ(ReasonIn(Read("a", "Bearer lister.secret-of-lister")),
            "READ_NOT_PERMITTED");
  EXPECT_EQ(ReasonIn(Read("b", reader)), "ARCHIVE_OPENING");
  while (!Read("b", reader).ok()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_THAT(opened(), ElementsAre("b"));
}

TEST_F(ServerListedTest, WithdrawalsHoldAfterEveryOpening) {
  WriteAll();
  // A copy of "a", with the same dictionary.
  std::filesystem::copy(PathOf("a"), PathOf("copy"));
  std::ofstream(directory() + "/withdrawn")
      << "a id " << documents_[0][1].id << " block\n";
  ServerOptions options;
  options.withdrawn_path = directory() + "/withdrawn";
  options.archives = {{"copy", PathOf("copy")}};
  options.memory_bytes = 2 * kGiB;
  Start(options);
  // Before "a" was opened, the copy must not give its dictionary away.
  const std::string hash = List()[0].dictionary_hash();
  const auto get_dictionary = [&] {
    v1::GetDictionaryRequest request;
    request.set_hash(hash);
    grpc::ClientContext context;
    const auto reader = stub().GetDictionary(&context, request);
    v1::GetDictionaryResponse part;
    while (reader->Read(&part)) {
    }
    return reader->Finish();
  };
  EXPECT_EQ(ReasonIn(get_dictionary()), "DOCUMENT_WITHDRAWN");
  while (ReasonIn(Read("a")) == "ARCHIVE_OPENING") {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_EQ(ReasonIn(Read("a")), "DOCUMENT_WITHDRAWN");
  EXPECT_EQ(ReasonIn(get_dictionary()), "DOCUMENT_WITHDRAWN");
  // The rules are read again.
  std::ofstream(directory() + "/withdrawn") << "# none\n";
  Reload();
  EXPECT_TRUE(get_dictionary().ok());
  Await("a");
}

TEST_F(ServerListedTest, ABrokenArchiveOfTheListIsTriedAgain) {
  WriteAll();
  std::filesystem::rename(PathOf("b"), directory() + "/away");
  ServerOptions options;
  for (const char* name : {"a", "b"}) {
    options.archives.push_back(Listed(name, PathOf(name)));
  }
  options.archives_list = "list";
  std::vector<std::string> lines;
  options.log = [&](LogLevel, const std::string& line) {
    lines.push_back(line);
  };
  const std::vector<absl::Status> faults = Server::Check(options);
  ASSERT_EQ(faults.size(), 1u);
  EXPECT_THAT(std::string(faults[0].message()),
              AllOf(HasSubstr(PathOf("b")), HasSubstr("--skip-broken")));
  // Nothing is tried again by a server that does not start.
  EXPECT_TRUE(lines.empty());
  options.skip_broken = true;
  EXPECT_TRUE(Server::Check(options).empty());
  EXPECT_THAT(lines, ElementsAre(HasSubstr("archive b cannot be opened now")));
  options.log = DropLogLine;
  StartServer(options);
  EXPECT_EQ(ReasonIn(Read("b")), "ARCHIVE_OPENING");
  grpc::Status status = Read("b");
  while (!absl::StrContains(status.error_message(), "could not be opened")) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    status = Read("b");
  }
  EXPECT_EQ(ReasonIn(status), "ARCHIVE_BROKEN");
  EXPECT_THAT(status.error_message(), Not(HasSubstr(directory())));
  EXPECT_TRUE(
      ParseErrorDetails(status.error_details())->retry_delay.has_value());
  Await("a");
  std::filesystem::rename(directory() + "/away", PathOf("b"));
  Reload();
  Await("b");
}

// No client is sent to a server that is not ready: the probes ask.
TEST_F(ServerListedTest, AServerThatCanReadNoArchiveIsNotReady) {
  WriteAll();
  Start();
  const auto probe = [this] {
    return HttpGet(server().metrics_address(), "/readyz");
  };
  // No call has asked for an archive.
  EXPECT_EQ(probe(), "ready\n");
  for (const char* name : {"a", "b", "c"}) {
    std::filesystem::rename(PathOf(name), PathOf(name) + "-away");
  }
  while (ReasonIn(Read("a")) != "ARCHIVE_BROKEN") {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_THAT(probe(), HasSubstr("none can be"));
  while (said("archive c cannot be opened").empty()) {
    EXPECT_THAT(probe(), HasSubstr("none can be"));
  }
  std::filesystem::rename(PathOf("b") + "-away", PathOf("b"));
  while (probe() != "ready\n") {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  Await("b");
}

// Flips a byte of the document ids.
void DamageIds(const std::string& archive) {
  const std::string path = archive + "/segment-00000000";
  std::string file = ReadTestFile(path);
  const ByteView bytes = AsBytes(file);
  const auto footer = ParseSegmentFooter(
      bytes.last(SegmentFooterSizeBytes(bytes.last(kTrailerSizeBytes)).value()),
      file.size(), 0);
  QUIRE_ASSERT_OK(footer);
  file[footer->Find(SectionType::kDocumentIds)->offset] ^= 1;
  WriteTestFile(path, file);
}

// It opens, but nothing finds the documents that are to be withdrawn.
TEST_F(ServerListedTest, AnArchiveThatCannotBePublishedIsTriedAgainLater) {
  WriteAll();
  DamageIds(PathOf("b"));
  std::ofstream(directory() + "/withdrawn") << "b id x block\n";
  ServerOptions options;
  options.withdrawn_path = directory() + "/withdrawn";
  options.skip_broken = true;
  Start(options);
  std::vector<std::string> failures;
  while (failures.size() < 2) {
    EXPECT_THAT(ReasonIn(Read("b")),
                AnyOf("ARCHIVE_OPENING", "ARCHIVE_BROKEN"));
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    failures = said("archive b cannot be opened");
  }
  EXPECT_THAT(failures, ElementsAre(HasSubstr("tried again on use after 1s"),
                                    HasSubstr("tried again on use after 2s")));
}

TEST_F(ServerListedTest, EachMustFitAlone) {
  WriteAll();
  ServerOptions options;
  options.archives = {Listed("a", PathOf("a"))};
  options.archives_list = "list";
  options.memory_bytes = 100 * kMiB;
  while (PlanMemory(*options.memory_bytes, {}).ok()) {
    *options.memory_bytes -= 4 * kKiB;
  }
  *options.memory_bytes += 4 * kKiB;
  const std::vector<absl::Status> faults = Server::Check(options);
  ASSERT_EQ(faults.size(), 1u);
  EXPECT_THAT(std::string(faults[0].message()),
              HasSubstr("the largest of --archives-list, a "));
}

// Calls that read an archive keep it while others are opened in its place.
TEST_F(ServerListedTest, AStreamOutlivesTheClosingOfItsArchive) {
  WriteAll();
  Start();
  Await("a");
  const std::string text = Concatenate(documents_[0]);
  v1::BatchReadRequest request;
  request.set_archive("a");
  request.add_items()->mutable_range()->set_size_bytes(text.size());
  grpc::ClientContext context;
  const auto stream = stub().BatchRead(&context);
  ASSERT_TRUE(stream->Write(request));
  v1::BatchReadResponse response;
  ASSERT_TRUE(stream->Read(&response));
  EXPECT_EQ(response.results(0).data(), text);
  // An idle stream does not keep the archive open. Its next item fails, and
  // lets the archive be opened again.
  Await("b");
  EXPECT_EQ(States()[0], v1::ARCHIVE_STATE_CLOSED);
  ASSERT_TRUE(stream->Write(request));
  EXPECT_FALSE(stream->Read(&response));
  EXPECT_EQ(ReasonIn(stream->Finish()), "ARCHIVE_OPENING");
  Await("a");
}

TEST_F(ServerListedTest, ShutdownEndsOpenings) {
  WriteAll();
  Start();
  EXPECT_EQ(ReasonIn(Read("a")), "ARCHIVE_OPENING");
  EXPECT_EQ(ReasonIn(Read("b")), "ARCHIVE_OPENING");
  server().Shutdown(absl::Seconds(30));
  StopServer();
}

}  // namespace
}  // namespace quire
