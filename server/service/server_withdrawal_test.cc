// SPDX-License-Identifier: GPL-3.0-or-later
//
// Draws archives, withdrawn documents and requests at random, and compares
// every answer with a model: documents that are absent or forbidden, and a
// logical space with zeros in their place.
#include <algorithm>
#include <cstdint>
#include <fstream>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "grpcpp/client_context.h"

#include "codecs/base/bytes.h"
#include "codecs/base/checksum.h"
#include "server/service/testing/server_fixture.h"
#include "testing/base/test_level.h"

namespace quire {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;
using ::testing::Not;

struct Rule {
  bool is_prefix = false;
  std::string value;
  bool is_block = false;
};

// Documents as clients should see them.
class Model {
 public:
  Model(std::vector<TestDocument> documents, std::vector<Rule> rules)
      : documents_(std::move(documents)), rules_(std::move(rules)) {
    for (const TestDocument& document : documents_) {
      starts_.push_back(text_.size());
      text_ += ActionOf(document.id).has_value()
                   ? std::string(document.text.size(), '\0')
                   : document.text;
      has_withdrawn_ |= ActionOf(document.id).has_value();
      zeros_.insert(zeros_.end(), document.text.size(),
                    ActionOf(document.id).has_value());
    }
    while (!zeros_.empty() && !zeros_.back()) {
      zeros_.pop_back();
    }
  }

  // True: blocked; false: excluded.
  std::optional<bool> ActionOf(const std::string& id) const {
    for (const Rule& rule : rules_) {
      if (rule.is_prefix ? absl::StartsWith(id, rule.value)
                         : id == rule.value) {
        return rule.is_block;
      }
    }
    return std::nullopt;
  }

  // The ordinal of an occurrence of an id.
  std::optional<uint64_t> Find(const std::string& id,
                               uint64_t occurrence) const {
    for (uint64_t i = 0; i < documents_.size(); ++i) {
      if (documents_[i].id == id && occurrence-- == 0) {
        return i;
      }
    }
    return std::nullopt;
  }

  const std::vector<TestDocument>& documents() const { return documents_; }

  const std::string& text() const { return text_; }

  uint64_t start_of(uint64_t ordinal) const { return starts_[ordinal]; }

  bool has_withdrawn() const { return has_withdrawn_; }

  // For each byte of the text up to the last that is withdrawn: true if it is.
  const std::vector<bool>& zeros() const { return zeros_; }

 private:
  std::vector<TestDocument> documents_;
  std::vector<Rule> rules_;
  std::vector<uint64_t> starts_;
  std::string text_;
  bool has_withdrawn_ = false;
  std::vector<bool> zeros_;
};

// The expected answer to a request for a target.
struct Expected {
  grpc::StatusCode code = grpc::StatusCode::OK;
  std::string text = {};
};

class ServerWithdrawalTest : public ServerTest {
 protected:
  std::string rules_path() const { return directory() + "/withdrawn"; }

  void WriteRules(const std::vector<Rule>& rules) {
    std::ofstream out(rules_path());
    out << "# rules\n";
    for (const Rule& rule : rules) {
      out << "do?s " << (rule.is_prefix ? "prefix " : "id ") << rule.value
          << (rule.is_block ? " block\n" : " exclude\n");
    }
    out << "other prefix "
        << "d exclude\n";
  }

  template <typename Request>
  void Accept(const Model& model, Request& request) {
    request.set_archive("docs");
    // Encodings that must not be used; without withdrawn documents they would
    // have to be decoded here.
    if (model.has_withdrawn()) {
      request.add_accepted_encodings(v1::WIRE_ENCODING_STORED);
      request.add_accepted_encodings(v1::WIRE_ENCODING_FSST);
    }
  }

