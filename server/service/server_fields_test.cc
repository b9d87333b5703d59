// SPDX-License-Identifier: GPL-3.0-or-later
//
// Lists with fields and filters over a socket, compared with a model: pages of
// any size, in both orders, of blocks that are and are not cached.
#include <algorithm>
#include <bit>
#include <fstream>
#include <functional>
#include <iterator>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "grpcpp/client_context.h"

#include "proto/error_details.h"

#include "codecs/base/bytes.h"
#include "codecs/base/endian.h"
#include "codecs/base/mutex.h"
#include "server/archive/archive.h"
#include "server/archive/archive_part.h"
#include "server/archive/field_reader.h"
#include "server/service/testing/server_fixture.h"
#include "testing/base/temporary_directory.h"

namespace quire {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr size_t kCount = 9'000;

// Ids are not in the order of the archive. Numbers ascend, so that bounds
// exclude groups; languages repeat; every fifth document has none.
std::vector<TestDocument> Rows(size_t count = kCount) {
  std::vector<TestDocument> documents;
  for (size_t i = 0; i < count; ++i) {
    TestDocument document = {.id = absl::StrCat("id", i * 7919 % count),
                             .text = std::string(i % 3, 'x')};
    document.fields = {static_cast<int64_t>(i),
                       i % 5 == 0
                           ? FieldValue()
                           : FieldValue(std::string(i % 2 ? "de" : "fr")),
                       std::string(i % 64, 'p')};
    documents.push_back(std::move(document));
  }
  return documents;
}

// The number at `index` of a column.
uint64_t NumberAt(const std::string& numbers, size_t index) {
  return LoadLittleEndian<uint64_t>(AsBytes(numbers).data() + 8 * index);
}

bool BitAt(const std::string& bits, size_t index) {
  return (static_cast<uint8_t>(bits.at(index / 8)) >> (index % 8) & 1) != 0;
}

bool IsPresent(const v1::ValueColumn& column, size_t index) {
  return !column.has_presence() || BitAt(column.presence(), index);
}

std::string TextAt(const v1::ValueColumn& column, size_t index) {
  const uint64_t begin = NumberAt(column.text_offsets(), index);
  return column.text().substr(
      begin, NumberAt(column.text_offsets(), index + 1) - begin);
}

// The same as messages. `types` are those of the fields.
std::vector<v1::Document> DocumentsOf(const v1::DocumentColumns& columns,
                                      const std::vector<FieldType>& types) {
  const size_t count = columns.document_count();
  std::vector<v1::Document> documents(count);
  for (size_t i = 0; i < count; ++i) {
    v1::Document& document = documents[i];
    document.set_ordinal(NumberAt(columns.ordinals().numbers(), i));
    if (columns.has_ids()) {
      document.set_id(TextAt(columns.ids(), i));
    }
    if (columns.has_offsets()) {
      document.mutable_range()->set_offset(
          NumberAt(columns.offsets().numbers(), i));
      document.mutable_range()->set_size_bytes(
          NumberAt(columns.sizes_bytes().numbers(), i));
    }
    if (columns.has_capture_times_ms() &&
        IsPresent(columns.capture_times_ms(), i)) {
      document.set_capture_time_ms(static_cast<int64_t>(
          NumberAt(columns.capture_times_ms().numbers(), i)));
    }
    if (columns.has_media_types() && IsPresent(columns.media_types(), i)) {
      document.set_media_type(TextAt(columns.media_types(), i));
    }
    if (columns.has_record_types() && IsPresent(columns.record_types(), i)) {
      document.set_record_type(TextAt(columns.record_types(), i));
    }
    for (size_t field = 0; field < types.size(); ++field) {
      const v1::ValueColumn& column = columns.fields(static_cast<int>(field));
      v1::FieldValue& value = *document.add_fields();
      if (!IsPresent(column, i)) {
        continue;
      }
      switch (types[field]) {
        case FieldType::kNull:
          break;
        case FieldType::kString:
          value.set_string_value(TextAt(column, i));
          break;
        case FieldType::kInteger:
          value.set_integer_value(
              static_cast<int64_t>(NumberAt(column.numbers(), i)));
          break;
        case FieldType::kFloat:
          value.set_float_value(
              std::bit_cast<double>(NumberAt(column.numbers(), i)));
          break;
        case FieldType::kBoolean:
          value.set_boolean_value(BitAt(column.booleans(), i));
          break;
        case FieldType::kTime:
          value.set_time_us(
              static_cast<int64_t>(NumberAt(column.numbers(), i)));
          break;
      }
    }
  }
  return documents;
}

class ServerFieldsTest : public ServerTest {
 protected:
  ServerFieldsTest() {
    fields_ = {{"number", FieldType::kInteger},
               {"lang", FieldType::kString},
               {"padding", FieldType::kString}};
  }

