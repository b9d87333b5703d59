// SPDX-License-Identifier: GPL-3.0-or-later
//
// Draws archives, withdrawn documents and requests at random, and compares
// every answer with a model: documents that are absent or forbidden, and a
// logical space with zeros in their place.
#include <algorithm>
#include <cstdint>
#include <fstream>
#include <functional>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "grpcpp/client_context.h"

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
  // The text of the filter if there is one.
  std::string value = {};
  bool is_block = false;
  // The same as a filter, if it is one.
  std::function<bool(const TestDocument& document, uint64_t ordinal)> where =
      nullptr;
  // The filter is a short form.
  bool is_short = false;
};

// Documents as clients should see them.
class Model {
 public:
  Model(std::vector<TestDocument> documents, std::vector<Rule> rules)
      : documents_(std::move(documents)), rules_(std::move(rules)) {
    for (uint64_t i = 0; i < documents_.size(); ++i) {
      const TestDocument& document = documents_[i];
      const Rule* rule = nullptr;
      for (const Rule& candidate : rules_) {
        if (rule == nullptr && Matches(candidate, document, i)) {
          rule = &candidate;
        }
      }
      deciding_.push_back(rule);
      has_selected_ |= rule != nullptr && rule->where != nullptr;
      starts_.push_back(text_.size());
      text_ += rule != nullptr ? std::string(document.text.size(), '\0')
                               : document.text;
      has_withdrawn_ |= rule != nullptr;
      zeros_.insert(zeros_.end(), document.text.size(), rule != nullptr);
    }
    while (!zeros_.empty() && !zeros_.back()) {
      zeros_.pop_back();
    }
  }

  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;

  // True: blocked; false: excluded.
  std::optional<bool> ActionOf(uint64_t ordinal) const {
    return deciding_[ordinal] == nullptr
               ? std::nullopt
               : std::optional(deciding_[ordinal]->is_block);
  }

  // The same for a missing document of an id.
  std::optional<bool> ActionOfId(const std::string& id) const {
    for (const Rule& rule : rules_) {
      if (rule.where == nullptr && Matches(rule, {.id = id, .text = ""}, 0)) {
        return rule.is_block;
      }
    }
    return std::nullopt;
  }

  // The newest document of the id up to the time; without time the newest. The
  // oldest, if all are later. Those that are withdrawn only if
  // `with_withdrawn`.
  std::optional<uint64_t> FindNewest(const std::string& id,
                                     std::optional<int64_t> at_ms,
                                     bool with_withdrawn) const {
    // True if in time; distance in time; ordinal.
    std::optional<std::tuple<bool, int64_t, uint64_t>> best;
    for (uint64_t i = 0; i < documents_.size(); ++i) {
      if (documents_[i].id != id ||
          (!with_withdrawn && deciding_[i] != nullptr)) {
        continue;
      }
      const auto time = static_cast<int64_t>(documents_[i].text.size());
      const bool in_time = time <= at_ms.value_or(INT64_MAX);
      const std::tuple candidate(in_time, in_time ? time : -time, i);
      best = std::max(best.value_or(candidate), candidate);
    }
    return best.has_value() ? std::optional(std::get<2>(*best)) : std::nullopt;
  }

