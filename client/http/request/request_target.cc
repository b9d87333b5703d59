// SPDX-License-Identifier: Apache-2.0
#include "client/http/request/request_target.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

#include "client/quire/capture_time.h"
#include "codecs/base/archive_name.h"
#include "codecs/base/printable_text.h"
#include "codecs/base/status_macros.h"
#include "codecs/filter/field_value.h"
#include "codecs/filter/filter.h"

namespace quire {
namespace {

// Limits of the API.
constexpr size_t kRecordTypesMax = 16;
constexpr size_t kRecordTypeSizeMax = 256;
constexpr size_t kDelimiterSizeMax = 256;
constexpr size_t kFieldsMax = 32;
constexpr size_t kUuidSizeMax = 64;
// Archives of one query.
constexpr size_t kCdxArchivesMax = 64;

int HexDigit(char c) {
  if (c >= '0' && c <= '9') {
    return c - '0';
  }
  const char lower = absl::ascii_tolower(static_cast<unsigned char>(c));
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

absl::Status NoSuchPath() {
  return absl::NotFoundError(
      "no resource has this path; there are /browse/ for people, /v1/, /v1/A, "
      "/v1/A/doc/ID, /v1/A/ordinal/N, /v1/A/page/ID, /v1/A/space, /v1/A/list, "
      "/v1/A/cdx, /browse/A/PREFIX and /files/NAME, where A is an archive");
}

bool IsNumber(absl::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return absl::ascii_isdigit(static_cast<unsigned char>(c));
  });
}

absl::Status Malformed(absl::string_view name, absl::string_view expected,
                       absl::string_view found) {
  return absl::InvalidArgumentError(
      absl::StrCat(name, " must be ", expected, ", got ", QuotedText(found)));
}

absl::StatusOr<NamedArchive> ParseNamedArchive(absl::string_view text) {
  NamedArchive archive;
  const size_t at = std::min(text.find('@'), text.size());
  if (at < text.size()) {
    const absl::string_view uuid = text.substr(at + 1);
    if (!IsArchiveUuid(uuid)) {
      return absl::NotFoundError("no archive has this uuid");
    }
    archive.uuid = std::string(uuid);
  }
  const absl::string_view name = text.substr(0, at);
  if (!IsArchiveName(name)) {
    return absl::NotFoundError("no archive has this name");
  }
  archive.name = std::string(name);
  return archive;
}

absl::Status ParseArchives(absl::string_view segment, bool takes_several,
                           RequestTarget& target) {
  QUIRE_ASSIGN_OR_RETURN(const std::string decoded, PercentDecode(segment));
  std::vector<absl::string_view> names = {decoded};
  if (takes_several) {
    names = absl::StrSplit(decoded, ',');
  }
  if (names.size() > kCdxArchivesMax) {
    return absl::InvalidArgumentError(
        absl::StrCat("a query is of at most ", kCdxArchivesMax, " archives"));
  }
  std::vector<NamedArchive> archives;
  for (const absl::string_view name : names) {
    QUIRE_ASSIGN_OR_RETURN(archives.emplace_back(), ParseNamedArchive(name));
  }
  target.archive = archives.front().name;
  // Answers of named states can be kept for long, if all are named.
  const bool are_named = std::all_of(
      archives.begin(), archives.end(),
      [](const NamedArchive& archive) { return !archive.uuid.empty(); });
  target.uuid = are_named ? archives.front().uuid : "";
  if (takes_several) {
    target.archives = std::move(archives);
  }
  return absl::OkStatus();
}

absl::Status ParseOrdinal(absl::string_view text, RequestTarget& target) {
  uint64_t ordinal = 0;
  if (!IsNumber(text)) {
    return Malformed("an ordinal", "a number from 0", text);
  }
  if (!absl::SimpleAtoi(text, &ordinal)) {
    return absl::NotFoundError("no document has an ordinal over 2^64 - 1");
  }
  target.ordinal = ordinal;
  return absl::OkStatus();
}

absl::Status ParsePath(absl::string_view path, RequestTarget& target) {
  if (absl::ConsumePrefix(&path, "/files/")) {
    target.resource = Resource::kFile;
    QUIRE_ASSIGN_OR_RETURN(target.id, PercentDecode(path));
    return absl::OkStatus();
  }
  const bool is_browse = absl::ConsumePrefix(&path, "/browse/");
  if (!is_browse && !absl::ConsumePrefix(&path, "/v1/")) {
    return NoSuchPath();
  }
  if (path.empty()) {
    target.resource =
        is_browse ? Resource::kBrowseArchives : Resource::kArchives;
    return absl::OkStatus();
  }
  const size_t slash = path.find('/');
  const bool is_cdx = !is_browse && slash != absl::string_view::npos &&
                      path.substr(slash + 1) == "cdx";
  QUIRE_RETURN_IF_ERROR(
      ParseArchives(path.substr(0, slash), /*takes_several=*/is_cdx, target));
  if (slash == absl::string_view::npos) {
    target.resource = is_browse ? Resource::kBrowse : Resource::kArchive;
    return absl::OkStatus();
  }
  path.remove_prefix(slash + 1);
  if (is_cdx) {
    target.resource = Resource::kCaptures;
    return absl::OkStatus();
  }
  if (is_browse) {
    target.resource = Resource::kBrowse;
  } else if (path == "space" || path == "list") {
    target.resource = path == "space" ? Resource::kSpace : Resource::kList;
    return absl::OkStatus();
  } else if (absl::ConsumePrefix(&path, "ordinal/")) {
    target.resource = Resource::kDocument;
    return ParseOrdinal(path, target);
  } else if (absl::ConsumePrefix(&path, "doc/")) {
    target.resource = Resource::kDocument;
  } else if (absl::ConsumePrefix(&path, "page/")) {
    target.resource = Resource::kPage;
  } else if (absl::ConsumePrefix(&path, "file/")) {
    target.resource = Resource::kDeposit;
  } else {
    return NoSuchPath();
  }
  QUIRE_ASSIGN_OR_RETURN(target.id, PercentDecode(path));
  return absl::OkStatus();
}

bool Accepts(const RequestTarget& target, absl::string_view name) {
  switch (target.resource) {
    case Resource::kDocument:
    case Resource::kPage:
      return !target.ordinal.has_value() &&
             (name == "at" || name == "type" || name == "occurrence");
    case Resource::kList:
      return name == "prefix" || name == "delimiter" || name == "limit" ||
             name == "token" || name == "fields" || name == "where";
    case Resource::kCaptures:
      return CdxQueryParser::Accepts(name);
    case Resource::kBrowse:
      return name == "prefix" || name == "token";
    case Resource::kArchives:
    case Resource::kArchive:
    case Resource::kSpace:
    case Resource::kBrowseArchives:
    case Resource::kDeposit:
    case Resource::kFile:
      return false;
  }
  return false;
}

absl::Status TakeTypes(absl::string_view value, RequestTarget& target) {
  for (const absl::string_view type : absl::StrSplit(value, ',')) {
    if (type.size() > kRecordTypeSizeMax ||
        target.record_types.size() == kRecordTypesMax) {
      return absl::InvalidArgumentError(absl::StrCat(
          "type must name at most ", kRecordTypesMax,
          " record types of at most ", kRecordTypeSizeMax, " bytes"));
    }
    target.record_types.push_back(absl::AsciiStrToLower(type));
  }
  return absl::OkStatus();
}

absl::Status TakeFields(absl::string_view value, RequestTarget& target) {
  std::vector<std::string>& fields = target.fields;
  for (const absl::string_view name : absl::StrSplit(value, ',')) {
    const absl::Status status = CheckFieldName(name);
    if (!status.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("fields: ", status.message()));
    }
    if (std::find(fields.begin(), fields.end(), name) == fields.end()) {
      fields.emplace_back(name);
    }
  }
  return fields.size() <= kFieldsMax
             ? absl::OkStatus()
             : absl::InvalidArgumentError(
                   absl::StrCat("fields must have at most ", kFieldsMax,
                                " names, got ", fields.size()));
}

