// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/storage/remote/credential_text.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

#include "codecs/base/status_macros.h"

#include <nlohmann/json.hpp>

namespace quire {
namespace {

constexpr size_t kErrorCodeSizeMax = 64;

absl::Status BadLine(size_t number, absl::string_view expected) {
  return absl::InvalidArgumentError(
      absl::StrCat("line ", number, ": expected ", expected));
}

// True if the section, without its brackets, is that of the profile.
bool IsSectionOf(absl::string_view section, absl::string_view profile,
                 ProfileFile file) {
  section = absl::StripAsciiWhitespace(section);
  if (file == ProfileFile::kCredentials || section == "default") {
    return section == profile;
  }
  const auto words = SplitCommandLine(section);
  return words.ok() && words->size() == 2 && (*words)[0] == "profile" &&
         (*words)[1] == profile;
}

// A code is shown; anything else of an answer may be a secret.
std::string ShownCode(absl::string_view code) {
  const bool is_code =
      code.size() <= kErrorCodeSizeMax &&
      std::all_of(code.begin(), code.end(), [](char c) {
        return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '.' ||
               c == '_';
      });
  return is_code ? std::string(code) : "";
}

absl::StatusOr<absl::Time> ParseExpiry(absl::string_view text) {
  absl::Time time;
  std::string error;
  // absl::ParseTime() knows words, too.
  if (text.empty() ||
      !absl::ascii_isdigit(static_cast<unsigned char>(text.front())) ||
      !absl::ParseTime(absl::RFC3339_full, text, &time, &error)) {
    return absl::InvalidArgumentError(
        "Expiration is not a time such as 2030-01-31T12:00:00Z");
  }
  return time;
}

// Checks what was found. `expiry` is empty for permanent credentials.
absl::StatusOr<StoreCredentials> Checked(StoreCredentials found,
                                         absl::string_view expiry) {
  if (!found.is_set()) {
    return absl::InvalidArgumentError("AccessKeyId is empty");
  }
  QUIRE_RETURN_IF_ERROR(CheckCredentials(found, "the answer"));
  if (!expiry.empty()) {
    QUIRE_ASSIGN_OR_RETURN(found.expiry, ParseExpiry(expiry));
  }
  return found;
}

// Returns the text of the first element with this name and no attributes.
std::optional<absl::string_view> ElementText(absl::string_view text,
                                             absl::string_view name) {
  const std::string open = absl::StrCat("<", name, ">");
  const size_t begin = text.find(open);
  if (begin == absl::string_view::npos) {
    return std::nullopt;
  }
  text.remove_prefix(begin + open.size());
  const size_t end = text.find(absl::StrCat("</", name, ">"));
  if (end == absl::string_view::npos) {
    return std::nullopt;
  }
  return text.substr(0, end);
}

}  // namespace

absl::StatusOr<std::optional<ProfileSettings>> ParseProfile(
    absl::string_view text, absl::string_view profile, ProfileFile file) {
  std::optional<ProfileSettings> settings;
  bool is_ours = false;
  // The setting that an indented line continues, and its own indentation.
  std::string* value = nullptr;
  bool has_setting = false;
  size_t indentation = 0;
  size_t number = 0;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    const size_t indented = line.find_first_not_of(" \t");
    line = absl::StripAsciiWhitespace(line);
    if (line.empty() || line.front() == '#' || line.front() == ';') {
      continue;
    }
    if (has_setting && indented > indentation) {
      if (value != nullptr) {
        absl::StrAppend(value, "\n", line);
      }
      continue;
    }
    if (line.front() == '[') {
      if (line.back() != ']') {
        return BadLine(number, "[PROFILE]");
      }
      is_ours = IsSectionOf(line.substr(1, line.size() - 2), profile, file);
      if (is_ours && !settings.has_value()) {
        settings.emplace();
      }
      has_setting = false;
      continue;
    }
    const size_t delimiter = line.find_first_of("=:");
    if (delimiter == absl::string_view::npos) {
      return BadLine(number, "NAME = VALUE");
    }
    has_setting = true;
    indentation = indented;
    value = nullptr;
    if (is_ours) {
      value = &(*settings)[absl::AsciiStrToLower(
          absl::StripAsciiWhitespace(line.substr(0, delimiter)))];
      *value =
          std::string(absl::StripAsciiWhitespace(line.substr(delimiter + 1)));
    }
  }
  return settings;
}