  // Sets a random target.
  template <typename Request>
  Expected SetTarget(const Model& model, Request& request) {
    const uint64_t size = model.text().size();
    if (Below(3) == 0) {
      const uint64_t offset = Below(size + 1);
      const uint64_t length =
          Below(std::min<uint64_t>(size - offset, 99999) + 1);
      request.mutable_range()->set_offset(offset);
      request.mutable_range()->set_size_bytes(length);
      return {.text = model.text().substr(offset, length)};
    }
    std::optional<uint64_t> ordinal = Below(model.documents().size());
    v1::DocumentName& name = *request.mutable_document();
    if (Below(2) == 0) {
      name.set_ordinal(*ordinal);
    } else {
      std::string id = model.documents()[*ordinal].id;
      if (Below(5) == 0) {
        id += "/none";
      }
      const uint64_t occurrence = Below(3);
      name.set_id(id);
      name.set_occurrence(occurrence);
      ordinal = model.Find(id, occurrence);
      const bool is_there = model.Find(id, 0).has_value();
      if (is_there && model.ActionOf(id) == true) {
        return {.code = grpc::StatusCode::PERMISSION_DENIED};
      }
    }
    if (!ordinal.has_value()) {
      return {.code = grpc::StatusCode::NOT_FOUND};
    }
    const TestDocument& document = model.documents()[*ordinal];
    const std::optional<bool> action = model.ActionOf(document.id);
    if (action.has_value()) {
      return {.code = *action ? grpc::StatusCode::PERMISSION_DENIED
                              : grpc::StatusCode::NOT_FOUND};
    }
    return {.text = document.text};
  }

  void ExpectCode(const grpc::Status& status, const Expected& expected) {
    EXPECT_EQ(status.error_code(), expected.code) << status.error_message();
    if (expected.code == grpc::StatusCode::PERMISSION_DENIED) {
      EXPECT_EQ(ReasonIn(status), "DOCUMENT_WITHDRAWN");
    }
    if (expected.code == grpc::StatusCode::NOT_FOUND) {
      EXPECT_EQ(ReasonIn(status), "DOCUMENT_NOT_FOUND");
      EXPECT_THAT(status.error_message(), Not(HasSubstr("withdrawn")));
    }
  }

  void TryRead(const Model& model) {
    v1::ReadRequest request;
    Accept(model, request);
    const Expected expected = SetTarget(model, request);
    SCOPED_TRACE(request.ShortDebugString());
    grpc::ClientContext context;
    v1::ReadResponse response;
    ExpectCode(stub().Read(&context, request, &response), expected);
    EXPECT_EQ(response.data() == expected.text, true);
    // The hash is that of the archive, not of the range; documents have none.
    EXPECT_EQ(response.has_zeros_hash(),
              request.has_range() && !model.zeros().empty());
    if (response.has_zeros_hash()) {
      const auto known =
          hashes_.try_emplace(response.zeros_hash(), model.zeros()).first;
      EXPECT_EQ(known->second == model.zeros(), true);
    }
  }

  void TryReadStream(const Model& model) {
    v1::ReadRequest request;
    Accept(model, request);
    const Expected expected = SetTarget(model, request);
    SCOPED_TRACE(request.ShortDebugString());
    grpc::ClientContext context;
    const auto stream = stub().ReadStream(&context, request);
    v1::ReadStreamResponse response;
    std::string text;
    while (stream->Read(&response)) {
      text += response.data();
    }
    ExpectCode(stream->Finish(), expected);
    EXPECT_EQ(text == expected.text, true);
  }

  void TryBatch(const Model& model) {
    v1::BatchReadRequest request;
    Accept(model, request);
    std::map<uint64_t, Expected> expected;
    for (uint64_t tag = 0; tag < 20; ++tag) {
      v1::BatchItem& item = *request.add_items();
      item.set_tag(tag);
      expected[tag] = SetTarget(model, item);
    }
    grpc::ClientContext context;
    const auto stream = stub().BatchRead(&context);
    ASSERT_TRUE(stream->Write(request));
    stream->WritesDone();
    v1::BatchReadResponse response;
    size_t count = 0;
    while (stream->Read(&response)) {
      for (const v1::BatchResult& result : response.results()) {
        ++count;
        const Expected& wanted = expected.at(result.tag());
        EXPECT_EQ(result.status().code(), static_cast<int>(wanted.code));
        EXPECT_EQ(result.data() == wanted.text, true) << result.tag();
      }
    }
    EXPECT_TRUE(stream->Finish().ok());
    EXPECT_EQ(count, expected.size());
  }

  void TryScan(const Model& model) {
    v1::ScanRequest request;
    Accept(model, request);
    uint64_t offset = 0;
    // In stored order only where nothing is withdrawn it is not logical.
    if (model.has_withdrawn() && Below(2) == 0) {
      request.set_stored_order(true);
    } else {
      offset = Below(model.text().size() + 1);
      request.set_offset(offset);
    }
    grpc::ClientContext context;
    const auto stream = stub().Scan(&context, request);
    v1::ScanResponse response;
    std::string text;
    while (stream->Read(&response)) {
      EXPECT_EQ(response.range().offset(), offset + text.size());
      EXPECT_EQ(response.places_size(), 0);
      text += response.data();
    }
    EXPECT_TRUE(stream->Finish().ok());
    EXPECT_EQ(text == model.text().substr(offset), true);
  }

