// SPDX-License-Identifier: Apache-2.0
#include "client/cli/document_filter.h"

#include <algorithm>
#include <array>
#include <variant>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

#include "codecs/base/printable_text.h"
#include "codecs/base/status_macros.h"
#include "codecs/filter/short_rule.h"

namespace quire {
namespace {

constexpr size_t kStatusDigits = 3;

// Marks all statuses of a pattern such as "404", "30x" or "2xx".
absl::Status MarkStatuses(absl::string_view pattern,
                          std::bitset<1000>& statuses) {
  const bool is_pattern =
      pattern.size() == kStatusDigits &&
      std::all_of(pattern.begin(), pattern.end(), [](char c) {
        return absl::ascii_isdigit(static_cast<unsigned char>(c)) || c == 'x' ||
               c == 'X';
      });
  if (!is_pattern) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--status must be three digits, where x stands for any digit, such as "
        "200 or 4xx or 200,30x; got ",
        QuotedText(pattern)));
  }
  for (size_t code = 0; code < statuses.size(); ++code) {
    const std::array<char, kStatusDigits> digits = {
        static_cast<char>('0' + code / 100),
        static_cast<char>('0' + code / 10 % 10),
        static_cast<char>('0' + code % 10)};
    bool matches = true;
    for (size_t i = 0; i < kStatusDigits; ++i) {
      matches &=
          pattern[i] == digits[i] ||
          absl::ascii_tolower(static_cast<unsigned char>(pattern[i])) == 'x';
    }
    if (matches) {
      statuses.set(code);
    }
  }
  return absl::OkStatus();
}

}  // namespace

std::vector<CLI::Option*> AddTimeOptions(CLI::App& subcommand,
                                         FilterSettings& settings) {
  return {subcommand
              .add_option("--from", settings.from,
                          "Earliest capture time (UTC): 2022, 2022-06 or "
                          "2022-06-15T14:30+02:00")
              ->type_name("TIME"),
          subcommand
              .add_option("--to", settings.to,
                          "Latest capture time (UTC); 2022 includes all of "
                          "that year")
              ->type_name("TIME")};
}

std::vector<CLI::Option*> AddFilterOptions(CLI::App& subcommand,
                                           FilterSettings& settings) {
  std::vector<CLI::Option*> options = {
      subcommand
          .add_option("--record-type", settings.record_types,
                      "WARC record types, such as response,revisit; '' for "
                      "documents without one")
          ->type_name("TYPE,...")
          ->allow_extra_args(false),
      subcommand
          .add_option("--status", settings.statuses,
                      "HTTP statuses: 200, 200,301 or 4xx; reads up to 1 "
                      "KiB per record")
          ->type_name("CODE,...")
          ->allow_extra_args(false),
      subcommand
          .add_option("--media-type", settings.media_types,
                      "Media types: text/html or image/*")
          ->type_name("TYPE,...")
          ->allow_extra_args(false)};
  for (CLI::Option* time : AddTimeOptions(subcommand, settings)) {
    options.push_back(time);
  }
  return options;
}

std::vector<CLI::Option*> AddWhereOptions(CLI::App& subcommand,
                                          FilterSettings& settings) {
  CLI::Option* const where =
      subcommand
          .add_option("--where", settings.where,
                      "Fields, attributes and hosts: 'lang = \"de\" and time "
                      ">= 2024-01-01', 'domain \"news.test\"'")
          ->type_name("FILTER");
  CLI::Option* const rule =
      subcommand
          .add_option("--rule", settings.where,
                      "Short form of --where: 'domain news.test 2019..2021'")
          ->type_name("RULE")
          ->excludes(where)
          ->transform(CLI::Validator(ReplaceShortRule, ""));
  return {where, rule};
}

absl::StatusOr<CapturePeriod> ParseNamedTime(const char* option,
                                             const std::string& text) {
  absl::StatusOr<CapturePeriod> period = ParseCapturePeriod(text);
  if (!period.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat(option, ": ", period.status().message()));
  }
  return period;
}

absl::StatusOr<std::vector<std::string>> ParseRecordTypes(
    const std::vector<std::string>& values) {
  std::vector<std::string> types;
  for (const std::string& value : values) {
    for (const absl::string_view type : absl::StrSplit(value, ',')) {
      if (type.empty() && !value.empty()) {
        return absl::InvalidArgumentError(
            absl::StrCat("--record-type must be record types with a comma "
                         "between them, got ",
                         QuotedText(value)));
      }
      types.push_back(absl::AsciiStrToLower(type));
    }
  }
  return types;
}

absl::StatusOr<DocumentFilter> DocumentFilter::Make(
    const FilterSettings& settings) {
  DocumentFilter filter;
  QUIRE_ASSIGN_OR_RETURN(filter.record_types_,
                         ParseRecordTypes(settings.record_types));
  for (const std::string& list : settings.statuses) {
    QUIRE_RETURN_IF_ERROR(filter.AddStatuses(list));
  }
  for (const std::string& list : settings.media_types) {
    QUIRE_RETURN_IF_ERROR(filter.AddMediaTypes(list));
  }
  QUIRE_RETURN_IF_ERROR(filter.SetTimes(settings));
  QUIRE_RETURN_IF_ERROR(filter.SetFields(settings));
  return filter;
}

absl::Status DocumentFilter::AddStatuses(const std::string& list) {
  if (!statuses_.has_value()) {
    statuses_.emplace();
  }
  for (const absl::string_view pattern : absl::StrSplit(list, ',')) {
    QUIRE_RETURN_IF_ERROR(
        MarkStatuses(absl::StripAsciiWhitespace(pattern), *statuses_));
  }
  return absl::OkStatus();
}