absl::StatusOr<std::vector<std::string>> SplitCommandLine(
    absl::string_view text) {
  std::vector<std::string> words;
  std::string word;
  bool is_word = false;
  // The quote that is open, or 0.
  char quote = '\0';
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '\\' && quote != '\'') {
      if (++i == text.size()) {
        return absl::InvalidArgumentError("ends with a backslash");
      }
      if (quote == '"' && text[i] != '"' && text[i] != '\\') {
        word += '\\';
      }
      word += text[i];
      is_word = true;
    } else if (quote != '\0') {
      if (c == quote) {
        quote = '\0';
      } else {
        word += c;
      }
    } else if (c == '"' || c == '\'') {
      quote = c;
      is_word = true;
    } else if (c == ' ' || c == '\t' || c == '\r' || c == '\n') {
      if (std::exchange(is_word, false)) {
        words.push_back(std::exchange(word, {}));
      }
    } else {
      word += c;
      is_word = true;
    }
  }
  if (quote != '\0') {
    return absl::InvalidArgumentError("has a quote that is not closed");
  }
  if (is_word) {
    words.push_back(std::move(word));
  }
  return words;
}

absl::StatusOr<StoreCredentials> ParseCredentialJson(absl::string_view text,
                                                     CredentialJson kind) {
  const nlohmann::json object = nlohmann::json::parse(
      text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
  if (!object.is_object()) {
    return absl::InvalidArgumentError("the answer is not a JSON object");
  }
  const auto member = [&object](const char* name) -> const std::string* {
    const auto found = object.find(name);
    return found == object.end()
               ? nullptr
               : found->get_ptr<const nlohmann::json::string_t*>();
  };
  const bool is_role = kind == CredentialJson::kRole;
  if (!is_role) {
    const auto version = object.find("Version");
    if (version == object.end() || *version != 1) {
      return absl::InvalidArgumentError("Version is not 1");
    }
  }
  const char* const token_name = is_role ? "Token" : "SessionToken";
  for (const char* const name :
       {"AccessKeyId", "SecretAccessKey", token_name, "Expiration"}) {
    const auto found = object.find(name);
    const bool may_lack = !is_role && (name == token_name ||
                                       absl::string_view(name) == "Expiration");
    if (found == object.end() || found->is_null()) {
      if (may_lack) {
        continue;
      }
      const std::string* const code = member("Code");
      const std::string shown = code == nullptr ? "" : ShownCode(*code);
      return absl::InvalidArgumentError(absl::StrCat(
          "the answer has no ", name,
          shown.empty() ? "" : absl::StrCat(" (Code \"", shown, "\")")));
    }
    if (!found->is_string()) {
      return absl::InvalidArgumentError(absl::StrCat(name, " is not a string"));
    }
  }
  const std::string* const token = member(token_name);
  const std::string* const expiry = member("Expiration");
  if (expiry != nullptr && expiry->empty()) {
    return ParseExpiry(*expiry).status();
  }
  return Checked({.access_key_id = *member("AccessKeyId"),
                  .secret_access_key = *member("SecretAccessKey"),
                  .session_token = token == nullptr ? "" : *token},
                 expiry == nullptr ? "" : *expiry);
}

absl::StatusOr<StoreCredentials> ParseAssumedRole(absl::string_view text) {
  const auto body = ElementText(text, "Credentials");
  if (!body.has_value()) {
    return absl::InvalidArgumentError("the answer has no Credentials");
  }
  const auto value = [&body](const char* name) -> absl::StatusOr<std::string> {
    const auto found = ElementText(*body, name);
    // Nested elements and references are none of the values.
    if (!found.has_value() || found->empty() ||
        found->find_first_of("<>&") != absl::string_view::npos) {
      return absl::InvalidArgumentError(
          absl::StrCat("the answer has no ", name));
    }
    return std::string(*found);
  };
  StoreCredentials found;
  QUIRE_ASSIGN_OR_RETURN(found.access_key_id, value("AccessKeyId"));
  QUIRE_ASSIGN_OR_RETURN(found.secret_access_key, value("SecretAccessKey"));
  QUIRE_ASSIGN_OR_RETURN(found.session_token, value("SessionToken"));
  QUIRE_ASSIGN_OR_RETURN(const std::string expiry, value("Expiration"));
  return Checked(std::move(found), expiry);
}

std::string ParseStsErrorCode(absl::string_view text) {
  const auto error = ElementText(text, "Error");
  const auto code =
      error.has_value() ? ElementText(*error, "Code") : std::nullopt;
  return code.has_value() ? ShownCode(*code) : "";
}

}  // namespace quire