  void Serve(size_t count = kCount) {
    documents_ = Rows(count);
    WriteArchive(archive_path(), documents_);
    ServerOptions options;
    std::ofstream(withdrawn_path()).flush();
    options.withdrawn_path = withdrawn_path();
    StartServer(options);
  }

  std::string withdrawn_path() const { return directory() + "/withdrawn"; }

  static v1::ListDocumentsRequest Request(const std::string& filter = "") {
    v1::ListDocumentsRequest request;
    request.set_archive("docs");
    request.set_first_ordinal(0);
    request.set_page_size(1000);
    if (!filter.empty()) {
      request.set_filter(filter);
    }
    return request;
  }

  grpc::Status Call(const v1::ListDocumentsRequest& request,
                    v1::ListDocumentsResponse& page) {
    grpc::ClientContext context;
    page.Clear();
    return stub().ListDocuments(&context, request, &page);
  }

  // Lists all pages; `page_count_` counts them. In the order of the archive,
  // columns must be the same.
  std::vector<v1::Document> List(const v1::ListDocumentsRequest& request) {
    std::vector<v1::Document> documents = ListDocuments(request);
    if (request.has_first_ordinal()) {
      const int page_count = page_count_;
      v1::ListDocumentsRequest by_column = request;
      v1::ColumnSelection& all = *by_column.mutable_columns();
      all.set_ids(true);
      all.set_ranges(true);
      all.set_capture_times(true);
      all.set_media_types(true);
      all.set_record_types(true);
      const std::vector<v1::Document> columns = ListDocuments(by_column);
      EXPECT_EQ(columns.size(), documents.size());
      for (size_t i = 0; i < std::min(columns.size(), documents.size()); ++i) {
        EXPECT_EQ(columns[i].SerializeAsString(),
                  documents[i].SerializeAsString())
            << columns[i].ShortDebugString() << ", expected "
            << documents[i].ShortDebugString();
      }
      page_count_ = page_count;
    }
    return documents;
  }

  // The same in one form.
  std::vector<v1::Document> ListDocuments(v1::ListDocumentsRequest request) {
    std::vector<FieldType> types;
    for (const std::string& name : request.fields()) {
      types.push_back(
          std::ranges::find(fields_, name, &FieldColumn::name)->type);
    }
    std::vector<v1::Document> documents;
    v1::ListDocumentsResponse page;
    page_count_ = 0;
    do {
      const grpc::Status status = Call(request, page);
      EXPECT_TRUE(status.ok()) << status.error_message();
      EXPECT_EQ(page.is_filtered(), request.has_filter());
      EXPECT_EQ(page.has_columns(), request.has_columns());
      std::ranges::copy(DocumentsOf(page.columns(), types),
                        std::back_inserter(documents));
      documents.insert(documents.end(), page.documents().begin(),
                       page.documents().end());
      request.set_page_token(page.next_page_token());
      ++page_count_;
    } while (page.has_next_page_token());
    return documents;
  }