  // Lists all pages: ids, with "/" added to common prefixes.
  void TryList(const Model& model) {
    v1::ListDocumentsRequest request;
    request.set_archive("docs");
    request.set_page_size(static_cast<uint32_t>(Below(9) + 1));
    const bool by_ordinal = Below(3) == 0;
    if (by_ordinal) {
      request.set_first_ordinal(Below(model.documents().size() + 1));
    } else {
      const std::string& id =
          model.documents()[Below(model.documents().size())].id;
      request.set_prefix(id.substr(0, Below(id.size() + 1)));
      if (Below(2) == 0) {
        request.set_delimiter("/");
      }
    }
    SCOPED_TRACE(request.ShortDebugString());
    std::multiset<std::string> expected;
    std::set<std::string> prefixes;
    for (uint64_t i = by_ordinal ? request.first_ordinal() : 0;
         i < model.documents().size(); ++i) {
      const std::string& id = model.documents()[i].id;
      if (model.ActionOf(id).has_value() ||
          !absl::StartsWith(id, request.prefix())) {
        continue;
      }
      const size_t end = request.has_delimiter()
                             ? id.find('/', request.prefix().size())
                             : std::string::npos;
      if (end == std::string::npos) {
        expected.insert(absl::StrCat(id, " ", i));
      } else {
        prefixes.insert(id.substr(0, end + 1));
      }
    }
    std::multiset<std::string> found;
    std::set<std::string> found_prefixes;
    do {
      grpc::ClientContext context;
      v1::ListDocumentsResponse response;
      const grpc::Status status =
          stub().ListDocuments(&context, request, &response);
      ASSERT_TRUE(status.ok()) << status.error_message();
      for (const v1::Document& document : response.documents()) {
        found.insert(absl::StrCat(document.id(), " ", document.ordinal()));
      }
      for (const std::string& prefix : response.common_prefixes()) {
        EXPECT_TRUE(found_prefixes.insert(prefix).second);
      }
      request.set_page_token(response.next_page_token());
    } while (!request.page_token().empty());
    EXPECT_EQ(found, expected);
    EXPECT_EQ(found_prefixes, prefixes);
  }

  void TryTables(const Model& model) {
    v1::GetArchiveRequest of;
    of.set_archive("docs");
    v1::GetArchiveResponse archive;
    grpc::ClientContext archive_context;
    ASSERT_TRUE(stub().GetArchive(&archive_context, of, &archive).ok());
    const Expected expected = {.code = model.has_withdrawn()
                                           ? grpc::StatusCode::PERMISSION_DENIED
                                           : grpc::StatusCode::OK};
    if (archive.archive().has_symbol_table_hash()) {
      v1::GetSymbolTableRequest request;
      request.set_hash(archive.archive().symbol_table_hash());
      v1::GetSymbolTableResponse response;
      grpc::ClientContext context;
      ExpectCode(stub().GetSymbolTable(&context, request, &response), expected);
      EXPECT_EQ(response.table().empty(), model.has_withdrawn());
    }
    if (archive.archive().has_dictionary_hash()) {
      v1::GetDictionaryRequest request;
      request.set_hash(archive.archive().dictionary_hash());
      grpc::ClientContext context;
      const auto stream = stub().GetDictionary(&context, request);
      v1::GetDictionaryResponse response;
      bool has_data = false;
      while (stream->Read(&response)) {
        has_data |= !response.data().empty();
      }
      ExpectCode(stream->Finish(), expected);
      EXPECT_EQ(has_data, !model.has_withdrawn());
    }
  }

  void TryAll(const Model& model) {
    for (int i = 0; i < 6; ++i) {
      TryRead(model);
      TryReadStream(model);
      TryScan(model);
      TryList(model);
    }
    TryBatch(model);
    TryTables(model);
  }

  std::vector<Rule> RandomRules(const std::vector<TestDocument>& documents) {
    std::vector<Rule> rules;
    for (uint64_t n = Below(5); n > 0; --n) {
      const std::string& id = documents[Below(documents.size())].id;
      const bool is_prefix = Below(2) == 0;
      rules.push_back(
          {.is_prefix = is_prefix,
           .value = is_prefix ? id.substr(0, 1 + Below(id.size())) : id,
           .is_block = Below(2) == 0});
    }
    return rules;
  }

