// SPDX-License-Identifier: GPL-3.0-or-later
//
// Tests access rights: every method of the service, by each kind of client, on
// archives that it may read, may only list, may not see, and that do not exist.
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "grpcpp/client_context.h"
#include "grpcpp/completion_queue.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/security/credentials.h"

#include "proto/error_details.h"

#include "server/service/security/access_rules.h"
#include "server/service/testing/server_fixture.h"

namespace quire {
namespace {

using ::testing::HasSubstr;

constexpr char kOpen[] = "docs";
constexpr char kOther[] = "private";
constexpr char kAbsent[] = "absent";

// Right that a method requires.
enum class MethodRule {
  // Answers every client; shows the archives that it may list.
  kLists,
  // The right to list or to read the archive.
  kDescribes,
  // The right to read it. A client that may only list it gets
  // PERMISSION_DENIED.
  kReads,
  // The right to read an archive that has the hash; otherwise NOT_FOUND.
  kReadsByHash,
};

// A new method must be added here.
const std::map<std::string, MethodRule> kRules = {
    {"ListArchives", MethodRule::kLists},
    {"GetArchive", MethodRule::kDescribes},
    {"Read", MethodRule::kReads},
    {"ReadStream", MethodRule::kReads},
    {"BatchRead", MethodRule::kReads},
    {"Scan", MethodRule::kReads},
    {"ListDocuments", MethodRule::kReads},
    {"ListCaptures", MethodRule::kReads},
    {"ListFiles", MethodRule::kReads},
    {"ReadFile", MethodRule::kReads},
    {"GetDictionary", MethodRule::kReadsByHash},
    {"GetSymbolTable", MethodRule::kReadsByHash}};

struct Client {
  std::string name;
  // Empty: none.
  std::string authorization;
  bool is_known = true;
  // Names of archives.
  std::set<std::string> lists = {};
  std::set<std::string> reads = {};
};

struct Outcome {
  grpc::Status status;
  std::string answer;
};

std::string Line(const std::string& id, const std::string& settings) {
  const Sha256 digest = Sha256Of("secret-of-" + id);
  return absl::StrCat(
      "token ", id, " sha256=",
      absl::BytesToHexString(
          {reinterpret_cast<const char*>(digest.data()), digest.size()}),
      " ", settings, "\n");
}

std::string HeaderOf(const std::string& id) {
  return absl::StrCat("Bearer ", id, ".secret-of-", id);
}

class ServerAccessTest : public ServerTest {
 protected:
  // So that there are an index of captures and a deposited file.
  static void MakeCapture(TestDocument& document) {
    document.url = "http://example.com/";
    document.text += "not less than the range of a request";
    document.deposit_path = "crawl.warc";
  }

  void Start(const std::string& rules, ServerOptions options = {}) {
    WriteRules(rules);
    auto documents = MakeDocuments(40, 1);
    auto others = MakeDocuments(40, 2);
    MakeCapture(documents[0]);
    MakeCapture(others[0]);
    WriteArchive(archive_path(), documents, "rlz", TrainTable(documents));
    WriteArchive(directory() + "/private.quire", others, "rlz",
                 TrainTable(others));
    options.archives = {{kOpen, archive_path()},
                        {kOther, directory() + "/private.quire"}};
    options.access_path = directory() + "/access";
    StartServer(options);
    channel_ = grpc::CreateChannel(server().address(),
                                   grpc::InsecureChannelCredentials());
    // On this connection an answer leaves the server only when it is read.
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    arguments.SetInt(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, 1000);
    arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
    arguments.SetMaxReceiveMessageSize(64 << 20);
    narrow_channel_ = grpc::CreateCustomChannel(
        server().address(), grpc::InsecureChannelCredentials(), arguments);
  }

  void WriteRules(const std::string& rules) {
    std::ofstream(directory() + "/access") << rules;
  }