  // Number of a document among those of its id, if it must be listed.
  std::optional<uint64_t> OccurrenceOf(uint64_t ordinal) const {
    uint64_t before = 0;
    uint64_t count = 0;
    for (uint64_t i = 0; i < documents_.size(); ++i) {
      if (documents_[i].id == documents_[ordinal].id) {
        before += i < ordinal ? 1 : 0;
        ++count;
      }
    }
    return has_selected_ && count > 1 ? std::optional(before) : std::nullopt;
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
  static bool Matches(const Rule& rule, const TestDocument& document,
                      uint64_t ordinal) {
    return rule.where != nullptr ? rule.where(document, ordinal)
           : rule.is_prefix      ? absl::StartsWith(document.id, rule.value)
                                 : document.id == rule.value;
  }

  const std::vector<TestDocument> documents_;
  const std::vector<Rule> rules_;
  // The rule that decides about each document; null: none.
  std::vector<const Rule*> deciding_;
  bool has_selected_ = false;
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
      out << "do?s "
          << (rule.is_short           ? ""
              : rule.where != nullptr ? "where "
              : rule.is_prefix        ? "prefix "
                                      : "id ")
          << rule.value << (rule.is_block ? " block\n" : " exclude\n");
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
    std::optional<bool> action;
    if (Below(2) == 0) {
      name.set_ordinal(*ordinal);
      action = model.ActionOf(*ordinal);
    } else {
      std::string id = model.documents()[*ordinal].id;
      if (Below(5) == 0) {
        id += "/none";
      }
      name.set_id(id);
      if (Below(2) == 0) {
        const uint64_t occurrence = Below(3);
        name.set_occurrence(occurrence);
        ordinal = model.Find(id, occurrence);
      } else {
        std::optional<int64_t> at_ms;
        if (Below(2) == 0) {
          at_ms = static_cast<int64_t>(Below(40'000));
          name.set_at_time_ms(*at_ms);
        }
        ordinal = model.FindNewest(id, at_ms, /*with_withdrawn=*/false);
        if (!ordinal.has_value()) {
          ordinal = model.FindNewest(id, at_ms, /*with_withdrawn=*/true);
        }
      }
      action = ordinal.has_value()             ? model.ActionOf(*ordinal)
               : model.Find(id, 0).has_value() ? model.ActionOfId(id)
                                               : std::nullopt;
    }
    if (action == true) {
      return {.code = grpc::StatusCode::PERMISSION_DENIED};
    }
    if (action == false || !ordinal.has_value()) {
      return {.code = grpc::StatusCode::NOT_FOUND};
    }
    return {.text = model.documents()[*ordinal].text};
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
      if (model.ActionOf(i).has_value() ||
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
        ASSERT_LT(document.ordinal(), model.documents().size());
        EXPECT_EQ(document.has_occurrence()
                      ? std::optional(document.occurrence())
                      : std::nullopt,
                  model.OccurrenceOf(document.ordinal()));
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

  Rule RandomFilter(uint64_t document_count) {
    Rule rule = {.is_block = Below(2) == 0};
    const uint64_t a = Below(document_count);
    const uint64_t b = Below(document_count);
    const auto n = static_cast<int64_t>(Below(8));
    switch (Below(5)) {
      case 4:
        rule.is_short = true;
        rule.value = "domain news.test";
        rule.where = [](const TestDocument& document, uint64_t) {
          return absl::StrContains(document.id, "/news.test/") ||
                 absl::StrContains(document.id, ".news.test:80/");
        };
        break;
      case 0:
        rule.value = absl::StrCat("ordinal in (", a, ", ", b, ")");
        rule.where = [a, b](const TestDocument&, uint64_t ordinal) {
          return ordinal == a || ordinal == b;
        };
        break;
      case 1:
        rule.value = absl::StrCat("n = ", n);
        rule.where = [n](const TestDocument& document, uint64_t) {
          return document.fields[0] == FieldValue(n);
        };
        break;
      case 2:
        rule.value = "time >= 1970-01-01T00:00:10Z and not (n is null)";
        rule.where = [](const TestDocument& document, uint64_t) {
          return document.text.size() >= 10'000 &&
                 document.fields[0] != FieldValue();
        };
        break;
      default:
        rule.value = absl::StrCat("size < ", 100 * n, " and n < 6");
        rule.where = [n](const TestDocument& document, uint64_t) {
          const auto* const number = std::get_if<int64_t>(&document.fields[0]);
          return document.text.size() < 100 * static_cast<uint64_t>(n) &&
                 number != nullptr && *number < 6;
        };
    }
    return rule;
  }

  std::vector<Rule> RandomRules(const std::vector<TestDocument>& documents) {
    std::vector<Rule> rules;
    for (uint64_t n = Below(5); n > 0; --n) {
      if (Below(3) == 0) {
        rules.push_back(RandomFilter(documents.size()));
        continue;
      }
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
  fields_ = {{"n", FieldType::kInteger}};
  for (int round = 0; round < TestRounds(6, 40); ++round) {
    const uint64_t seed = (uint64_t{seeds()} << 32) | seeds();
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    Seed(seed);
    std::vector<TestDocument> documents = MakeDocuments(60, seed);
    for (TestDocument& document : documents) {
      document.fields = {Below(5) == 0
                             ? FieldValue()
                             : FieldValue(static_cast<int64_t>(Below(10)))};
      if (Below(4) == 0) {
        const char* const urls[] = {"http://news.test/", "urn:a:http://x.test/",
                                    "urn:b:http://www.news.test:80/",
                                    "http://fakenews.test/"};
        document.id = absl::StrCat(urls[Below(4)], Below(9));
      }
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

// A revisit of another URL stays, and is named.
TEST_F(ServerWithdrawalTest, NamesRevisitsThatStay) {
  std::vector<TestDocument> documents = MakeDocuments(3, 1);
  const char* const urls[] = {"https://news.test/a", "http://b.test/a",
                              "urn:text:http://www.news.test/"};
  const char* const types[] = {"response", "revisit", "resource"};
  for (size_t i = 0; i < documents.size(); ++i) {
    documents[i].id = urls[i];
    documents[i].record_type = types[i];
    documents[i].url = urls[i];
    documents[i].status = 200;
  }
  WriteArchive(archive_path(), documents);
  ServerOptions options;
  options.withdrawn_path = rules_path();
  std::ofstream(rules_path()) << "";
  StartServer(options);
  std::ofstream(rules_path()) << "docs domain news.test 1970 block\n";
  EXPECT_THAT(
      Reload(),
      IsSupersetOf(std::vector<std::string>{
          "withdrawn documents: 2 documents by 1 rule",
          "archive docs: 1 revisit stays that has the digest of a document "
          "that goes, 1 of them without another document that has the "
          "payload: \"http://b.test/a\""}));
  std::ofstream(rules_path())
      << "docs where digest = 'sha1:of the text' and status = 200 block\n";
  EXPECT_THAT(Reload(),
              AllOf(Contains("withdrawn documents: 3 documents by 1 rule"),
                    Not(Contains(HasSubstr("revisit stays")))));
  std::ofstream(rules_path()) << "docs domain news.test 1971.. block\n";
  EXPECT_THAT(Reload(), Contains("withdrawn documents: 0 documents by 1 rule"));
}

}  // namespace
}  // namespace quire