  uint64_t Below(uint64_t limit) { return random_() % limit; }

  void Seed(uint64_t seed) { random_.seed(seed); }

 private:
  std::mt19937_64 random_;
  // Zeros that each hash stands for.
  std::map<uint64_t, std::vector<bool>> hashes_;
};

TEST_F(ServerWithdrawalTest, EveryAnswerIsThatOfTheModel) {
  std::mt19937 seeds(TestSeed());
  const char* const codecs[] = {"zstd", "rlz", "fsst", "copy"};
  for (int round = 0; round < 6; ++round) {
    const uint64_t seed = (uint64_t{seeds()} << 32) | seeds();
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    Seed(seed);
    std::vector<TestDocument> documents = MakeDocuments(60, seed);
    for (TestDocument& document : documents) {
      if (Below(4) == 0) {
        document.id = documents[Below(documents.size())].id;
      }
      if (Below(4) == 0) {
        document.text.resize(Below(200));
      }
    }
    const std::string codec = codecs[Below(4)];
    const bool has_table = codec == "fsst" || Below(2) == 0;
    WriteArchive(archive_path(), documents, codec,
                 has_table ? TrainTable(documents) : "", Below(2) == 0);
    ServerOptions options;
    options.withdrawn_path = rules_path();
    std::vector<Rule> rules = RandomRules(documents);
    WriteRules(rules);
    StartServer(options);
    TryAll(Model(documents, rules));
    for (int reload = 0; reload < 3; ++reload) {
      const bool is_malformed = Below(3) == 0;
      if (is_malformed) {
        std::ofstream(rules_path()) << "docs id malformed\n";
      } else {
        rules = RandomRules(documents);
        WriteRules(rules);
      }
      EXPECT_THAT(
          Reload(),
          Contains(is_malformed ? HasSubstr("stays unchanged: " + rules_path())
                                : HasSubstr("withdrawn documents: ")));
      TryAll(Model(documents, rules));
    }
    StopServer();
  }
}

TEST_F(ServerWithdrawalTest, RefusesToStartWithoutItsFile) {
  WriteArchive(archive_path(), MakeDocuments(3, 1));
  ServerOptions options;
  options.archives = {{"docs", archive_path()}};
  options.listen_address = "127.0.0.1:0";
  options.withdrawn_path = rules_path();
  EXPECT_THAT(Server::Start(options),
              FailsWith(absl::StatusCode::kFailedPrecondition,
                        HasSubstr(rules_path())));
}

// A replaced archive is matched before clients see it.
TEST_F(ServerWithdrawalTest, MatchesNewArchivesAndCountsTheirDocuments) {
  const std::vector<TestDocument> documents = MakeDocuments(20, 1);
  WriteArchive(archive_path(), documents);
  const std::vector<Rule> rules = {{.value = documents[3].id},
                                   {.value = documents[5].id}};
  WriteRules(rules);
  ServerOptions options;
  options.withdrawn_path = rules_path();
  options.metrics_address = "127.0.0.1:0";
  StartServer(options);
  EXPECT_THAT(HttpGet(server().metrics_address(), "/metrics"),
              HasSubstr("quire_withdrawn_documents{archive=\"docs\"} 2"));
  std::vector<TestDocument> others = MakeDocuments(20, 2);
  std::reverse(others.begin(), others.end());
  others[7].id = documents[3].id;
  WriteArchive(archive_path(), others);
  EXPECT_THAT(Reload(), AllOf(Contains(HasSubstr("replaced")),
                              Contains(HasSubstr(" by 3 rules"))));
  TryAll(Model(others, rules));
  std::ofstream(rules_path()) << "dcs id x block\ndocs id none block\n";
  EXPECT_THAT(
      Reload(),
      IsSupersetOf(std::vector<std::string>{
          "withdrawn documents: 0 documents by 2 rules",
          rules_path() + ": line 1 withdraws nothing: no archive has the "
                         "name \"dcs\"",
          rules_path() + ": line 2 withdraws nothing: no document of archive "
                         "\"docs\" matches a rule"}));
  std::ofstream(rules_path()) << "docs\n";
  Reload();
  EXPECT_THAT(HttpGet(server().metrics_address(), "/metrics"),
              HasSubstr("quire_last_reload_succeeded 0"));
}

class ServerWithdrawalDuringCallsTest : public ServerWithdrawalTest {
 protected:
  void Start(const std::vector<TestDocument>& documents) {
    WriteArchive(archive_path(), documents);
    WriteRules({});
    ServerOptions options;
    options.withdrawn_path = rules_path();
    StartServer(options);
  }

