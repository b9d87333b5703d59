// SPDX-License-Identifier: Apache-2.0
#include "codecs/surt/surt_key.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

#include "codecs/surt/surt_host.h"

namespace quire {
namespace {

bool IsDigit(char c) {
  return absl::ascii_isdigit(static_cast<unsigned char>(c));
}

bool IsAlphanumeric(char c) {
  return absl::ascii_isalnum(static_cast<unsigned char>(c));
}

bool IsAlpha(char c) {
  return absl::ascii_isalpha(static_cast<unsigned char>(c));
}

// --- Ids of sessions.

constexpr size_t kSessionSize = 32;
constexpr size_t kAspSizeMax = 256;

// Size of the letters and digits at the start of `text`, which is in lower
// case.
template <typename IsPart>
size_t RunSize(absl::string_view text, IsPart is_part) {
  return static_cast<size_t>(
      std::find_if_not(text.begin(), text.end(), is_part) - text.begin());
}

// Size of what a server added to a query for a session, if `text` begins with
// the argument `name` of it; 0 otherwise.
size_t SessionSize(absl::string_view name, absl::string_view text) {
  absl::string_view rest = text.substr(name.size());
  if (name == "cfid=") {
    const size_t token = rest.find('&');
    if (token == 0 || token == rest.npos ||
        !absl::StartsWith(rest.substr(token), "&cftoken=")) {
      return 0;
    }
    const size_t end = std::min(rest.find('&', token + 1), rest.size());
    return end > token + 9 ? name.size() + end : 0;
  }
  size_t size = kSessionSize;
  if (name == "aspsessionid") {
    size = 33;
    if (RunSize(rest.substr(0, 8), IsAlpha) != 8 || rest.substr(8, 1) != "=" ||
        RunSize(rest.substr(9, 24), IsAlpha) != 24) {
      return 0;
    }
  } else if (RunSize(rest.substr(0, size), IsAlphanumeric) != size) {
    return 0;
  }
  rest.remove_prefix(size);
  return rest.empty() || rest[0] == '&' ? name.size() + size : 0;
}

// Drops the last id of each kind. `query` is in lower case.
std::string WithoutSessions(std::string query) {
  for (const absl::string_view name :
       {"jsessionid=", "phpsessid=", "sid=", "aspsessionid", "cfid="}) {
    size_t at = query.rfind(std::string(name));
    while (at != query.npos) {
      const size_t size =
          SessionSize(name, absl::string_view(query).substr(at));
      if (size > 0) {
        // With the & after it.
        query.erase(at, size + 1);
        break;
      }
      at = at == 0 ? query.npos : query.rfind(std::string(name), at - 1);
    }
  }
  return query;
}

// True for 24 letters and digits, or several such as "x(...)".
bool IsAspSession(absl::string_view id) {
  constexpr size_t kIdSize = 24;
  constexpr size_t kPartSize = kIdSize + 3;
  if (RunSize(id, IsAlphanumeric) == id.size()) {
    return id.size() == kIdSize;
  }
  for (; !id.empty(); id.remove_prefix(kPartSize)) {
    if (id.size() < kPartSize || !IsAlpha(id[0]) || id[1] != '(' ||
        RunSize(id.substr(2, kIdSize), IsAlphanumeric) != kIdSize ||
        id[kPartSize - 1] != ')') {
      return false;
    }
  }
  return true;
}

// Removes the last session of ASP.NET: a component in parentheses before a page
// of it. `path` is in lower case.
std::string PathWithoutSessions(std::string path) {
  const size_t page = path.rfind(".aspx");
  size_t begin = page == path.npos ? page : path.rfind("/(", page);
  while (begin != path.npos) {
    // Longer ones are none, and would take quadratic time.
    const absl::string_view id =
        absl::string_view(path).substr(begin + 2, kAspSizeMax);
    const size_t size = id.find(")/");
    if (size != id.npos && begin + size + 4 < page &&
        IsAspSession(id.substr(0, size))) {
      path.erase(begin + 1, size + 3);
      break;
    }
    begin = begin == 0 ? path.npos : path.rfind("/(", begin - 1);
  }
  return path;
}

// --- Path and query.

// Resolves "." and "..", joins slashes and drops the last.
std::string ResolvedPath(absl::string_view path) {
  absl::ConsumePrefix(&path, "/");
  std::vector<absl::string_view> kept;
  for (const absl::string_view component : absl::StrSplit(path, '/')) {
    if (component == "..") {
      if (!kept.empty()) {
        kept.pop_back();
      }
    } else if (component != ".") {
      kept.push_back(component);
    }
  }
  // What ".." goes back over can be empty.
  kept.erase(std::remove(kept.begin(), kept.end(), ""), kept.end());
  return absl::StrCat("/", absl::StrJoin(kept, "/"));
}

std::string CanonicalPath(absl::string_view path) {
  std::string canonical = EncodeEscapes(ResolvedPath(DecodeEscapes(path)));
  absl::AsciiStrToLower(&canonical);
  canonical = PathWithoutSessions(std::move(canonical));
  while (canonical.size() > 1 && canonical.back() == '/') {
    canonical.pop_back();
  }
  return canonical;
}

std::string CanonicalQuery(absl::string_view query) {
  std::string canonical = EncodeEscapes(DecodeEscapes(query));
  absl::AsciiStrToLower(&canonical);
  canonical = WithoutSessions(std::move(canonical));
  // By name, then by value; a name alone before that with an empty value.
  std::vector<std::vector<absl::string_view>> arguments;
  for (const absl::string_view argument : absl::StrSplit(canonical, '&')) {
    arguments.push_back(absl::StrSplit(argument, absl::MaxSplits('=', 1)));
  }
  std::sort(arguments.begin(), arguments.end());
  return absl::StrJoin(
      arguments, "&",
      [](std::string* out, const std::vector<absl::string_view>& argument) {
        absl::StrAppend(out, absl::StrJoin(argument, "="));
      });
}

// --- The parts of a URL.

struct UrlParts {
  // In lower case; "http" if it has none.
  std::string scheme = "http";
  // Not a URL with a host: `rest` is all after the scheme.
  bool is_opaque = false;
  absl::string_view authority = {};
  absl::string_view rest = {};
};

// Size of the scheme at the start of `url`, without the colon; 0 if none.
size_t SchemeSize(absl::string_view url) {
  if (url.empty() || !IsAlpha(url[0])) {
    return 0;
  }
  const size_t size = RunSize(url, [](char c) {
    return IsAlphanumeric(c) || c == '+' || c == '.' || c == '-';
  });
  return size < url.size() && url[size] == ':' ? size : 0;
}

// True if `text` begins with a port and nothing else of an authority.
bool BeginsWithPort(absl::string_view text) {
  const size_t size = RunSize(text, IsDigit);
  return size > 0 && (size == text.size() ||
                      absl::string_view("/?#").find(text[size]) != text.npos);
}

UrlParts SplitUrl(absl::string_view url) {
  UrlParts parts;
  const size_t scheme_size = SchemeSize(url);
  const absl::string_view after =
      url.substr(std::min(scheme_size + 1, url.size()));
  if (scheme_size > 0 &&
      (absl::StartsWith(after, "//") || !BeginsWithPort(after))) {
    parts.scheme = absl::AsciiStrToLower(url.substr(0, scheme_size));
    const bool is_web = parts.scheme == "http" || parts.scheme == "https" ||
                        parts.scheme == "ftp";
    parts.is_opaque = (!is_web && !absl::StartsWith(after, "//")) ||
                      parts.scheme == "filedesc" || parts.scheme == "file";
    url = after;
  }
  if (parts.is_opaque) {
    // Files without a host: file:/path.
    if (parts.scheme == "file" && absl::StartsWith(url, "///")) {
      url.remove_prefix(2);
    }
    parts.rest = url;
    return parts;
  }
  while (absl::ConsumePrefix(&url, "/")) {
  }
  url = url.substr(0, url.find('#'));
  const size_t end = std::min(url.find_first_of("/?"), url.size());
  parts.authority = url.substr(0, end);
  parts.rest = url.substr(end);
  return parts;
}

struct AuthorityParts {
  absl::string_view host;
  // Digits; empty if it has none.
  absl::string_view port;
};

// Splits what follows the user.
AuthorityParts SplitAuthority(absl::string_view authority) {
  AuthorityParts parts = {.host = authority, .port = {}};
  if (const size_t at = authority.rfind('@'); at != authority.npos) {
    parts.host.remove_prefix(at + 1);
  }
  const absl::string_view host = parts.host;
  const size_t colon = host.rfind(':');
  if (colon != host.npos && host.find(']', colon) == host.npos &&
      RunSize(host.substr(colon + 1), IsDigit) == host.size() - colon - 1) {
    parts.port = host.substr(colon + 1);
    parts.host = host.substr(0, colon);
  }
  return parts;
}

// "host" or "host:port" in the order of keys.
std::string SurtAuthority(const UrlParts& url) {
  const AuthorityParts parts = SplitAuthority(url.authority);
  const bool is_default = parts.port.empty() ||
                          (url.scheme == "http" && parts.port == "80") ||
                          (url.scheme == "https" && parts.port == "443");
  return absl::StrCat(SurtHost(parts.host), is_default ? "" : ":",
                      is_default ? "" : parts.port);
}

// Without white space around it, tabs and line ends.
std::string Trimmed(absl::string_view url) {
  std::string trimmed(absl::StripAsciiWhitespace(url));
  trimmed.erase(std::remove_if(
                    trimmed.begin(), trimmed.end(),
                    [](char c) { return c == '\t' || c == '\r' || c == '\n'; }),
                trimmed.end());
  return trimmed;
}

// The least text above all that begin with `prefix`, which has a byte below
// 0xFF.
std::string EndOfPrefix(std::string prefix) {
  while (!prefix.empty() && prefix.back() == '\xFF') {
    prefix.pop_back();
  }
  if (!prefix.empty()) {
    prefix.back() = static_cast<char>(static_cast<uint8_t>(prefix.back()) + 1);
  }
  return prefix;
}

// "path" or "path?query" of a URL, both canonical. `path` is as it was.
std::string WithQuery(std::string path, absl::string_view rest) {
  const size_t mark = rest.find('?');
  if (mark != rest.npos) {
    const std::string query = CanonicalQuery(rest.substr(mark + 1));
    if (!query.empty()) {
      absl::StrAppend(&path, "?", query);
    }
  }
  return path;
}

// The key of a URI without a host.
std::string OpaqueKey(const UrlParts& parts) {
  const absl::string_view rest = parts.rest.substr(0, parts.rest.find('#'));
  std::string path =
      EncodeEscapes(DecodeEscapes(rest.substr(0, rest.find('?'))));
  absl::AsciiStrToLower(&path);
  path = PathWithoutSessions(std::move(path));
  if (path.size() > 1 && path.back() == '/') {
    path.pop_back();
  }
  return WithQuery(absl::StrCat(parts.scheme, ":", path), rest);
}

std::string WholeKey(absl::string_view url) {
  const std::string trimmed = Trimmed(url);
  if (trimmed.empty()) {
    return "-";
  }
  const UrlParts parts = SplitUrl(trimmed);
  if (parts.is_opaque) {
    return OpaqueKey(parts);
  }
  const absl::string_view path = parts.rest.substr(0, parts.rest.find('?'));
  return WithQuery(absl::StrCat(SurtAuthority(parts), ")", CanonicalPath(path)),
                   parts.rest);
}

}  // namespace

std::string SurtHostOfId(absl::string_view id) {
  const std::string trimmed = Trimmed(id);
  const absl::string_view text(trimmed);
  const size_t mark = text.find("://");
  const bool has_mark = mark != text.npos && mark > 0 &&
                        IsAlphanumeric(text[mark - 1]) &&
                        mark < text.find_first_of("?#");
  absl::string_view authority;
  if (has_mark) {
    const size_t begin = text.substr(0, mark).find_last_of(":/") + 1;
    const std::string scheme =
        absl::AsciiStrToLower(text.substr(begin, mark - begin));
    if (scheme == "file" || scheme == "filedesc") {
      return "";
    }
    authority = text.substr(mark + 1);
  } else {
    const std::string scheme =
        absl::AsciiStrToLower(text.substr(0, SchemeSize(text)));
    if (scheme != "http" && scheme != "https" && scheme != "ftp" &&
        scheme != "dns" && scheme != "whois") {
      return "";
    }
    authority = text.substr(scheme.size() + 1);
    if (BeginsWithPort(authority)) {
      return "";
    }
  }
  while (absl::ConsumePrefix(&authority, "/")) {
  }
  authority = authority.substr(0, authority.find_first_of("/?#"));
  return SurtHost(SplitAuthority(authority).host);
}

std::optional<std::string> ParseSurtHost(absl::string_view name) {
  const bool is_address = absl::StartsWith(name, "[");
  const absl::string_view inner =
      is_address ? name.substr(1, name.size() - 2) : name;
  const bool is_malformed =
      (is_address && (name.size() < 3 || name.back() != ']')) ||
      inner.find_first_of("/?#@[]*,\\ \t\r\n\v\f\"'") != name.npos ||
      (!is_address && inner.find(':') != name.npos);
  std::string host = is_malformed ? "" : SurtHost(name);
  return host.empty() ? std::nullopt : std::optional(std::move(host));
}

bool IsInSurtDomain(absl::string_view host, absl::string_view domain) {
  return absl::StartsWith(host, domain) &&
         (host.size() == domain.size() || host[domain.size()] == ',');
}

std::string SurtKey(absl::string_view url) {
  std::string key = WholeKey(url);
  key.resize(std::min(key.size(), kSurtKeySizeBytesMax));
  return key;
}

std::optional<SurtMatch> ParseSurtMatch(absl::string_view name) {
  return name == "exact"    ? std::optional(SurtMatch::kExact)
         : name == "prefix" ? std::optional(SurtMatch::kPrefix)
         : name == "host"   ? std::optional(SurtMatch::kHost)
         : name == "domain" ? std::optional(SurtMatch::kDomain)
                            : std::nullopt;
}

SurtRange SurtRangeOfUrl(absl::string_view url, SurtMatch match) {
  std::string key = SurtKey(url);
  const absl::string_view end = absl::StripTrailingAsciiWhitespace(url);
  if (match == SurtMatch::kPrefix && !end.empty() &&
      (end.back() == '/' || end.back() == '?') && key.back() != end.back()) {
    key.push_back(end.back());
  }
  return SurtRangeOfKey(key, match);
}

SurtRange SurtRangeOfKey(absl::string_view key, SurtMatch match) {
  if (match == SurtMatch::kExact) {
    // No key is between them.
    return {.begin = std::string(key), .end = absl::StrCat(key, " ")};
  }
  if (match == SurtMatch::kPrefix) {
    // Keys are printable ASCII.
    return {.begin = std::string(key),
            .end = key.empty() ? "\x7F" : EndOfPrefix(std::string(key))};
  }
  const absl::string_view host = key.substr(0, key.find(')'));
  if (match == SurtMatch::kHost) {
    return {.begin = absl::StrCat(host, ")"), .end = absl::StrCat(host, "*")};
  }
  // Without the port of a name; an IPv6 address has several colons.
  const size_t colon = host.find(':');
  const absl::string_view name =
      colon == host.rfind(':') ? host.substr(0, colon) : host;
  return {.begin = absl::StrCat(name, ")"), .end = absl::StrCat(name, "-")};
}

}  // namespace quire
