// SPDX-License-Identifier: Apache-2.0
#include "client/http/request/cdx_query.h"

#include <re2/re2.h>

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/time/civil_time.h"
#include "absl/time/time.h"

#include "client/quire/capture_time.h"
#include "codecs/base/json_text.h"
#include "codecs/base/printable_text.h"
#include "codecs/base/status_macros.h"

namespace quire {
namespace {

// Compiled expressions take at most this much memory each.
constexpr int64_t kExpressionMemoryBytesMax = int64_t{1} << 20;
constexpr size_t kFiltersMax = 16;
// Digits of a whole time.
constexpr size_t kTimeDigits = 14;

struct FieldName {
  absl::string_view name;
  CdxField field;
};

constexpr std::array kFieldNames = {
    FieldName{"urlkey", CdxField::kKey},
    FieldName{"timestamp", CdxField::kTime},
    FieldName{"url", CdxField::kUrl},
    FieldName{"mime", CdxField::kMime},
    FieldName{"status", CdxField::kStatus},
    FieldName{"digest", CdxField::kDigest},
    FieldName{"redirecturl", CdxField::kRedirect},
    FieldName{"robotflags", CdxField::kRobots},
    FieldName{"length", CdxField::kLength},
    FieldName{"offset", CdxField::kOffset},
    FieldName{"filename", CdxField::kFileName},
    // Names of OutbackCDX.
    FieldName{"original", CdxField::kUrl},
    FieldName{"mimetype", CdxField::kMime},
    FieldName{"statuscode", CdxField::kStatus},
};

absl::string_view NameOf(CdxField field) {
  return std::find_if(
             kFieldNames.begin(), kFieldNames.end(),
             [field](const FieldName& known) { return known.field == field; })
      ->name;
}

absl::StatusOr<CdxField> ParseField(absl::string_view name) {
  for (const FieldName& known : kFieldNames) {
    if (known.name == name) {
      return known.field;
    }
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "no field of captures is named ", QuotedText(name), "; there are ",
      absl::StrJoin(kFieldNames, ", ",
                    [](std::string* out, const FieldName& known) {
                      absl::StrAppend(out, known.name);
                    })));
}

std::string Timestamp(int64_t time_ms) {
  return absl::FormatTime(
      "%E4Y%m%d%H%M%S",
      absl::FromUnixSeconds(time_ms / 1000 - (time_ms % 1000 < 0 ? 1 : 0)),
      absl::UTCTimeZone());
}

absl::Status Malformed(absl::string_view name, absl::string_view expected,
                       absl::string_view found) {
  return absl::InvalidArgumentError(
      absl::StrCat(name, " must be ", expected, ", got ", QuotedText(found)));
}

absl::StatusOr<CapturePeriod> PeriodOf(absl::string_view name,
                                       absl::string_view value) {
  // Longer times count by their first 14 digits, as in OutbackCDX.
  const size_t digits = value.find_first_not_of("0123456789");
  const absl::StatusOr<CapturePeriod> period = ParseCapturePeriod(
      digits == value.npos ? value.substr(0, kTimeDigits) : value);
  return period.ok() ? period
                     : Malformed(name,
                                 "a time of up to 14 digits, such as 2024 or "
                                 "20240131235959",
                                 value);
}

// Fields of a line of text, in the order of CDX-11.
constexpr std::array kTextFields = {
    CdxField::kKey,      CdxField::kTime,    CdxField::kUrl,
    CdxField::kMime,     CdxField::kStatus,  CdxField::kDigest,
    CdxField::kRedirect, CdxField::kRobots,  CdxField::kLength,
    CdxField::kOffset,   CdxField::kFileName};
// Fields of a line of JSON; a line of CDXJ begins with the first two.
constexpr std::array kJsonFields = {
    CdxField::kKey,    CdxField::kTime,   CdxField::kUrl,
    CdxField::kMime,   CdxField::kStatus, CdxField::kDigest,
    CdxField::kLength, CdxField::kOffset, CdxField::kFileName};

bool Has(const std::vector<CdxField>& fields, CdxField field) {
  return fields.empty() ||
         std::find(fields.begin(), fields.end(), field) != fields.end();
}

std::string JsonLine(const CdxCapture& capture, const CdxQuery& query) {
  std::string json = "{";
  for (const CdxField field : kJsonFields) {
    const bool is_before =
        query.output == CdxOutput::kCdxj &&
        (field == CdxField::kKey || field == CdxField::kTime);
    const std::string value = capture.Value(field);
    if (is_before || value.empty() || !Has(query.fields, field)) {
      continue;
    }
    absl::StrAppend(&json, json.size() == 1 ? "" : ", ",
                    JsonString(NameOf(field)), ": ", JsonString(value));
  }
  return json + "}\n";
}

}  // namespace