  void Withdraw(const Rule& rule) {
    WriteRules({rule});
    EXPECT_THAT(Reload(), Contains(HasSubstr(" by 2 rules")));
  }

  // Text without zeros that no buffer between server and client holds whole.
  const std::string large_ = std::string(size_t{48} << 20, 'x');
};

TEST_F(ServerWithdrawalDuringCallsTest, AStreamOfADocumentEnds) {
  Start({{.id = "other", .text = "text"}, {.id = "large", .text = large_}});
  for (const bool by_id : {true, false}) {
    const bool is_block = by_id;
    v1::ReadRequest request;
    request.set_archive("docs");
    if (by_id) {
      request.mutable_document()->set_id("large");
    } else {
      request.mutable_document()->set_ordinal(1);
    }
    grpc::ClientContext context;
    const auto stream = stub().ReadStream(&context, request);
    v1::ReadStreamResponse response;
    ASSERT_TRUE(stream->Read(&response));
    Withdraw({.value = "large", .is_block = is_block});
    std::string text = response.data();
    while (stream->Read(&response)) {
      text += response.data();
    }
    ExpectCode(stream->Finish(),
               {.code = is_block ? grpc::StatusCode::PERMISSION_DENIED
                                 : grpc::StatusCode::NOT_FOUND});
    EXPECT_LT(text.size(), large_.size());
    EXPECT_EQ(text.find('\0'), std::string::npos);
    WriteRules({});
    Reload();
  }
}

TEST_F(ServerWithdrawalDuringCallsTest, AStreamOfAnotherDocumentGoesOn) {
  Start({{.id = "other", .text = "text"}, {.id = "large", .text = large_}});
  v1::ReadRequest request;
  request.set_archive("docs");
  request.mutable_document()->set_id("large");
  grpc::ClientContext context;
  const auto stream = stub().ReadStream(&context, request);
  v1::ReadStreamResponse response;
  ASSERT_TRUE(stream->Read(&response));
  Withdraw({.value = "other"});
  std::string text = response.data();
  while (stream->Read(&response)) {
    text += response.data();
  }
  EXPECT_TRUE(stream->Finish().ok());
  EXPECT_EQ(text == large_, true);
}

// Reads the first message of a scan in stored order, or all that follow a
// token.
class ServerWithdrawalScanTest : public ServerWithdrawalDuringCallsTest {
 protected:
  grpc::Status Scan(std::string& token, std::string* text = nullptr) {
    v1::ScanRequest request;
    request.set_archive("docs");
    request.set_stored_order(true);
    const bool is_first = token.empty();
    if (!is_first) {
      request.set_resume_token(token);
    }
    grpc::ClientContext context;
    const auto stream = stub().Scan(&context, request);
    v1::ScanResponse response;
    while (stream->Read(&response)) {
      token = response.resume_token();
      if (text != nullptr) {
        *text += response.data();
      }
      if (is_first) {
        context.TryCancel();
        break;
      }
    }
    return stream->Finish();
  }
};

TEST_F(ServerWithdrawalScanTest, ResumesInTheOrderOfTheToken) {
  const std::vector<TestDocument> documents = MakeDocuments(300, 1);
  WriteArchive(archive_path(), documents, "zstd", "", /*is_reordered=*/true);
  WriteRules({});
  ServerOptions options;
  options.withdrawn_path = rules_path();
  StartServer(options);
  std::string stored_token;
  Scan(stored_token);
  ASSERT_NE(stored_token, "");
  Withdraw({.value = documents[3].id, .is_block = true});
  std::string token = stored_token;
  const grpc::Status status = Scan(token);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_EQ(ReasonIn(status), "DOCUMENT_WITHDRAWN");
  EXPECT_THAT(status.error_message(), HasSubstr("scan again"));
  // While documents are withdrawn, such a scan is in logical order.
  std::string logical_token;
  std::string text;
  Scan(logical_token, &text);
  ASSERT_NE(logical_token, "");
  WriteRules({});
  Reload();
  EXPECT_TRUE(Scan(logical_token, &text).ok());
  const Model model(documents, {{.value = documents[3].id}});
  EXPECT_EQ(text.size(), model.text().size());
  token = stored_token;
  EXPECT_TRUE(Scan(token).ok());
}

TEST_F(ServerWithdrawalDuringCallsTest, ItemsOfABatchAreRefused) {
  std::vector<TestDocument> documents;
  for (int i = 0; i < 50; ++i) {
    documents.push_back({.id = absl::StrCat(i % 2 == 0 ? "in" : "out", i),
                         .text = std::string(64 << 10, 'x')});
  }
  Start(documents);
  grpc::ClientContext context;
  const auto stream = stub().BatchRead(&context);
  constexpr uint64_t kCount = 800;
  v1::BatchReadRequest request;
  request.set_archive("docs");
  for (uint64_t tag = 0; tag < kCount; ++tag) {
    v1::BatchItem& item = *request.add_items();
    item.set_tag(tag);
    item.mutable_document()->set_id(documents[tag % documents.size()].id);
  }
  ASSERT_TRUE(stream->Write(request));
  stream->WritesDone();
  v1::BatchReadResponse response;
  ASSERT_TRUE(stream->Read(&response));
  Withdraw({.is_prefix = true, .value = "out", .is_block = true});
  uint64_t count = 0;
  uint64_t refused_count = 0;
  do {
    for (const v1::BatchResult& result : response.results()) {
      ++count;
      const std::string& id = documents[result.tag() % documents.size()].id;
      if (result.status().code() != 0) {
        ++refused_count;
        EXPECT_EQ(result.status().reason(), v1::DOCUMENT_WITHDRAWN);
        EXPECT_EQ(id[0], 'o');
        EXPECT_EQ(result.data(), "");
      } else {
        EXPECT_EQ(result.data() == documents[0].text, true) << id;
      }
    }
  } while (stream->Read(&response));
  EXPECT_TRUE(stream->Finish().ok());
  EXPECT_EQ(count, kCount);
  EXPECT_GT(refused_count, 0u);
}

// Items planned before and after a withdrawal take the same blocks in two
// forms.
TEST_F(ServerWithdrawalDuringCallsTest, ABatchOfStoredBlocksGoesOn) {
  std::vector<TestDocument> documents;
  for (int i = 0; i < 50; ++i) {
    std::string text(64 << 10, '\0');
    std::ranges::generate(
        text, [this] { return static_cast<char>('!' + Below(64)); });
    documents.push_back({.id = absl::StrCat("in", i), .text = text});
  }
  documents.push_back({.id = "out", .text = "text"});
  Start(documents);
  grpc::ClientContext context;
  const auto stream = stub().BatchRead(&context);
  constexpr uint64_t kCount = 800;
  constexpr uint64_t kLaterCount = 50;
  v1::BatchReadRequest request;
  request.set_archive("docs");
  request.add_accepted_encodings(v1::WIRE_ENCODING_STORED);
  const auto add_items = [&](uint64_t tag, uint64_t count) {
    for (; count > 0; --count, ++tag) {
      v1::BatchItem& item = *request.add_items();
      item.set_tag(tag);
      item.mutable_document()->set_ordinal(tag % 50);
    }
  };
  add_items(0, kCount);
  ASSERT_TRUE(stream->Write(request));
  v1::BatchReadResponse response;
  ASSERT_TRUE(stream->Read(&response));
  Withdraw({.value = "out", .is_block = true});
  request.Clear();
  add_items(kCount, kLaterCount);
  ASSERT_TRUE(stream->Write(request));
  stream->WritesDone();
  uint64_t count = 0;
  uint64_t later_count = 0;
  do {
    for (const v1::BatchResult& result : response.results()) {
      ++count;
      EXPECT_EQ(result.status().code(), 0);
      EXPECT_EQ(Checksum64(AsBytes(result.data())), result.checksum());
      if (result.tag() >= kCount) {
        ++later_count;
        EXPECT_EQ(result.encoding(), v1::WIRE_ENCODING_IDENTITY);
        EXPECT_TRUE(result.data() == documents[result.tag() % 50].text);
      }
    }
  } while (stream->Read(&response));
  EXPECT_TRUE(stream->Finish().ok());
  EXPECT_EQ(count, kCount + kLaterCount);
  EXPECT_EQ(later_count, kLaterCount);
}

}  // namespace
}  // namespace quire