  // Calls any method with a serialised request. `once_begun` is called when the
  // server has begun its first message, which is not read before.
  Outcome Call(const std::string& method, const std::string& authorization,
               const std::string& request,
               const std::function<void()>& once_begun = nullptr) {
    grpc::GenericStub stub(once_begun ? narrow_channel_ : channel_);
    grpc::CompletionQueue queue;
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() +
                         std::chrono::minutes(5));
    if (!authorization.empty()) {
      context.AddMetadata("authorization", authorization);
    }
    const auto next = [&queue] {
      void* tag = nullptr;
      bool ok = false;
      return queue.Next(&tag, &ok) && ok;
    };
    auto call = stub.PrepareCall(
        &context, absl::StrCat("/quire.v1.Archive/", method), &queue);
    call->StartCall(nullptr);
    next();
    grpc::Slice slice(request);
    call->WriteLast(grpc::ByteBuffer(&slice, 1), {}, nullptr);
    next();
    if (once_begun) {
      call->ReadInitialMetadata(nullptr);
      next();
      once_begun();
    }
    Outcome outcome;
    for (;;) {
      grpc::ByteBuffer message;
      call->Read(&message, nullptr);
      if (!next()) {
        break;
      }
      std::vector<grpc::Slice> slices;
      EXPECT_TRUE(message.Dump(&slices).ok());
      for (const grpc::Slice& piece : slices) {
        outcome.answer.append(reinterpret_cast<const char*>(piece.begin()),
                              piece.size());
      }
    }
    call->Finish(&outcome.status, nullptr);
    next();
    queue.Shutdown();
    return outcome;
  }

  // Returns a request for more than one message of the method.
  std::string LongRequestFor(const std::string& method) {
    constexpr uint64_t kSizeBytes = 300'000;
    if (method == "Scan") {
      v1::ScanRequest request;
      request.set_archive(kOpen);
      request.set_size_bytes(kSizeBytes);
      return request.SerializeAsString();
    }
    if (method == "GetDictionary") {
      v1::GetDictionaryRequest request;
      request.set_hash(descriptions_[kOpen].dictionary_hash());
      return request.SerializeAsString();
    }
    if (method == "BatchRead") {
      v1::BatchReadRequest request;
      request.set_archive(kOpen);
      request.add_items()->mutable_range()->set_size_bytes(kSizeBytes);
      return request.SerializeAsString();
    }
    v1::ReadRequest request;
    request.set_archive(kOpen);
    request.mutable_range()->set_size_bytes(kSizeBytes);
    return request.SerializeAsString();
  }

  void LearnDescriptions(const std::string& authorization) {
    v1::ListArchivesResponse all;
    ASSERT_TRUE(
        all.ParseFromString(Call("ListArchives", authorization, "").answer));
    for (const v1::ArchiveDescription& archive : all.archives()) {
      descriptions_[archive.name()] = archive;
    }
  }

  // Returns a request of that method for that archive.
  std::string RequestFor(const google::protobuf::MethodDescriptor& method,
                         const std::string& archive) {
    std::unique_ptr<google::protobuf::Message> request(
        google::protobuf::MessageFactory::generated_factory()
            ->GetPrototype(method.input_type())
            ->New());
    const google::protobuf::Reflection& reflection = *request->GetReflection();
    if (const auto* field = method.input_type()->FindFieldByName("archive")) {
      reflection.SetString(request.get(), field, archive);
    }
    if (const auto* field = method.input_type()->FindFieldByName("hash")) {
      const v1::ArchiveDescription& described = descriptions_[archive];
      reflection.SetString(request.get(), field,
                           archive == kAbsent ? "0123456789abcdef"
                           : method.name() == "GetDictionary"
                               ? described.dictionary_hash()
                               : described.symbol_table_hash());
    }
    if (const auto* field = method.input_type()->FindFieldByName("url")) {
      reflection.SetString(request.get(), field, "example.com");
    }
    if (const auto* field = method.input_type()->FindFieldByName("path")) {
      reflection.SetString(request.get(), field, "crawl.warc");
    }
    if (const auto* field = method.input_type()->FindFieldByName("range")) {
      auto* range = static_cast<v1::ByteRange*>(
          reflection.MutableMessage(request.get(), field));
      range->set_size_bytes(10);
    }
    if (const auto* field = method.input_type()->FindFieldByName("items")) {
      static_cast<v1::BatchItem*>(reflection.AddMessage(request.get(), field))
          ->mutable_range()
          ->set_size_bytes(10);
    }
    return request->SerializeAsString();
  }

  static grpc::StatusCode Expected(MethodRule rule, const Client& client,
                                   const std::string& archive) {
    const bool lists = client.lists.contains(archive);
    const bool reads = client.reads.contains(archive);
    if (!client.is_known) {
      return grpc::StatusCode::UNAUTHENTICATED;
    }
    if (rule == MethodRule::kLists || reads ||
        (rule == MethodRule::kDescribes && lists)) {
      return grpc::StatusCode::OK;
    }
    return rule == MethodRule::kReads && lists
               ? grpc::StatusCode::PERMISSION_DENIED
               : grpc::StatusCode::NOT_FOUND;
  }