std::string CdxCapture::Value(CdxField field) const {
  switch (field) {
    case CdxField::kKey:
      return key;
    case CdxField::kTime:
      return Timestamp(time_ms);
    case CdxField::kUrl:
      return url;
    case CdxField::kMime:
      return mime;
    case CdxField::kStatus:
      return status;
    case CdxField::kDigest:
      return digest;
    case CdxField::kRedirect:
    case CdxField::kRobots:
      return "";
    case CdxField::kLength:
      return absl::StrCat(length);
    case CdxField::kOffset:
      return absl::StrCat(offset);
    case CdxField::kFileName:
      return file_name;
  }
  return "";
}

absl::StatusOr<CdxFilter> CdxFilter::Parse(absl::string_view text) {
  CdxFilter filter;
  absl::string_view rest = text;
  filter.is_negated_ = absl::ConsumePrefix(&rest, "!");
  if (absl::ConsumePrefix(&rest, "=")) {
    filter.kind_ = Kind::kEquals;
  } else if (absl::ConsumePrefix(&rest, "~")) {
    filter.kind_ = Kind::kMatches;
  }
  const size_t colon = rest.find(':');
  if (colon == rest.npos) {
    return Malformed("filter", "[!][=|~]FIELD:TEXT, such as =status:200", text);
  }
  QUIRE_ASSIGN_OR_RETURN(filter.field_, ParseField(rest.substr(0, colon)));
  filter.text_ = std::string(rest.substr(colon + 1));
  if (filter.kind_ == Kind::kMatches) {
    re2::RE2::Options options(re2::RE2::Quiet);
    options.set_encoding(re2::RE2::Options::EncodingLatin1);
    options.set_max_mem(kExpressionMemoryBytesMax);
    const auto expression =
        std::make_shared<const re2::RE2>(filter.text_, options);
    if (!expression->ok()) {
      return Malformed("filter",
                       absl::StrCat("an expression of RE2 after the colon (",
                                    expression->error(), ")"),
                       text);
    }
    filter.expression_ = expression;
  }
  return filter;
}

bool CdxFilter::Matches(const CdxCapture& capture) const {
  const std::string value = capture.Value(field_);
  bool is_match = false;
  switch (kind_) {
    case Kind::kContains:
      is_match = absl::StrContains(value, text_);
      break;
    case Kind::kEquals:
      is_match = value == text_;
      break;
    case Kind::kMatches:
      is_match = expression_->Match(value, 0, value.size(),
                                    re2::RE2::ANCHOR_START, nullptr, 0);
      break;
  }
  return is_match != is_negated_;
}

bool CdxQueryParser::Accepts(absl::string_view name) {
  constexpr std::array<absl::string_view, 11> kNames = {
      "url",   "urlkey", "matchType", "from",   "to", "closest",
      "limit", "sort",   "filter",    "output", "fl"};
  return std::find(kNames.begin(), kNames.end(), name) != kNames.end();
}