absl::Status TakeWhere(std::string value, RequestTarget& target) {
  const absl::Status status = Filter::Parse(value).status();
  if (!status.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("where: ", status.message()));
  }
  target.where = std::move(value);
  return absl::OkStatus();
}

absl::Status TakeParameter(absl::string_view name, std::string value,
                           RequestTarget& target) {
  const absl::string_view text(value.data(), value.size());
  if (name == "type") {
    return TakeTypes(text, target);
  }
  if (name == "fields") {
    return TakeFields(text, target);
  }
  if (name == "where") {
    return TakeWhere(std::move(value), target);
  }
  if (name == "at") {
    QUIRE_ASSIGN_OR_RETURN(const CapturePeriod period,
                           ParseCapturePeriod(text));
    target.at_time_ms = period.last_ms;
  } else if (name == "occurrence") {
    uint64_t occurrence = 0;
    if (!IsNumber(text) || !absl::SimpleAtoi(text, &occurrence)) {
      return Malformed(name, "a number from 0", text);
    }
    target.occurrence = occurrence;
  } else if (name == "limit") {
    uint32_t limit = 0;
    if (!IsNumber(text) || !absl::SimpleAtoi(text, &limit) || limit == 0) {
      return Malformed(name, "a number from 1 to 4294967295", text);
    }
    target.limit = limit;
  } else if (name == "delimiter") {
    if (text.empty() || text.size() > kDelimiterSizeMax) {
      return Malformed(name, "1 to 256 bytes", text);
    }
    target.delimiter = std::move(value);
  } else if (name == "prefix") {
    if (!target.id.empty()) {
      return absl::InvalidArgumentError(
          "the prefix is in the path and in the query; give one");
    }
    target.id = std::move(value);
  } else {
    target.token = std::move(value);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> DecodeParameter(absl::string_view text) {
  std::string spaced(text);
  std::replace(spaced.begin(), spaced.end(), '+', ' ');
  return PercentDecode({spaced.data(), spaced.size()});
}

absl::Status ParseQuery(absl::string_view query, RequestTarget& target) {
  std::set<std::string> seen;
  CdxQueryParser cdx;
  const bool is_cdx = target.resource == Resource::kCaptures;
  for (const absl::string_view pair :
       absl::StrSplit(query, '&', absl::SkipEmpty())) {
    const size_t equals = std::min(pair.find('='), pair.size());
    QUIRE_ASSIGN_OR_RETURN(const std::string name,
                           DecodeParameter(pair.substr(0, equals)));
    const absl::string_view name_view(name.data(), name.size());
    if (!Accepts(target, name_view)) {
      const bool has_id = target.resource == Resource::kDocument ||
                          target.resource == Resource::kPage;
      return absl::InvalidArgumentError(
          absl::StrCat("this resource has no parameter ", QuotedText(name_view),
                       has_id ? "; write a ? of the id as %3F, & as %26" : ""));
    }
    if (!seen.insert(name).second && name != "type" &&
        !(is_cdx && CdxQueryParser::IsRepeatable(name))) {
      return absl::InvalidArgumentError(
          absl::StrCat(name, " must be given once"));
    }
    QUIRE_ASSIGN_OR_RETURN(
        std::string value,
        DecodeParameter(pair.substr(std::min(equals + 1, pair.size()))));
    QUIRE_RETURN_IF_ERROR(
        is_cdx ? cdx.Take(name, value)
               : TakeParameter(name_view, std::move(value), target));
  }
  if (is_cdx) {
    QUIRE_ASSIGN_OR_RETURN(target.cdx, std::move(cdx).Finish());
  }
  if (target.occurrence.has_value() &&
      (target.at_time_ms.has_value() || !target.record_types.empty())) {
    return absl::InvalidArgumentError(
        "occurrence excludes at and type: it counts documents of any type and "
        "time");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<RequestTarget> ParseRequestTarget(absl::string_view raw) {
  // Clients send no fragment; one that does means a `#` in an id.
  const size_t question = std::min(raw.find('?'), raw.size());
  RequestTarget target;
  QUIRE_RETURN_IF_ERROR(ParsePath(raw.substr(0, question), target));
  QUIRE_RETURN_IF_ERROR(
      ParseQuery(raw.substr(std::min(question + 1, raw.size())), target));
  return target;
}

bool IsArchiveUuid(absl::string_view text) {
  return !text.empty() && text.size() <= kUuidSizeMax &&
         std::all_of(text.begin(), text.end(), [](char c) {
           return absl::ascii_isalnum(static_cast<unsigned char>(c)) ||
                  c == '-';
         });
}

absl::StatusOr<std::string> ParseBasePath(absl::string_view text) {
  constexpr size_t kBasePathSizeMax = 256;
  absl::string_view path = text;
  absl::ConsumeSuffix(&path, "/");
  bool is_valid =
      path.size() <= kBasePathSizeMax && (path.empty() || path.front() == '/');
  for (const absl::string_view segment :
       absl::StrSplit(path.substr(path.empty() ? 0 : 1), '/')) {
    is_valid = is_valid && (path.empty() || !segment.empty()) &&
               segment != "." && segment != ".." &&
               PercentEncode(segment, /*keeps_slashes=*/false) == segment;
  }
  if (!is_valid) {
    return Malformed("the path of the gateway",
                     "a path such as /archives, of letters, digits and -._~",
                     text);
  }
  return std::string(path);
}

absl::StatusOr<std::string> PercentDecode(absl::string_view text) {
  std::string bytes;
  bytes.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      bytes.push_back(text[i]);
      continue;
    }
    const int high = text.size() - i > 2 ? HexDigit(text[i + 1]) : -1;
    const int low = text.size() - i > 2 ? HexDigit(text[i + 2]) : -1;
    if (high < 0 || low < 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("% must be followed by two hex digits, got ",
                       QuotedText(text.substr(i, 3))));
    }
    bytes.push_back(static_cast<char>((high << 4) | low));
    i += 2;
  }
  return bytes;
}

std::string PercentEncode(absl::string_view bytes, bool keeps_slashes) {
  static constexpr char kHexDigits[] = "0123456789ABCDEF";
  std::string text;
  text.reserve(bytes.size());
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    if (absl::ascii_isalnum(byte) || c == '-' || c == '.' || c == '_' ||
        c == '~' || (c == '/' && keeps_slashes)) {
      text.push_back(c);
    } else {
      text.push_back('%');
      text.push_back(kHexDigits[byte >> 4]);
      text.push_back(kHexDigits[byte & 15]);
    }
  }
  return text;
}

std::optional<absl::string_view> TakeAuthority(absl::string_view& raw) {
  static constexpr absl::string_view kScheme = "http://";
  if (!absl::StartsWithIgnoreCase(raw, kScheme)) {
    return std::nullopt;
  }
  raw.remove_prefix(kScheme.size());
  const size_t end = std::min(raw.find_first_of("/?"), raw.size());
  const absl::string_view authority = raw.substr(0, end);
  raw.remove_prefix(end);
  return authority;
}

}  // namespace quire
