// SPDX-License-Identifier: Apache-2.0
//
// Keys of URLs in indexes of captures: SURT, canonicalised as by the tools of
// the Internet Archive. URLs that such tools take for one page have one key,
// and the keys of a host and of its subdomains are adjacent in bytewise order:
//
//   http://www.Example.com:80/A/../B/?y=2&x=1#top  com,example)/b?x=1&y=2
//   https://user@shop.example.com:8080/            com,example,shop:8080)/
//   urn:uuid:1A-2                                  urn:uuid:1a-2
//
// Rules, in order:
//   - White space around it, and tabs and line ends in it, are dropped. Without
//     a scheme it is one of http. The scheme, user and fragment are dropped,
//     and the port if it is the scheme's own.
//   - All escapes (%41) are decoded, again and again, and at the end the bytes
//     up to 0x20 and from 0x7F on, # and % are escaped.
//   - Host: lower case; SurtHost() of surt_host.h.
//   - Path: "." and ".." are resolved, repeated slashes are one, and the last
//     is dropped. Lower case.
//   - Query: lower case; its arguments are sorted; an empty one is dropped.
//   - Ids of sessions are dropped: those of ASP.NET from the path, jsessionid,
//     phpsessid, sid, aspsessionid, and cfid with cftoken from the query.
//   - A URI whose scheme has no "//" keeps its scheme and its dots and slashes.
//     http:/host and http:host are http://host, and host:80 has no scheme.
//
// Keys are those of the library surt of PyPI, which pywb and cdxj-indexer use,
// except for http:/host, host:80, and ".." at the start of a path.
#ifndef QUIRE_CODECS_SURT_SURT_KEY_H_
#define QUIRE_CODECS_SURT_SURT_KEY_H_

#include <cstddef>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace quire {

// All functions are thread-safe, and take any bytes in linear time, except that
// arguments of a query are sorted.

// Longer keys end there.
inline constexpr size_t kSurtKeySizeBytesMax = 65535;

// Returns the key: 1 to kSurtKeySizeBytesMax bytes, at most 3 * url.size() +
// 16, all of them printable ASCII without spaces. "-" for an empty URL.
std::string SurtKey(absl::string_view url);

// Documents that a look-up means.
enum class SurtMatch {
  // The key itself.
  kExact,
  // Keys that begin with it.
  kPrefix,
  // All keys of its host, without those of other ports.
  kHost,
  // Those of kHost, and all keys of the hosts below it.
  kDomain,
};

// "exact", "prefix", "host" or "domain"; nothing for other names.
std::optional<SurtMatch> ParseSurtMatch(absl::string_view name);

// Keys from `begin` on, below `end`, in bytewise order.
struct SurtRange {
  std::string begin;
  std::string end;

  bool Contains(absl::string_view key) const {
    return begin <= key && key < end;
  }
};

// Returns the keys that match a URL. For kPrefix a slash or question mark at
// its end counts, which SurtKey() drops.
SurtRange SurtRangeOfUrl(absl::string_view url, SurtMatch match);

// The same for a key, such as "com,example)/a". A key without ")" is that of a
// host. For kPrefix an empty key gives all keys.
SurtRange SurtRangeOfKey(absl::string_view key, SurtMatch match);

// Returns the host of the URL that `id` is or holds, in the order of keys and
// without its port: "com,example" of https://www.Example.com:8080/, of
// urn:pageinfo:http://example.com/, screenshot:https://example.com/,
// crawl/ftp://example.com/ and dns:example.com. The first "://" decides, if it
// comes before any "?" or "#"; without one, http:, https:, ftp:, dns: and
// whois: at the start. Empty for other ids, such as paths, and for those of
// file: and filedesc:. It is the host of SurtKey(id) for each id with "://" at
// the end of its scheme.
std::string SurtHostOfId(absl::string_view id);

// Returns the host of `name`, which is that of a host or domain alone, such as
// news.test, an IPv4 address or an IPv6 address in brackets. Nothing if it has
// a scheme, port, user, path, wildcard or white space, or is empty.
std::optional<std::string> ParseSurtHost(absl::string_view name);

// True for `domain` itself, and for the hosts below it: "com,example,shop" is
// in "com,example". Both are in the order of keys.
bool IsInSurtDomain(absl::string_view host, absl::string_view domain);

}  // namespace quire

#endif  // QUIRE_CODECS_SURT_SURT_KEY_H_