absl::Status CdxQueryParser::Take(absl::string_view name,
                                  absl::string_view value) {
  if (name == "url") {
    query_.url = std::string(value);
  } else if (name == "urlkey") {
    query_.key = std::string(value);
  } else if (name == "matchType") {
    const std::optional<SurtMatch> match = ParseSurtMatch(value);
    if (!match.has_value()) {
      return Malformed(name, "exact, prefix, host or domain", value);
    }
    query_.match = *match;
    has_match_ = true;
  } else if (name == "from" || name == "to" || name == "closest") {
    // pywb sends an empty one for none.
    if (value.empty()) {
      return absl::OkStatus();
    }
    QUIRE_ASSIGN_OR_RETURN(const CapturePeriod period, PeriodOf(name, value));
    (name == "from" ? query_.from_ms
     : name == "to" ? query_.until_ms
                    : query_.closest_ms) =
        name == "to" ? period.last_ms : period.first_ms;
  } else if (name == "limit") {
    uint64_t limit = 0;
    if (!absl::SimpleAtoi(value, &limit) || limit == 0) {
      return Malformed(name, "a number from 1", value);
    }
    query_.limit = limit;
  } else if (name == "sort") {
    if (value == "closest" || value == "reverse") {
      query_.sort = value == "closest" ? CdxSort::kClosest : CdxSort::kReverse;
    } else if (value != "default") {
      return Malformed(name, "closest, reverse or default", value);
    }
  } else if (name == "filter") {
    if (query_.filters.size() == kFiltersMax) {
      return absl::InvalidArgumentError(
          absl::StrCat("filter must be given at most ", kFiltersMax, " times"));
    }
    QUIRE_ASSIGN_OR_RETURN(query_.filters.emplace_back(),
                           CdxFilter::Parse(value));
  } else if (name == "output") {
    if (value != "cdxj" && value != "json" && value != "text") {
      return Malformed(name, "cdxj, json or text", value);
    }
    query_.output = value == "cdxj"   ? CdxOutput::kCdxj
                    : value == "json" ? CdxOutput::kJson
                                      : CdxOutput::kText;
  } else {
    for (const absl::string_view field : absl::StrSplit(value, ',')) {
      QUIRE_ASSIGN_OR_RETURN(const CdxField parsed, ParseField(field));
      query_.fields.push_back(parsed);
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<CdxQuery> CdxQueryParser::Finish() && {
  if (query_.url.empty() == query_.key.empty()) {
    return absl::InvalidArgumentError(
        "url or urlkey must be given, and not both, such as "
        "url=example.com/page");
  }
  absl::string_view url = query_.url;
  if (!has_match_ && absl::ConsumePrefix(&url, "*.")) {
    query_.match = SurtMatch::kDomain;
  } else if (!has_match_ && absl::ConsumeSuffix(&url, "*")) {
    query_.match = SurtMatch::kPrefix;
  }
  query_.url = std::string(url);
  if (query_.closest_ms.has_value() && query_.sort == CdxSort::kKey) {
    query_.sort = CdxSort::kClosest;
  }
  if (query_.sort == CdxSort::kClosest && !query_.closest_ms.has_value()) {
    query_.sort = CdxSort::kKey;
  }
  if (query_.sort != CdxSort::kKey && query_.match != SurtMatch::kExact) {
    return absl::InvalidArgumentError(
        "closest and sort=reverse need matchType=exact: they sort the captures "
        "of one URL");
  }
  if (query_.sort == CdxSort::kReverse && query_.closest_ms.has_value()) {
    return absl::InvalidArgumentError(
        "closest and sort=reverse must not be given together");
  }
  return std::move(query_);
}

std::string CdxLine(const CdxCapture& capture, const CdxQuery& query) {
  switch (query.output) {
    case CdxOutput::kCdxj:
      return absl::StrCat(capture.key, " ", Timestamp(capture.time_ms), " ",
                          JsonLine(capture, query));
    case CdxOutput::kJson:
      return JsonLine(capture, query);
    case CdxOutput::kText:
      break;
  }
  std::string line;
  const auto append = [&](CdxField field) {
    // A URL may have spaces and line ends.
    const std::string value = absl::StrReplaceAll(
        capture.Value(field),
        {{" ", "%20"}, {"\n", "%0A"}, {"\r", "%0D"}, {"\t", "%09"}});
    absl::StrAppend(&line, line.empty() ? "" : " ",
                    value.empty() ? "-" : value);
  };
  if (query.fields.empty()) {
    std::for_each(kTextFields.begin(), kTextFields.end(), append);
  } else {
    std::for_each(query.fields.begin(), query.fields.end(), append);
  }
  return line + "\n";
}

}  // namespace quire