  std::map<std::string, v1::ArchiveDescription> descriptions_;
  std::shared_ptr<grpc::Channel> channel_;
  std::shared_ptr<grpc::Channel> narrow_channel_;
};

// A client may take NOT_FOUND for a deletion.
TEST_F(ServerAccessTest, ABrokenArchiveIsUnavailableToThoseWithARight) {
  const std::string segment = directory() + "/private.quire/segment-00000000";
  ServerOptions options;
  options.skip_broken = true;
  options.before_opening = [&](const std::string& name) {
    if (name == kOther) {
      std::filesystem::resize_file(segment, 100);
    }
  };
  ASSERT_NO_FATAL_FAILURE(
      Start(absl::StrCat(Line("all", "archives=* rights=list,read"),
                         Line("lister", "archives=* rights=list"),
                         Line("stranger", "archives=web-* rights=list,read")),
            options));
  const google::protobuf::ServiceDescriptor& service =
      *v1::ArchiveDescription::descriptor()->file()->FindServiceByName(
          "Archive");
  for (int i = 0; i < service.method_count(); ++i) {
    const google::protobuf::MethodDescriptor& method = *service.method(i);
    if (method.input_type()->FindFieldByName("archive") == nullptr) {
      continue;
    }
    SCOPED_TRACE(method.name());
    const auto call = [&](const char* client, const char* archive) {
      return Call(method.name(), HeaderOf(client), RequestFor(method, archive))
          .status;
    };
    const grpc::Status broken = call("all", kOther);
    EXPECT_EQ(broken.error_code(), grpc::StatusCode::UNAVAILABLE);
    EXPECT_EQ(ReasonIn(broken), "ARCHIVE_BROKEN");
    EXPECT_THAT(broken.error_message(), ::testing::Not(HasSubstr(directory())));
    const auto details = ParseErrorDetails(broken.error_details());
    ASSERT_TRUE(details.has_value() && details->retry_delay.has_value());
    EXPECT_EQ(*details->retry_delay, kBrokenRetryDelay);
    EXPECT_EQ(ReasonIn(call("lister", kOther)), method.name() == "GetArchive"
                                                    ? "ARCHIVE_BROKEN"
                                                    : "READ_NOT_PERMITTED");
    EXPECT_EQ(ReasonIn(call("stranger", kOther)), "ARCHIVE_NOT_FOUND");
    EXPECT_EQ(call("all", kOpen).error_code(), grpc::StatusCode::OK);
  }
}

constexpr const char* kStreams[] = {"Scan", "ReadStream", "BatchRead",
                                    "GetDictionary"};

std::set<std::string> NamesIn(const std::string& answer) {
  v1::ListArchivesResponse response;
  EXPECT_TRUE(response.ParseFromString(answer));
  std::set<std::string> names;
  for (const v1::ArchiveDescription& archive : response.archives()) {
    names.insert(archive.name());
  }
  return names;
}

TEST_F(ServerAccessTest, EveryMethodAsksWhoCalls) {
  ASSERT_NO_FATAL_FAILURE(Start(absl::StrCat(
      Line("all", "archives=* rights=list,read"),
      Line("reader", "archives=docs rights=list,read"),
      Line("lister", "archives=doc? rights=list"),
      Line("blind", "archives=docs rights=read"),
      Line("stranger", "archives=web-* rights=list,read"),
      Line("old", "archives=* rights=list,read expires=2020-01-01"))));
  const std::vector<Client> clients = {
      {"nobody", "", false},
      {"unknown", HeaderOf("unknown"), false},
      {"guesses", "Bearer all.secret-of-reader", false},
      {"malformed", "Bearer all", false},
      {"expired", HeaderOf("old"), false},
      {"all", HeaderOf("all"), true, {kOpen, kOther}, {kOpen, kOther}},
      {"reader", HeaderOf("reader"), true, {kOpen}, {kOpen}},
      {"lister", HeaderOf("lister"), true, {kOpen}, {}},
      {"blind", HeaderOf("blind"), true, {}, {kOpen}},
      {"stranger", HeaderOf("stranger"), true, {}, {}}};
  const google::protobuf::ServiceDescriptor& service =
      *v1::ArchiveDescription::descriptor()->file()->FindServiceByName(
          "Archive");
  {
    v1::ListArchivesResponse all;
    ASSERT_TRUE(
        all.ParseFromString(Call("ListArchives", HeaderOf("all"), "").answer));
    for (const v1::ArchiveDescription& archive : all.archives()) {
      descriptions_[archive.name()] = archive;
    }
    ASSERT_EQ(descriptions_.size(), 2U);
    ASSERT_NE(descriptions_[kOpen].dictionary_hash(),
              descriptions_[kOther].dictionary_hash());
    ASSERT_NE(descriptions_[kOpen].symbol_table_hash(),
              descriptions_[kOther].symbol_table_hash());
  }
  for (int i = 0; i < service.method_count(); ++i) {
    const google::protobuf::MethodDescriptor& method = *service.method(i);
    const auto rule = kRules.find(method.name());
    ASSERT_NE(rule, kRules.end())
        << method.name() << " has no rule of who may call it";
    for (const Client& client : clients) {
      std::map<std::string, Outcome> outcomes;
      for (const char* archive : {kOpen, kOther, kAbsent}) {
        SCOPED_TRACE(
            absl::StrCat(method.name(), " by ", client.name, " on ", archive));
        outcomes[archive] = Call(method.name(), client.authorization,
                                 RequestFor(method, archive));
        const Outcome& outcome = outcomes[archive];
        EXPECT_EQ(outcome.status.error_code(),
                  Expected(rule->second, client, archive))
            << outcome.status.error_message();
        if (!outcome.status.ok()) {
          EXPECT_EQ(outcome.answer, "");
        } else if (rule->second == MethodRule::kLists) {
          EXPECT_EQ(NamesIn(outcome.answer), client.lists);
        } else {
          EXPECT_NE(outcome.answer, "");
        }
      }
      // Only the name in the request distinguishes a hidden archive from a
      // missing one.
      if (client.is_known && !client.lists.contains(kOther)) {
        const auto told = [&](const char* archive) {
          return absl::StrReplaceAll(outcomes[archive].status.error_message(),
                                     {{archive, "NAME"}});
        };
        EXPECT_EQ(told(kOther), told(kAbsent));
        EXPECT_EQ(ReasonIn(outcomes[kOther].status),
                  ReasonIn(outcomes[kAbsent].status));
      }
    }
  }
}

TEST_F(ServerAccessTest, AChangeOfRulesReachesOpenStreams) {
  const std::string reader = Line("reader", "archives=docs rights=list,read");
  ASSERT_NO_FATAL_FAILURE(Start(reader));
  const std::pair<std::string, grpc::StatusCode> changes[] = {
      {"", grpc::StatusCode::UNAUTHENTICATED},
      {Line("reader", "archives=docs rights=list"),
       grpc::StatusCode::PERMISSION_DENIED},
      {Line("reader", "archives=private rights=list,read"),
       grpc::StatusCode::NOT_FOUND},
      {reader + Line("second", "archives=* rights=read"),
       grpc::StatusCode::OK}};
  for (const auto& [rules, code] : changes) {
    SCOPED_TRACE(rules);
    WriteRules(reader);
    Reload();
    grpc::ClientContext context;
    context.AddMetadata("authorization", HeaderOf("reader"));
    auto stream = stub().BatchRead(&context);
    v1::BatchReadRequest request;
    request.set_archive(kOpen);
    request.add_items()->mutable_range()->set_size_bytes(10);
    ASSERT_TRUE(stream->Write(request));
    v1::BatchReadResponse response;
    ASSERT_TRUE(stream->Read(&response));
    WriteRules(rules);
    EXPECT_THAT(Reload(), ::testing::Contains(HasSubstr("access: ")));
    stream->Write(request);
    EXPECT_EQ(stream->Read(&response), code == grpc::StatusCode::OK);
    stream->WritesDone();
    EXPECT_EQ(stream->Finish().error_code(), code);
  }
}

// Nothing more is requested or sent after the message in flight.
TEST_F(ServerAccessTest, RulesAreCheckedAfterTheLastMessageOfAStream) {
  const std::string reader = Line("reader", "archives=docs rights=list,read");
  ASSERT_NO_FATAL_FAILURE(Start(reader));
  ASSERT_NO_FATAL_FAILURE(LearnDescriptions(HeaderOf("reader")));
  const std::pair<std::string, grpc::StatusCode> changes[] = {
      {"", grpc::StatusCode::UNAUTHENTICATED},
      {Line("reader",
            "archives=docs rights=list,read expires=2001-01-01T00:00:00Z"),
       grpc::StatusCode::UNAUTHENTICATED},
      {Line("reader", "archives=docs rights=list"),
       grpc::StatusCode::PERMISSION_DENIED},
      {reader, grpc::StatusCode::OK}};
  for (const std::string method : kStreams) {
    for (const auto& change : changes) {
      SCOPED_TRACE(method + ": " + change.first);
      WriteRules(reader);
      Reload();
      const Outcome outcome =
          Call(method, HeaderOf("reader"), LongRequestFor(method), [&] {
            WriteRules(change.first);
            Reload();
          });
      EXPECT_EQ(outcome.status.error_code(), change.second)
          << outcome.status.error_message();
      EXPECT_GE(outcome.answer.size(), 100'000u);
    }
  }
}

TEST_F(ServerAccessTest, AQuotaIsCheckedAfterTheLastMessageOfAStream) {
  std::string rules = Line("all", "archives=* rights=list,read");
  for (const std::string id : kStreams) {
    rules += Line(id, "archives=* rights=list,read bytes=1");
  }
  ASSERT_NO_FATAL_FAILURE(Start(rules));
  ASSERT_NO_FATAL_FAILURE(LearnDescriptions(HeaderOf("all")));
  for (const std::string method : kStreams) {
    SCOPED_TRACE(method);
    const Outcome outcome =
        Call(method, HeaderOf(method), LongRequestFor(method));
    EXPECT_EQ(ReasonIn(outcome.status), "QUOTA_EXCEEDED");
    EXPECT_GE(outcome.answer.size(), 100'000u);
  }
}

// Rules that set the expiry, and rules that do so while the stream is open.
TEST_F(ServerAccessTest, AnIdentityThatExpiresEndsItsStreams) {
  const std::string reader = Line("reader", "archives=docs rights=read");
  ASSERT_NO_FATAL_FAILURE(Start(reader));
  v1::BatchReadRequest request;
  request.set_archive(kOpen);
  request.add_items()->mutable_range()->set_size_bytes(10);
  v1::BatchReadResponse response;
  for (const bool is_set_before : {true, false}) {
    SCOPED_TRACE(is_set_before);
    bool was_tested = false;
    // Repeat until the last message before the expiry is answered: a busy
    // machine may be slow.
    for (absl::Duration life = absl::Seconds(2); !was_tested; life *= 2) {
      ASSERT_LT(life, absl::Minutes(2));
      absl::Time expiry;
      const auto limit = [&] {
        expiry = absl::Now() + life;
        WriteRules(
            Line("reader",
                 absl::StrCat("archives=docs rights=read expires=",
                              absl::FormatTime("%E4Y-%m-%dT%H:%M:%SZ", expiry,
                                               absl::UTCTimeZone()))));
        Reload();
      };
      if (is_set_before) {
        limit();
      } else {
        WriteRules(reader);
        Reload();
      }
      grpc::ClientContext context;
      context.AddMetadata("authorization", HeaderOf("reader"));
      auto stream = stub().BatchRead(&context);
      stream->Write(request);
      was_tested = stream->Read(&response);
      if (!is_set_before) {
        ASSERT_TRUE(was_tested);
        limit();
        stream->Write(request);
        was_tested = stream->Read(&response);
      }
      if (was_tested) {
        absl::SleepFor(expiry - absl::Now());
        stream->Write(request);
        EXPECT_FALSE(stream->Read(&response));
      }
      stream->WritesDone();
      const grpc::Status status = stream->Finish();
      EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAUTHENTICATED);
      EXPECT_EQ(ReasonIn(status), "CREDENTIALS_REJECTED");
    }
  }
}

// Opening archives may take minutes: a removed token must not be valid until
// the last of them is open.
TEST_F(ServerAccessTest, NewRulesHoldWhileArchivesAreOpened) {
  const std::string reader = Line("reader", "archives=* rights=list,read");
  std::vector<grpc::Status> outcomes;
  ServerOptions options;
  options.before_opening = [&](const std::string& name) {
    if (name == "new") {
      outcomes.push_back(Call("ListArchives", HeaderOf("reader"), "").status);
      outcomes.push_back(Call("ListArchives", HeaderOf("second"), "").status);
    }
  };
  ASSERT_NO_FATAL_FAILURE(Start(reader, options));
  const std::string path = directory() + "/new.quire";
  WriteArchive(path, MakeDocuments(5, 3));
  changes_.archives.push_back({"new", path});
  WriteRules(Line("second", "archives=* rights=list,read"));
  EXPECT_THAT(Reload(), ::testing::Contains(HasSubstr("archive new: added")));
  ASSERT_EQ(outcomes.size(), 2u);
  EXPECT_EQ(outcomes[0].error_code(), grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_TRUE(outcomes[1].ok());
}

TEST_F(ServerAccessTest, MalformedRulesChangeNothing) {
  ASSERT_NO_FATAL_FAILURE(Start(Line("reader", "archives=docs rights=read")));
  WriteRules("token reader");
  EXPECT_THAT(Reload(), ::testing::Contains(
                            HasSubstr("access stays unchanged: " + directory() +
                                      "/access: line 1: has no archives=")));
  EXPECT_TRUE(Call("ListArchives", HeaderOf("reader"), "").status.ok());
}

TEST_F(ServerAccessTest, AQuotaIsOfAnIdentity) {
  ASSERT_NO_FATAL_FAILURE(
      Start(absl::StrCat(Line("a", "archives=* rights=list,read streams=1"),
                         Line("b", "archives=* rights=list,read streams=1"))));
  const auto begin = [this](grpc::ClientContext& context,
                            const std::string& id) {
    context.AddMetadata("authorization", HeaderOf(id));
    return stub().BatchRead(&context);
  };
  v1::BatchReadRequest request;
  request.set_archive(kOpen);
  request.add_items()->mutable_range()->set_size_bytes(10);
  v1::BatchReadResponse response;
  grpc::ClientContext first_context;
  auto first = begin(first_context, "a");
  ASSERT_TRUE(first->Write(request));
  ASSERT_TRUE(first->Read(&response));
  grpc::ClientContext second_context;
  auto second = begin(second_context, "a");
  EXPECT_FALSE(second->Read(&response));
  const grpc::Status refused = second->Finish();
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(ReasonIn(refused), "QUOTA_EXCEEDED");
  EXPECT_TRUE(
      ParseErrorDetails(refused.error_details())->retry_delay.has_value());
  // From the same address, and another client.
  grpc::ClientContext other_context;
  auto other = begin(other_context, "b");
  ASSERT_TRUE(other->Write(request));
  EXPECT_TRUE(other->Read(&response));
  for (auto* stream : {&first, &other}) {
    (*stream)->WritesDone();
    EXPECT_TRUE((*stream)->Finish().ok());
  }
}

TEST_F(ServerAccessTest, EveryMethodAsksForTheQuota) {
  // One byte per second: a client that has read once owes for hours.
  ASSERT_NO_FATAL_FAILURE(
      Start(absl::StrCat(Line("a", "archives=* rights=list,read bytes=1"),
                         Line("b", "archives=* rights=list,read"))));
  ASSERT_NO_FATAL_FAILURE(LearnDescriptions(HeaderOf("b")));
  const google::protobuf::ServiceDescriptor& service =
      *v1::ArchiveDescription::descriptor()->file()->FindServiceByName(
          "Archive");
  v1::ReadRequest read;
  read.set_archive(kOpen);
  read.mutable_range()->set_size_bytes(100'000);
  EXPECT_TRUE(
      Call("Read", HeaderOf("a"), read.SerializeAsString()).status.ok());
  for (int i = 0; i < service.method_count(); ++i) {
    const google::protobuf::MethodDescriptor& method = *service.method(i);
    SCOPED_TRACE(method.name());
    const std::string request = RequestFor(method, kOpen);
    const Outcome refused = Call(method.name(), HeaderOf("a"), request);
    EXPECT_EQ(ReasonIn(refused.status), "QUOTA_EXCEEDED");
    EXPECT_EQ(refused.answer, "");
    EXPECT_TRUE(Call(method.name(), HeaderOf("b"), request).status.ok());
  }
}

TEST_F(ServerAccessTest, TwoTokensAreNone) {
  ASSERT_NO_FATAL_FAILURE(Start(Line("reader", "archives=docs rights=read")));
  grpc::ClientContext context;
  context.AddMetadata("authorization", HeaderOf("reader"));
  context.AddMetadata("authorization", HeaderOf("reader"));
  v1::ListArchivesResponse response;
  const grpc::Status status = stub().ListArchives(&context, {}, &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_EQ(ReasonIn(status), "CREDENTIALS_REJECTED");
}

}  // namespace
}  // namespace quire
