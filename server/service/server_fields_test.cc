// SPDX-License-Identifier: GPL-3.0-or-later
//
// Lists with fields and filters over a socket, compared with a model: pages of
// any size, in both orders, of blocks that are and are not cached.
#include <algorithm>
#include <fstream>
#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "grpcpp/client_context.h"

#include "server/service/testing/server_fixture.h"

namespace quire {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

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

  // Lists all pages; `page_count_` counts them.
  std::vector<v1::Document> List(v1::ListDocumentsRequest request) {
    std::vector<v1::Document> documents;
    v1::ListDocumentsResponse page;
    page_count_ = 0;
    do {
      const grpc::Status status = Call(request, page);
      EXPECT_TRUE(status.ok()) << status.error_message();
      EXPECT_EQ(page.is_filtered(), request.has_filter());
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
  v1::ListDocumentsRequest request = Request();
  request.clear_first_ordinal();
  request.add_fields("text");
  const std::vector<v1::Document> documents = List(request);
  ASSERT_EQ(documents.size(), documents_.size());
  for (size_t i = 0; i < documents.size(); ++i) {
    EXPECT_EQ(documents[i].fields(0).string_value(),
              std::get<std::string>(documents_[i].fields[0]));
  }
  // The limit is 1 MiB.
  EXPECT_GE(page_count_, 3);
  v1::ListDocumentsResponse page;
  ASSERT_TRUE(Call(request, page).ok());
  EXPECT_LT(page.ByteSizeLong(), 1'200'000U);
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
