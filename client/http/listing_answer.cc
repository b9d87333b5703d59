// SPDX-License-Identifier: Apache-2.0
#include "client/http/listing_answer.h"

#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"

#include "client/cli/shown_text.h"
#include "client/http/request/content_headers.h"
#include "client/http/request/html_text.h"
#include "client/quire/archive_state.h"
#include "codecs/base/byte_size.h"
#include "codecs/base/json_text.h"
#include "codecs/base/status_macros.h"

namespace quire {
namespace {

constexpr uint32_t kBrowseRowsMax = 1000;
// Levels of a prefix that a page links.
constexpr size_t kLevelsMax = 64;

// Describes an archive, or an earlier state of one.
template <typename State>
std::string JsonArchive(absl::string_view name, const State& state) {
  return absl::StrCat("{\"name\":", JsonString(name),
                      ",\"uuid\":", JsonString(state.uuid()),
                      ",\"size_bytes\":", state.size_bytes(),
                      ",\"document_count\":", state.document_count(), "}");
}

Answer ListAnswer(const HttpRequest& request, const char* type,
                  std::string body) {
  Answer answer;
  answer.headers = {{"Content-Type", type},
                    {"X-Content-Type-Options", "nosniff"}};
  AddCaching(request, answer);
  answer.body = std::move(body);
  return answer;
}

Answer PageOf(const HttpRequest& request, const BrowsePage& page) {
  Answer answer =
      ListAnswer(request, "text/html; charset=utf-8", RenderBrowsePage(page));
  answer.headers.emplace_back(
      "Content-Security-Policy",
      "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; "
      "form-action 'none'; frame-ancestors 'none'");
  answer.headers.emplace_back("Referrer-Policy", "no-referrer");
  answer.headers.emplace_back("Vary", "X-Forwarded-Prefix");
  return answer;
}

BrowseRow RowOf(const v1::Document& document, absl::string_view archive,
                absl::string_view uuid, size_t prefix_size) {
  const absl::string_view id = document.id();
  const bool is_record = document.has_record_type();
  BrowseRow row;
  const std::string root = absl::StrCat("/v1/", archive);
  row.link = DocumentLink(root, is_record ? "page" : "doc", id, uuid,
                          document.ordinal());
  row.name = std::string(id.substr(prefix_size));
  if (row.name.empty()) {
    row.name = id.empty() ? "(empty id)" : std::string(id);
  }
  row.size = FormatByteSize(document.range().size_bytes());
  if (document.has_capture_time_ms()) {
    row.time = FormatTimeMs(document.capture_time_ms());
  }
  row.media_type = document.media_type();
  if (is_record) {
    row.record_link =
        absl::StrCat(root, "@", uuid, "/ordinal/", document.ordinal());
  }
  return row;
}

// The archive, then each level of the prefix.
std::vector<BrowseRow> PathOf(absl::string_view archive,
                              absl::string_view prefix) {
  std::vector<BrowseRow> path = {
      {.link = "/browse/", .name = "archives"},
      {.link = BrowseLink(archive, ""), .name = std::string(archive)}};
  size_t begin = 0;
  while (begin < prefix.size() && path.size() < kLevelsMax) {
    const size_t slash = prefix.find('/', begin);
    const size_t end =
        slash == absl::string_view::npos ? prefix.size() : slash + 1;
    path.push_back({.link = BrowseLink(archive, prefix.substr(0, end)),
                    .name = std::string(prefix.substr(begin, end - begin))});
    begin = end;
  }
  return path;
}

}  // namespace

absl::StatusOr<Answer> AnswerArchives(const HttpRequest& request,
                                      Client& client) {
  QUIRE_ASSIGN_OR_RETURN(const std::vector<v1::ArchiveDescription> archives,
                         client.ListArchives());
  std::string json = "{\"archives\":[";
  const char* comma = "\n";
  for (const v1::ArchiveDescription& archive : archives) {
    absl::StrAppend(&json, comma, JsonArchive(archive.name(), archive));
    comma = ",\n";
  }
  return ListAnswer(request, "application/json", json + "]}\n");
}

absl::StatusOr<Answer> AnswerArchive(const HttpRequest& request,
                                     Client& client) {
  const std::string& name = request.target.archive;
  const std::string& uuid = request.target.uuid;
  QUIRE_ASSIGN_OR_RETURN(const v1::ArchiveDescription archive,
                         client.GetArchive(name));
  const std::optional<v1::EarlierState> state =
      FindState(archive, uuid.empty() ? archive.uuid() : uuid);
  if (!state.has_value()) {
    return absl::NotFoundError("the archive has other contents than these");
  }
  std::string json = JsonArchive(name, *state);
  if (archive.fields_size() > 0) {
    json.pop_back();
    const char* comma = ",\"fields\":[";
    for (const v1::FieldDescription& field : archive.fields()) {
      absl::StrAppend(&json, comma, "{\"name\":", JsonString(field.name()),
                      ",\"type\":", JsonString(FieldTypeText(field.type())),
                      "}");
      comma = ",";
    }
    json += "]}";
  }
  return ListAnswer(request, "application/json", json + "\n");
}

absl::StatusOr<Answer> AnswerList(const HttpRequest& request,
                                  const KnownState& state, Client& client) {
  const std::vector<std::string>& fields = request.target.fields;
  ListOptions options{.prefix = request.target.id,
                      .page_size = request.target.limit,
                      .page_token = request.target.token,
                      .fields = fields,
                      .filter = request.target.where};
  // Otherwise one call is of one state: the present one, or the token's.
  if (state.is_named) {
    options.archive_uuid = state.uuid;
  }
  if (!request.target.delimiter.empty()) {
    options.delimiter = request.target.delimiter;
  }
  QUIRE_ASSIGN_OR_RETURN(
      const ListPage page,
      client.ListDocuments(request.target.archive, options).NextPage());
  std::string lines;
  for (const ListEntry& entry : page.entries) {
    if (const auto* document = std::get_if<v1::Document>(&entry)) {
      absl::StrAppend(
          &lines, "{", JsonDocument(*document), fields.empty() ? "" : ",",
          fields.empty() ? "" : JsonFields(fields, *document), "}\n");
    } else {
      absl::StrAppend(&lines, "{",
                      JsonBytes("prefix", std::get<CommonPrefix>(entry).text),
                      "}\n");
    }
  }
  if (page.withdrawn_count > 0) {
    absl::StrAppend(&lines, "{\"withdrawn_count\":", page.withdrawn_count,
                    "}\n");
  }
  if (!page.next_page_token.empty()) {
    absl::StrAppend(
        &lines, "{\"next_token\":", JsonString(page.next_page_token), "}\n");
  }
  return ListAnswer(request, "application/jsonl", std::move(lines));
}

absl::StatusOr<Answer> AnswerBrowseArchives(const HttpRequest& request,
                                            Client& client) {
  QUIRE_ASSIGN_OR_RETURN(const std::vector<v1::ArchiveDescription> archives,
                         client.ListArchives());
  BrowsePage page{.base_path = request.base_path,
                  .title = "archives",
                  .path = {{.link = "/browse/", .name = "archives"}}};
  for (const v1::ArchiveDescription& archive : archives) {
    page.rows.push_back({.link = BrowseLink(archive.name(), ""),
                         .name = archive.name(),
                         .size = FormatByteSize(archive.size_bytes()),
                         .media_type = FormatCounted(archive.document_count(),
                                                     "document", "documents")});
  }
  return PageOf(request, page);
}

absl::StatusOr<Answer> AnswerBrowse(const HttpRequest& request,
                                    const KnownState& state,
                                    ArchiveReads& reads) {
  const RequestTarget& target = request.target;
  ListOptions options{.prefix = target.id,
                      .delimiter = "/",
                      .page_size = kBrowseRowsMax,
                      .page_token = target.token};
  // Links name the state.
  if (!state.is_named) {
    QUIRE_RETURN_IF_ERROR(reads.CheckAccess(target.archive, state).status());
  }
  // A token may be of an earlier one, whose documents this has, too.
  if (state.is_named || target.token.empty()) {
    options.archive_uuid = state.uuid;
  }
  QUIRE_ASSIGN_OR_RETURN(
      const ListPage listed,
      reads.client().ListDocuments(target.archive, options).NextPage());
  const std::string name = target.uuid.empty()
                               ? target.archive
                               : absl::StrCat(target.archive, "@", target.uuid);
  BrowsePage page{.base_path = request.base_path,
                  .title = absl::StrCat(target.archive, ": ", target.id),
                  .path = PathOf(name, target.id)};
  const absl::string_view id = target.id;
  const size_t shown_from =
      id.rfind('/') == absl::string_view::npos ? 0 : id.rfind('/') + 1;
  for (const ListEntry& entry : listed.entries) {
    if (const auto* document = std::get_if<v1::Document>(&entry)) {
      page.rows.push_back(
          RowOf(*document, target.archive, state.uuid, shown_from));
    } else {
      const absl::string_view prefix = std::get<CommonPrefix>(entry).text;
      page.rows.push_back({.link = BrowseLink(name, prefix),
                           .name = std::string(prefix.substr(shown_from))});
    }
  }
  page.withdrawn_count = listed.withdrawn_count;
  if (!listed.next_page_token.empty()) {
    page.next_link = absl::StrCat(
        "/browse/", name,
        "/?prefix=", PercentEncode(target.id, /*keeps_slashes=*/false),
        "&token=",
        PercentEncode(listed.next_page_token, /*keeps_slashes=*/false));
  }
  return PageOf(request, page);
}

}  // namespace quire