absl::Status DocumentFilter::AddMediaTypes(const std::string& list) {
  for (const absl::string_view element : absl::StrSplit(list, ',')) {
    const std::string pattern =
        absl::AsciiStrToLower(absl::StripAsciiWhitespace(element));
    const std::vector<std::string> parts = absl::StrSplit(pattern, '/');
    const bool is_valid =
        parts.size() == 2 && !parts[0].empty() && !parts[1].empty() &&
        !absl::StrContains(parts[0], '*') &&
        (parts[1] == "*" || !absl::StrContains(parts[1], '*'));
    if (!is_valid) {
      return absl::InvalidArgumentError(absl::StrCat(
          "--media-type must be TYPE/SUBTYPE or TYPE/*, such as text/html or "
          "image/*; got ",
          QuotedText(element)));
    }
    media_types_.push_back({.type = parts[0], .subtype = parts[1]});
  }
  return absl::OkStatus();
}

absl::Status DocumentFilter::SetTimes(const FilterSettings& settings) {
  if (settings.from.has_value()) {
    QUIRE_ASSIGN_OR_RETURN(const CapturePeriod period,
                           ParseNamedTime("--from", *settings.from));
    from_ms_ = period.first_ms;
  }
  if (settings.to.has_value()) {
    QUIRE_ASSIGN_OR_RETURN(const CapturePeriod period,
                           ParseNamedTime("--to", *settings.to));
    to_ms_ = period.last_ms;
  }
  if (from_ms_.has_value() && to_ms_.has_value() && *from_ms_ > *to_ms_) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--from must not be later than --to, got ", QuotedText(*settings.from),
        " and ", QuotedText(*settings.to)));
  }
  return absl::OkStatus();
}

absl::Status DocumentFilter::SetFields(const FilterSettings& settings) {
  for (const std::string& list : settings.fields) {
    for (const absl::string_view name : absl::StrSplit(list, ',')) {
      const absl::Status status = CheckFieldName(name);
      if (!status.ok()) {
        return absl::InvalidArgumentError(
            absl::StrCat("--fields: ", status.message()));
      }
      if (std::find(fields_.begin(), fields_.end(), name) == fields_.end()) {
        fields_.emplace_back(name);
      }
    }
  }
  shown_field_count_ = fields_.size();
  if (!settings.where.has_value()) {
    return absl::OkStatus();
  }
  absl::StatusOr<Filter> where = Filter::Parse(*settings.where);
  if (!where.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--where: ", where.status().message()));
  }
  for (std::string& name : where->field_names()) {
    if (std::find(fields_.begin(), fields_.end(), name) == fields_.end()) {
      fields_.push_back(std::move(name));
    }
  }
  where_.emplace(*std::move(where), fields_);
  return absl::OkStatus();
}

absl::Status DocumentFilter::CheckWhere(
    absl::Span<const FieldColumn> columns) const {
  const absl::Status status =
      where_.has_value() ? where_->filter().Check(columns) : absl::OkStatus();
  return status.ok() ? status
                     : absl::InvalidArgumentError(
                           absl::StrCat("--where: ", status.message()));
}

bool DocumentFilter::is_set() const {
  return !record_types_.empty() || !media_types_.empty() ||
         statuses_.has_value() || from_ms_.has_value() || to_ms_.has_value() ||
         where_.has_value();
}

bool DocumentFilter::Passes(const v1::Document& document) const {
  return PassesOtherThanMediaType(document) && PassesMediaType(document) &&
         (!where_.has_value() || where_->Matches(document));
}

bool DocumentFilter::PassesOtherThanMediaType(
    const v1::Document& document) const {
  const bool is_passed_by_default =
      record_types_.empty() && document.record_type() != kWithdrawnRecordType;
  if (!is_passed_by_default &&
      std::find(record_types_.begin(), record_types_.end(),
                document.record_type()) == record_types_.end()) {
    return false;
  }
  if ((from_ms_.has_value() || to_ms_.has_value()) &&
      !document.has_capture_time_ms()) {
    return false;
  }
  return document.capture_time_ms() >= from_ms_.value_or(INT64_MIN) &&
         document.capture_time_ms() <= to_ms_.value_or(INT64_MAX);
}

bool DocumentFilter::PassesMediaType(const v1::Document& document) const {
  if (media_types_.empty()) {
    return true;
  }
  const absl::string_view text = document.media_type();
  const std::string type = absl::AsciiStrToLower(
      absl::StripAsciiWhitespace(text.substr(0, text.find(';'))));
  const size_t slash = type.find('/');
  if (slash == std::string::npos) {
    return false;
  }
  return std::any_of(
      media_types_.begin(), media_types_.end(),
      [&](const MediaPattern& pattern) {
        return absl::string_view(type).substr(0, slash) == pattern.type &&
               (pattern.subtype == "*" ||
                absl::string_view(type).substr(slash + 1) == pattern.subtype);
      });
}

bool DocumentFilter::PassesStatus(std::optional<int> status) const {
  if (!statuses_.has_value()) {
    return true;
  }
  return status.has_value() && *status >= 0 &&
         static_cast<size_t>(*status) < statuses_->size() &&
         statuses_->test(static_cast<size_t>(*status));
}

void DocumentFilter::Select(DocumentKey& key) const {
  if (!std::holds_alternative<std::string>(key.name) ||
      key.occurrence.has_value()) {
    return;
  }
  key.record_types = record_types_;
  key.at_time_ms = to_ms_;
}

}  // namespace quire