  static std::vector<uint64_t> OrdinalsOf(
      const std::vector<v1::Document>& documents) {
    std::vector<uint64_t> ordinals;
    for (const v1::Document& document : documents) {
      ordinals.push_back(document.ordinal());
    }
    return ordinals;
  }

  // Ordinals of the documents that match, in ascending order.
  std::vector<uint64_t> Expected(
      const std::function<bool(const TestDocument&)>& matches) const {
    std::vector<uint64_t> ordinals;
    for (size_t i = 0; i < documents_.size(); ++i) {
      if (matches(documents_[i])) {
        ordinals.push_back(i);
      }
    }
    return ordinals;
  }

  static int64_t NumberOf(const TestDocument& document) {
    return std::get<int64_t>(document.fields[0]);
  }

  static bool HasLang(const TestDocument& document, const std::string& lang) {
    return document.fields[1] == FieldValue(lang);
  }

  std::vector<TestDocument> documents_;
  int page_count_ = 0;
};

TEST_F(ServerFieldsTest, DescribesFields) {
  Serve(10);
  grpc::ClientContext context;
  v1::GetArchiveRequest request;
  request.set_archive("docs");
  v1::GetArchiveResponse response;
  ASSERT_TRUE(stub().GetArchive(&context, request, &response).ok());
  ASSERT_EQ(response.archive().fields_size(), 3);
  EXPECT_EQ(response.archive().fields(0).name(), "number");
  EXPECT_EQ(response.archive().fields(0).type(), v1::FIELD_TYPE_INTEGER);
  EXPECT_EQ(response.archive().fields(2).type(), v1::FIELD_TYPE_STRING);
}

TEST_F(ServerFieldsTest, ListsHaveTheRequestedFields) {
  Serve();
  for (const bool by_id : {false, true}) {
    v1::ListDocumentsRequest request = Request();
    if (by_id) {
      request.clear_first_ordinal();
    }
    request.add_fields("lang");
    request.add_fields("number");
    const std::vector<v1::Document> documents = List(request);
    ASSERT_EQ(documents.size(), documents_.size());
    for (const v1::Document& document : documents) {
      const TestDocument& expected = documents_[document.ordinal()];
      ASSERT_EQ(document.id(), expected.id);
      ASSERT_EQ(document.fields_size(), 2);
      EXPECT_EQ(document.fields(1).integer_value(), NumberOf(expected));
      const auto* lang = std::get_if<std::string>(&expected.fields[1]);
      EXPECT_EQ(document.fields(0).has_string_value(), lang != nullptr);
      EXPECT_EQ(document.fields(0).string_value(),
                lang == nullptr ? "" : *lang);
    }
  }
}

TEST_F(ServerFieldsTest, FiltersAgreeWithAModel) {
  Serve();
  const std::vector<
      std::pair<std::string, std::function<bool(const TestDocument&)>>>
      cases = {
          {"lang = 'de'", [](const auto& d) { return HasLang(d, "de"); }},
          {"not lang = 'de'", [](const auto& d) { return HasLang(d, "fr"); }},
          {"number >= 8990 or number = 7",
           [](const auto& d) {
             return NumberOf(d) >= 8990 || NumberOf(d) == 7;
           }},
          {"number < 5000 and lang is null",
           [](const auto& d) {
             return NumberOf(d) < 5000 && NumberOf(d) % 5 == 0;
           }},
          {"size = 2 and number < 100",
           [](const auto& d) {
             return d.text.size() == 2 && NumberOf(d) < 100;
           }},
          {"id prefix 'id77' and lang in ('de', 'fr')",
           [](const auto& d) {
             return absl::StartsWith(d.id, "id77") && NumberOf(d) % 5 != 0;
           }},
          {"number > 1000000", [](const auto&) { return false; }},
          {"type = 'text/html' and ordinal = 3",
           [](const auto& d) { return NumberOf(d) == 3; }}};
  for (const auto& [filter, matches] : cases) {
    const std::vector<uint64_t> expected = Expected(matches);
    v1::ListDocumentsRequest request = Request(filter);
    EXPECT_EQ(OrdinalsOf(List(request)), expected) << filter;
    request.set_page_size(4000);
    request.set_first_ordinal(3000);
    EXPECT_EQ(OrdinalsOf(List(request)),
              std::vector<uint64_t>(
                  std::lower_bound(expected.begin(), expected.end(), 3000),
                  expected.end()))
        << filter;
    request.clear_first_ordinal();
    const std::vector<v1::Document> by_id = List(request);
    EXPECT_TRUE(std::is_sorted(
        by_id.begin(), by_id.end(),
        [](const auto& a, const auto& b) { return a.id() < b.id(); }));
    std::vector<uint64_t> ordinals = OrdinalsOf(by_id);
    std::sort(ordinals.begin(), ordinals.end());
    EXPECT_EQ(ordinals, expected) << filter;
  }
}

TEST_F(ServerFieldsTest, BoundsExcludeGroupsOfDocuments) {
  Serve();
  // Without bounds: 9 pages of 1000 candidates.
  List(Request("lang = 'xx'"));
  // The strings of both bounds exclude it: one page.
  EXPECT_EQ(page_count_, 1);
  List(Request("lang = 'dx'"));
  EXPECT_EQ(page_count_, 9);
  EXPECT_EQ(List(Request("number = 8999")).size(), 1U);
  EXPECT_LE(page_count_, 2);
  EXPECT_EQ(List(Request("number > 20000")).size(), 0U);
  EXPECT_EQ(page_count_, 1);
}

TEST_F(ServerFieldsTest, CommonPrefixesAreNotFiltered) {
  Serve(100);
  v1::ListDocumentsRequest request = Request("number = 3");
  request.clear_first_ordinal();
  request.set_delimiter("1");
  v1::ListDocumentsResponse page;
  ASSERT_TRUE(Call(request, page).ok());
  EXPECT_GT(page.common_prefixes_size(), 0);
  EXPECT_LE(page.documents_size(), 1);
}

TEST_F(ServerFieldsTest, LongFieldsEndAPage) {
  fields_ = {{"text", FieldType::kString}};
  for (size_t i = 0; i < 60; ++i) {
    documents_.push_back({.id = absl::StrCat("d", 10 + i), .text = "x"});
    documents_.back().fields = {
        std::string(60'000, static_cast<char>('a' + i % 26))};
  }
  WriteArchive(archive_path(), documents_);
  StartServer();
  for (const bool by_id : {true, false}) {
    v1::ListDocumentsRequest request = Request();
    request.add_fields("text");
    if (by_id) {
      request.clear_first_ordinal();
    }
    const std::vector<v1::Document> documents = List(request);
    ASSERT_EQ(documents.size(), documents_.size());
    for (size_t i = 0; i < documents.size(); ++i) {
      EXPECT_EQ(documents[i].fields(0).string_value(),
                std::get<std::string>(documents_[i].fields[0]));
    }
    // The limit is 1 MiB.
    EXPECT_GE(page_count_, 3);
    if (!by_id) {
      request.mutable_columns();
    }
    v1::ListDocumentsResponse page;
    ASSERT_TRUE(Call(request, page).ok());
    EXPECT_LT(page.ByteSizeLong(), 1'200'000U);
  }
}

// Nulls take hardly any bytes of an answer.
TEST_F(ServerFieldsTest, MemoryOfNullsEndsAPage) {
  constexpr int kDocumentCount = 4'000;
  v1::ListDocumentsRequest request = Request();
  request.set_page_size(kDocumentCount);
  for (int i = 0; i < 32; ++i) {
    fields_.push_back({absl::StrCat("f", i), FieldType::kInteger});
    request.add_fields(fields_.back().name);
  }
  for (int i = 0; i < kDocumentCount; ++i) {
    documents_.push_back({.id = absl::StrCat("d", i), .text = ""});
    documents_.back().fields.resize(fields_.size());
  }
  WriteArchive(archive_path(), documents_);
  StartServer();
  v1::ListDocumentsResponse page;
  ASSERT_TRUE(Call(request, page).ok());
  EXPECT_TRUE(page.has_next_page_token());
  EXPECT_GT(page.documents_size(), kDocumentCount / 10);
  EXPECT_LT(page.documents_size(), kDocumentCount / 2);
}

TEST_F(ServerFieldsTest, ColumnsHaveAllTypesAndAttributes) {
  fields_ = {{"string", FieldType::kString},
             {"integer", FieldType::kInteger},
             {"float", FieldType::kFloat},
             {"boolean", FieldType::kBoolean},
             {"time", FieldType::kTime}};
  for (size_t i = 0; i < 100; ++i) {
    TestDocument document = {.id = std::string(i * 400, 'i'),
                             .text = std::string(i % 7, 'x')};
    if (i % 3 > 0) {
      document.capture_time_ms = static_cast<int64_t>(i) - 50;
      document.record_type = i % 2 == 0 ? "response" : "";
    }
    const auto number = static_cast<int64_t>(i);
    document.fields = {std::string(i, 's'), -number,
                       0.5 * static_cast<double>(i), i % 5 < 2,
                       FieldTime{number - 50}};
    for (size_t field = 0; field < document.fields.size(); ++field) {
      if (i % 11 == field) {
        document.fields[field] = FieldValue();
      }
    }
    documents_.push_back(std::move(document));
  }
  WriteArchive(archive_path(), documents_);
  StartServer();
  v1::ListDocumentsRequest request = Request();
  for (const FieldColumn& field : fields_) {
    request.add_fields(field.name);
  }
  for (const uint32_t page_size : {1U, 8U, 9U, 1000U}) {
    request.set_page_size(page_size);
    EXPECT_EQ(List(request).size(), 100U);
  }
  request.set_filter(
      "boolean = true and float > 3 and record_type = 'response'");
  EXPECT_GT(List(request).size(), 5U);
}

TEST_F(ServerFieldsTest, ColumnsHaveOnlyWhatIsWanted) {
  Serve(10);
  v1::ListDocumentsRequest request = Request("number > 2");
  request.mutable_columns();
  v1::ListDocumentsResponse page;
  ASSERT_TRUE(Call(request, page).ok());
  v1::DocumentColumns expected;
  expected.set_document_count(7);
  *expected.mutable_ordinals() = page.columns().ordinals();
  EXPECT_EQ(page.columns().SerializeAsString(), expected.SerializeAsString());
  EXPECT_EQ(NumberAt(page.columns().ordinals().numbers(), 0), 3U);
  request.mutable_columns()->set_ranges(true);
  ASSERT_TRUE(Call(request, page).ok());
  EXPECT_TRUE(page.columns().has_sizes_bytes());
  EXPECT_FALSE(page.columns().has_ids());
  // None is left.
  request.set_filter("number > 20");
  ASSERT_TRUE(Call(request, page).ok());
  EXPECT_EQ(page.columns().document_count(), 0U);
  EXPECT_FALSE(page.has_next_page_token());
}

TEST_F(ServerFieldsTest, WithdrawnDocumentsAreNotListed) {
  Serve();
  std::ofstream(withdrawn_path())
      << "docs id " << documents_[7].id << " block\n";
  Reload();
  v1::ListDocumentsRequest request = Request("number in (6, 7, 8)");
  request.add_fields("number");
  EXPECT_THAT(OrdinalsOf(List(request)), ElementsAre(6, 8));
  request.clear_first_ordinal();
  EXPECT_EQ(List(request).size(), 2U);
}

class ServerWithdrawnFieldsTest : public ServerFieldsTest {
 protected:
  ServerOptions Options() const {
    ServerOptions options;
    options.archives = {{"docs", archive_path()}};
    options.listen_address = "127.0.0.1:0";
    options.withdrawn_path = withdrawn_path();
    options.metrics_address = "127.0.0.1:0";
    return options;
  }

  void WriteRules(const std::string& rules) {
    std::ofstream(withdrawn_path()) << rules;
  }

  // The code of a read of a document by its ordinal.
  grpc::StatusCode CodeOf(uint64_t ordinal) {
    v1::ReadRequest request;
    request.set_archive("docs");
    request.mutable_document()->set_ordinal(ordinal);
    grpc::ClientContext context;
    v1::ReadResponse response;
    return stub().Read(&context, request, &response).error_code();
  }

  // Flips a bit of the first values of a field in the first segment.
  void DamageField(uint32_t column) {
    std::string path;
    uint64_t offset = 0;
    {
      QUIRE_ASSERT_OK_AND_ASSIGN(const auto archive,
                                 Archive::Open(archive_path()));
      path = archive->SegmentPath(0);
      DocumentFieldReader reader(*archive, {column},
                                 [&](const ArchivePart& part) {
                                   offset = part.extent.offset.value;
                                   return BlockingPartLoader(*archive)(part);
                                 });
      std::vector<FieldView> values;
      QUIRE_ASSERT_OK(reader.Read({1}, values).status());
    }
    std::string bytes = ReadTestFile(path);
    bytes[offset] = static_cast<char>(bytes[offset] ^ 1);
    WriteTestFile(path, bytes);
  }
};

// Also after a reload, and when the archive has grown.
TEST_F(ServerWithdrawnFieldsTest, RulesWithFiltersWithdrawWhatTheyMatch) {
  documents_ = Rows(200);
  WriteArchive(archive_path(), documents_);
  WriteRules("d* where lang = 'de' and number < 50 block\n");
  StartServer(Options());
  const auto expect_withdrawn =
      [&](const std::function<bool(const TestDocument&)>& is_withdrawn) {
        std::vector<uint64_t> kept;
        for (uint64_t i = 0; i < documents_.size(); ++i) {
          const bool is_gone = is_withdrawn(documents_[i]);
          EXPECT_EQ(CodeOf(i), is_gone ? grpc::StatusCode::PERMISSION_DENIED
                                       : grpc::StatusCode::OK);
          if (!is_gone) {
            kept.push_back(i);
          }
        }
        EXPECT_EQ(OrdinalsOf(List(Request())), kept);
        EXPECT_THAT(HttpGet(server().metrics_address(), "/metrics"),
                    HasSubstr(absl::StrCat("quire_withdrawn_documents{archive="
                                           "\"docs\"} ",
                                           documents_.size() - kept.size())));
      };
  const auto number_of = [](const TestDocument& document) {
    return std::get<int64_t>(document.fields[0]);
  };
  const auto is_german = [](const TestDocument& document) {
    return document.fields[1] == FieldValue(std::string("de"));
  };
  expect_withdrawn([&](const TestDocument& document) {
    return is_german(document) && number_of(document) < 50;
  });
  WriteRules("docs where number >= 190 block\nother where nothing = 1 block\n");
  Reload();
  expect_withdrawn(
      [&](const TestDocument& document) { return number_of(document) >= 190; });
  documents_ = Rows(260);
  WriteArchive(archive_path(), documents_);
  Reload();
  expect_withdrawn(
      [&](const TestDocument& document) { return number_of(document) >= 190; });
}

TEST_F(ServerWithdrawnFieldsTest, AnArchiveThatAFilterDoesNotFitIsNotServed) {
  documents_ = Rows(20);
  WriteArchive(archive_path(), documents_);
  for (const auto& [rule, message] :
       {std::pair("docs where language = 'de' block\n",
                  "line 2 of the rules of withdrawal: column 1: no field "
                  "\"language\"; expected a field of the archive or an "
                  "attribute: number, lang, padding, id"),
        std::pair("docs where number = 'de' block\n",
                  "line 2 of the rules of withdrawal: column 10: found a value "
                  "of the type string, expected integer")}) {
    WriteRules(absl::StrCat("# rules\n", rule));
    EXPECT_THAT(std::string(Server::Start(Options()).status().message()),
                HasSubstr(message));
  }
}

// An archive that is open is withheld at once, and served again later.
TEST_F(ServerWithdrawnFieldsTest, AReloadWithholdsWhatItCannotMatch) {
  documents_ = Rows(20);
  WriteArchive(archive_path(), documents_);
  WriteRules("docs where number = 3 exclude\n");
  StartServer(Options());
  EXPECT_EQ(CodeOf(3), grpc::StatusCode::NOT_FOUND);
  WriteRules(
      "docs where number = 3 exclude\ndocs where language = 'de' block\n");
  EXPECT_THAT(
      Reload(),
      Contains(AllOf(HasSubstr("archive docs: all of its documents are "
                               "withheld until a reload can match the rules"),
                     HasSubstr("line 2 of the rules of withdrawal: column 1: "
                               "no field \"language\""))));
  for (uint64_t i = 0; i < 20; ++i) {
    EXPECT_EQ(CodeOf(i), grpc::StatusCode::PERMISSION_DENIED);
  }
  EXPECT_THAT(List(Request()), IsEmpty());
  EXPECT_THAT(HttpGet(server().metrics_address(), "/metrics"),
              HasSubstr("quire_last_reload_succeeded 0"));
  // The same rules again: it stays withheld.
  EXPECT_THAT(Reload(), Contains(HasSubstr("withheld until a reload")));
  EXPECT_EQ(CodeOf(4), grpc::StatusCode::PERMISSION_DENIED);
  // A malformed file changes nothing.
  WriteRules("docs where number = exclude\n");
  EXPECT_THAT(Reload(), Contains(HasSubstr("line 1: FILTER, column 9: ")));
  EXPECT_EQ(CodeOf(4), grpc::StatusCode::PERMISSION_DENIED);
  WriteRules("docs where number = 3 exclude\ndocs where lang = 'de' block\n");
  Reload();
  EXPECT_EQ(CodeOf(3), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(CodeOf(1), grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_EQ(CodeOf(4), grpc::StatusCode::OK);
  EXPECT_THAT(HttpGet(server().metrics_address(), "/metrics"),
              HasSubstr("quire_last_reload_succeeded 1"));
}

TEST_F(ServerWithdrawnFieldsTest, DamagedFieldsWithholdTheArchive) {
  documents_ = Rows(20);
  WriteArchive(archive_path(), documents_);
  ASSERT_NO_FATAL_FAILURE(DamageField(1));
  // This field is whole.
  WriteRules("docs where number = 3 block\n");
  StartServer(Options());
  EXPECT_EQ(CodeOf(3), grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_EQ(CodeOf(4), grpc::StatusCode::OK);
  WriteRules("docs where lang = 'de' block\n");
  EXPECT_THAT(
      Reload(),
      Contains(AllOf(HasSubstr("archive docs: all of its documents are "
                               "withheld"),
                     HasSubstr("segment-00000000: the fields of document 0 "
                               "cannot be read: "))));
  for (uint64_t i = 0; i < 20; ++i) {
    EXPECT_EQ(CodeOf(i), grpc::StatusCode::PERMISSION_DENIED);
  }
  StopServer();
  EXPECT_THAT(Server::Start(Options()),
              FailsWith(absl::StatusCode::kDataLoss,
                        HasSubstr("line 1 of the rules of withdrawal: ")));
}

// A part of the container is no block.
TEST_F(ServerWithdrawnFieldsTest, DamagedPartsAreNamedByTheirOffset) {
  documents_ = Rows(20);
  WriteArchive(archive_path(), documents_);
  ASSERT_NO_FATAL_FAILURE(DamageField(0));
  WriteRules("");
  ServerOptions options = Options();
  Mutex mutex;
  std::vector<std::string> damages;
  options.report_damage = [&](const std::string& message) {
    MutexLock lock(&mutex);
    damages.push_back(message);
  };
  StartServer(options);
  v1::ListDocumentsRequest request = Request();
  request.add_fields("number");
  v1::ListDocumentsResponse page;
  const grpc::Status status = Call(request, page);
  EXPECT_EQ(ReasonIn(status), "BLOCK_DAMAGED");
  EXPECT_THAT(status.error_message(),
              HasSubstr("the part at byte 0 of the container data of segment "
                        "0 of archive \"docs\" is damaged"));
  const std::optional<ErrorDetails> details =
      ParseErrorDetails(status.error_details());
  ASSERT_TRUE(details.has_value());
  EXPECT_EQ(details->metadata.at("container_offset"), "0");
  EXPECT_EQ(details->metadata.count("block"), 0u);
  StopServer();
  EXPECT_THAT(damages,
              ElementsAre(AllOf(
                  HasSubstr("archive docs: the part at byte 0 of the container "
                            "data of "),
                  HasSubstr("/segment-00000000 is damaged: "))));
}

TEST_F(ServerFieldsTest, ErrorsNameTheFault) {
  Serve(10);
  const auto error_of = [&](const v1::ListDocumentsRequest& request) {
    v1::ListDocumentsResponse page;
    const grpc::Status status = Call(request, page);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
    return absl::StrCat(ReasonIn(status), " ", status.error_message());
  };
  EXPECT_THAT(error_of(Request("number = ")),
              HasSubstr("MALFORMED_REQUEST filter: column 10: found the end"));
  EXPECT_THAT(error_of(Request("number = 'a'")),
              HasSubstr("MALFORMED_REQUEST filter: column 10: found a value"));
  EXPECT_THAT(error_of(Request("numbers = 1")),
              HasSubstr("FIELD_NOT_FOUND filter: column 1: no field "
                        "\"numbers\"; expected a field of the archive or an "
                        "attribute: number, lang, padding, id"));
  v1::ListDocumentsRequest request = Request();
  request.add_fields("numbers");
  EXPECT_EQ(error_of(request),
            "FIELD_NOT_FOUND fields has \"numbers\", expected fields of the "
            "archive: number, lang, padding");
  request = Request();
  request.add_fields("lang");
  request.add_fields("lang");
  EXPECT_THAT(error_of(request), HasSubstr("fields has \"lang\" twice"));
  for (int i = 0; i < 40; ++i) {
    request.add_fields("lang");
  }
  EXPECT_THAT(error_of(request), HasSubstr("must have at most 32"));
  request = Request();
  request.mutable_columns();
  request.clear_first_ordinal();
  EXPECT_THAT(error_of(request),
              HasSubstr("columns is set without first_ordinal"));
  // A token is of its filter.
  request = Request("number > 1");
  request.set_page_size(1);
  v1::ListDocumentsResponse page;
  ASSERT_TRUE(Call(request, page).ok());
  request.set_page_token(page.next_page_token());
  request.set_filter("number > 2");
  EXPECT_THAT(error_of(request), HasSubstr("page_token"));
}

TEST_F(ServerFieldsTest, ArchivesWithoutFieldsHaveAttributes) {
  fields_ = {};
  for (size_t i = 0; i < 50; ++i) {
    documents_.push_back(
        {.id = absl::StrCat("d", i), .text = std::string(i, 'x')});
  }
  WriteArchive(archive_path(), documents_);
  StartServer();
  EXPECT_THAT(OrdinalsOf(List(Request("size >= 48"))), ElementsAre(48, 49));
  v1::ListDocumentsRequest request = Request();
  request.add_fields("lang");
  v1::ListDocumentsResponse page;
  EXPECT_THAT(Call(request, page).error_message(),
              HasSubstr("expected none: the archive has no fields"));
}

}  // namespace
}  // namespace quire
