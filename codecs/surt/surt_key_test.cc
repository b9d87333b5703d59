// SPDX-License-Identifier: Apache-2.0
#include "codecs/surt/surt_key.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include "codecs/surt/surt_host.h"

namespace quire {
namespace {

using Examples = std::vector<std::pair<std::string, std::string>>;

void ExpectKeys(const Examples& examples) {
  for (const auto& [url, key] : examples) {
    EXPECT_EQ(SurtKey(url), key) << url;
  }
}

// Published by iipc/webarchive-commons (WaybackURLKeyMakerTest,
// IAURLCanonicalizerTest, AggressiveIAURLCanonicalizerTest) and pywb
// (canonicalize.py), as URLs and keys.
TEST(SurtKey, AgreesWithPublishedExamples) {
  ExpectKeys({
      {"", "-"},
      {"dskgfljsdlkgjslkj", "dskgfljsdlkgjslkj)/"},
      {"filedesc:foo.arc.gz", "filedesc:foo.arc.gz"},
      {"filedesc:/foo.arc.gz", "filedesc:/foo.arc.gz"},
      {"filedesc://foo.arc.gz", "filedesc://foo.arc.gz"},
      {"warcinfo:foo.warc.gz", "warcinfo:foo.warc.gz"},
      {"http://archive.org/", "org,archive)/"},
      {"http://archive.org/goo/", "org,archive)/goo"},
      {"http://archive.org/goo/?", "org,archive)/goo"},
      {"http://archive.org/goo/?b&a", "org,archive)/goo?a&b"},
      {"http://archive.org/goo/?a=2&b&a=1", "org,archive)/goo?a=1&a=2&b"},
      {"http://archive.org:/", "org,archive)/"},
      {"https://34.203.211.192/robots.txt", "192,211,203,34)/robots.txt"},
      {"https://[2600:1f18:200d:fb00:2b74:867c:ab0c:150a]/robots.txt",
       "2600:1f18:200d:fb00:2b74:867c:ab0c:150a)/robots.txt"},
      {"http://1kr.ua/newslist.html?tag=%E4%EE%F8%EA%EE%EB%FC%ED%EE%E5",
       "ua,1kr)/newslist.html?tag=%e4%ee%f8%ea%ee%eb%fc%ed%ee%e5"},
      {"http://www.aluroba.com/tags/%C3%CE%CA%C7%D1%E5%C7.htm",
       "com,aluroba)/tags/%c3%ce%ca%c7%d1%e5%c7.htm"},
      {"http://www.archive.org:80/", "org,archive)/"},
      {"https://www.archive.org:80/", "org,archive:80)/"},
      {"http://www.archive.org:443/", "org,archive:443)/"},
      {"https://www.archive.org:443/", "org,archive)/"},
      {"http://www.archive.org/big/", "org,archive)/big"},
      {"http://archive.org/index.html?b=a&b=b&a=b",
       "org,archive)/index.html?a=b&b=a&b=b"},
      {"http://www34.archive.org/index.html?b=a",
       "org,archive)/index.html?b=a"},
      {"http://www.nsf.gov/statistics/sed/2009/SED_2009.zip?CFID=14387305&"
       "CFTOKEN=72942008&jsessionid=f030eacc7e49c4ca0b077922347418418766",
       "gov,nsf)/statistics/sed/2009/"
       "sed_2009.zip?jsessionid=f030eacc7e49c4ca0b077922347418418766"},
      {"http://www.nsf.gov/statistics/sed/2009/SED_2009.zip?CFID=14387305&"
       "CFTOKEN=72942008",
       "gov,nsf)/statistics/sed/2009/sed_2009.zip"},
      {"http://example.com/path/file.html", "com,example)/path/file.html"},
      {"urn:some:id", "urn:some:id"},
  });
}

// Published by nla/outbackcdx (UrlCanonicalizerTest) and by Google ("Safe
// Browsing", canonicalization).
TEST(SurtKey, DecodesEscapesAndResolvesPaths) {
  ExpectKeys({
      {"http://abr.business.gov.au/(dhj3bi55ekqndn3mjb5myu45)/"
       "entityTypeDetails.aspx?SearchText=125",
       "au,gov,business,abr)/entitytypedetails.aspx?searchtext=125"},
      {"http://%31%36%38%2e%31%38%38%2e%39%39%2e%32%36/%2E%73%65%63%75%72%65/"
       "%77%77%77%2E%65%62%61%79%2E%63%6F%6D/",
       "26,99,188,168)/.secure/www.ebay.com"},
      {"http://host/%25%32%35", "host)/%25"},
      {"http://host/%25%32%35%25%32%35", "host)/%25%25"},
      {"http://host/%2525252525252525", "host)/%25"},
      {"http://host/%%%25%32%35asd%%", "host)/%25%25%25asd%25%25"},
      {"http://host/?%%%25%32%35asd%%", "host)/?%25%25%25asd%25%25"},
      {"http://195.127.0.11/uploads/%20%20%20%20/.verify/",
       "11,0,127,195)/uploads/%20%20%20%20/.verify"},
      {"http://host%23.com/%257Ea%2521b%2540c%2523d%2524e%25f%255E00%252611"
       "%252A22%252833%252944_55%252B",
       "com,host%23)/~a!b@c%23d$e%25f^00&11*22(33)44_55+"},
      {"http://3279880203/blah", "11,0,127,195)/blah"},
      {"http://017.0.0.1/", "1,0,0,15)/"},
      {"http://www.google.com/blah/..", "com,google)/"},
      {"www.google.com", "com,google)/"},
      {"http://www.evil.com/blah#frag", "com,evil)/blah"},
      {"http://www.google.com.../", "com,google)/"},
      {"https://...foo...bar.org.../", "org,bar,foo)/"},
      {"http://www.google.com/foo\tbar\rbaz\n2", "com,google)/foobarbaz2"},
      {"http://www.google.com/q?r?s", "com,google)/q?r?s"},
      {"http://evil.com/foo?bar;", "com,evil)/foo?bar;"},
      {"http://\1.com/", "com,%01)/"},
      {"http://www.gotaport.com:1234/", "com,gotaport:1234)/"},
      {"  http://www.google.com/  ", "com,google)/"},
      {"%20leadingspace.com/", "com,%20leadingspace)/"},
      {"http://host.com//twoslashes?more//slashes",
       "com,host)/twoslashes?more//slashes"},
      {"http://example.org/too/many/../../../dots", "org,example)/dots"},
      {"http://www2.www2foo.com/", "com,www2foo)/"},
  });
}

TEST(SurtKey, TakesAnyUrl) {
  ExpectKeys({
      {"http:example.com", "com,example)/"},
      {"//example.com/a", "com,example)/a"},
      {"example.com:8080/A", "com,example:8080)/a"},
      {"http://user:pass@example.com/", "com,example)/"},
      {"http://[::1]:8080/", "::1:8080)/"},
      {"ftp://ftp.example.com/pub/", "com,example,ftp)/pub"},
      {"mailto:A b", "mailto:a%20b"},
      {"dns:www.Example.com", "dns:www.example.com"},
      {"urn:X:y/z/?b&a#c", "urn:x:y/z?a&b"},
      {"file:///etc/A", "file:/etc/a"},
      {"file:/etc/A", "file:/etc/a"},
      {"http://", ")/"},
      {"http://b\xC3\xBC"
       "cher.example/",
       "example,xn--bcher-kva)/"},
      {"http://xn--bcher-kva.example/", "example,xn--bcher-kva)/"},
      // The characters of RFC 3492, section 7.1 (B).
      {"http://\xE4\xBB\x96\xE4\xBB\xAC\xE4\xB8\xBA\xE4\xBB\x80\xE4\xB9\x88\xE4"
       "\xB8\x8D\xE8\xAF\xB4\xE4\xB8\xAD\xE6\x96\x87/",
       "xn--ihqwcrb4cv8a8dqg056pqjye)/"},
      {"http://\xFF.com/\xFF", "com,%ff)/%ff"},
  });
}

TEST(SurtKey, DropsIdsOfSessions) {
  const std::string id = "0123456789abcdefghijklemopqrstuv";
  ExpectKeys({
      {"http://a.com/x?a=1&PHPSESSID=" + id + "&b=2", "com,a)/x?a=1&b=2"},
      {"http://a.com/x?sid=" + id, "com,a)/x"},
      {"http://a.com/x?sid=" + id + "0", "com,a)/x?sid=" + id + "0"},
      {"http://a.com/x?aside=" + id, "com,a)/x?aside=" + id},
      // What comes before is not looked at, and the last is dropped.
      {"http://a.com/x?xsid=" + id + "&b=1", "com,a)/x?xb=1"},
      {"http://a.com/x?sid=" + id + "&sid=" + id, "com,a)/x?&sid=" + id},
      {"http://a.com/x;jsessionid=" + id, "com,a)/x;jsessionid=" + id},
      {"http://a.com/x?ASPSESSIONIDAAAABBBB=ABCDEFGHIJKLMNOPQRSTUVWX&y=1",
       "com,a)/x?y=1"},
      {"http://a.com/x?cfid=1&cftoken=2&y=1", "com,a)/x?y=1"},
      {"http://a.com/x?cfid=1&y=1", "com,a)/x?cfid=1&y=1"},
      {"http://a.com/(a(4hqa0555fwsecu455xqckv45)s(4hqa0555fwsecu455xqckv45))/"
       "mileg.aspx?page=1",
       "com,a)/mileg.aspx?page=1"},
      {"http://a.com/(4hqa0555fwsecu455xqckv4)/mileg.aspx",
       "com,a)/(4hqa0555fwsecu455xqckv4)/mileg.aspx"},
  });
}

TEST(SurtKey, RangesHoldTheKeysOfTheirMatch) {
  const std::string page = "http://example.com/dir/a";
  const auto contains = [](const SurtRange& range, const std::string& url) {
    return range.Contains(SurtKey(url));
  };
  const SurtRange exact = SurtRangeOfUrl(page, SurtMatch::kExact);
  EXPECT_TRUE(contains(exact, "https://www.example.com/DIR/a/"));
  EXPECT_FALSE(contains(exact, page + "b"));
  EXPECT_FALSE(contains(exact, page + "?b"));
  const SurtRange prefix = SurtRangeOfUrl(page, SurtMatch::kPrefix);
  EXPECT_TRUE(contains(prefix, page));
  EXPECT_TRUE(contains(prefix, page + "b/c?d"));
  EXPECT_FALSE(contains(prefix, "http://example.com/dir/b"));
  const SurtRange below =
      SurtRangeOfUrl("http://example.com/dir/", SurtMatch::kPrefix);
  EXPECT_TRUE(contains(below, page));
  EXPECT_FALSE(contains(below, "http://example.com/directory"));
  const SurtRange host = SurtRangeOfUrl(page, SurtMatch::kHost);
  EXPECT_TRUE(contains(host, "http://example.com/"));
  EXPECT_FALSE(contains(host, "http://shop.example.com/"));
  EXPECT_FALSE(contains(host, "http://example-b.com/"));
  EXPECT_FALSE(contains(host, "http://example.com:8080/"));
  const SurtRange domain = SurtRangeOfUrl(page, SurtMatch::kDomain);
  EXPECT_TRUE(contains(domain, "http://example.com/"));
  EXPECT_TRUE(contains(domain, "http://shop.example.com:8080/x"));
  EXPECT_FALSE(contains(domain, "http://example-b.com/"));
  EXPECT_FALSE(contains(domain, "http://example.comm/"));
  EXPECT_TRUE(SurtRangeOfKey("com", SurtMatch::kDomain).Contains(exact.begin));
  EXPECT_TRUE(
      SurtRangeOfKey("com,example)/", SurtMatch::kHost).Contains(exact.begin));
  const SurtRange all = SurtRangeOfKey("", SurtMatch::kPrefix);
  EXPECT_TRUE(contains(all, page));
  EXPECT_TRUE(contains(all, "~~\xFF"));
  EXPECT_TRUE(contains(all, ""));
  EXPECT_EQ(ParseSurtMatch("domain"), SurtMatch::kDomain);
  EXPECT_EQ(ParseSurtMatch("range"), std::nullopt);
}

// Forms that crawlers write: browsertrix-crawler (urn:pageinfo:, urn:view:,
// urn:fullPage:, urn:thumbnail:, urn:text:), brozzler (screenshot:, thumbnail:,
// youtube-dl:), Heritrix (dns:, whois:), wget and pywb (metadata:).
TEST(SurtHostOfId, FindsTheUrlInIds) {
  const Examples examples = {
      {"http://news.test/", "test,news"},
      {"https://www.News.test:8443/a?u=http://b.test/", "test,news"},
      {"https://user:secret@shop.news.test", "test,news,shop"},
      {"http://news.test./", "test,news"},
      {"ftp://www2.news.test/a", "test,news"},
      {" http://news.test ", "test,news"},
      {"http:news.test/a", "test,news"},
      {"https:/news.test", "test,news"},
      {"http://n%65ws.test/", "test,news"},
      {"http://b\xc3\xbc"
       "cher.test/",
       "test,xn--bcher-kva"},
      {"http://192.0.2.1:80/", "1,2,0,192"},
      {"http://[2001:db8::1]:8080/", "2001:db8::1"},
      {"urn:pageinfo:https://news.test/a", "test,news"},
      {"urn:view:https://www.news.test/", "test,news"},
      {"urn:fullPage:http://news.test:8080/", "test,news"},
      {"urn:thumbnail:https://news.test/?a", "test,news"},
      {"urn:text:https://news.test/#b", "test,news"},
      {"screenshot:https://news.test/", "test,news"},
      {"thumbnail:http://news.test/a", "test,news"},
      {"youtube-dl:00001:https://news.test/v", "test,news"},
      {"metadata://news.test/warc/log", "test,news"},
      {"dns:www.news.test", "test,news"},
      {"whois:news.test", "test,news"},
      {"crawl-7/https://news.test/a", "test,news"},
      {"wss://news.test/socket", "test,news"},
      {"https://archive.test/web/2020/https://news.test/", "test,archive"},
      {"", ""},
      {"news.test/index.html", ""},
      {"news.test:80/", ""},
      {"http:80/a", ""},
      {"urn:uuid:0b7f-1", ""},
      {"urn:pageinfo:about:blank", ""},
      {"mailto:a@news.test", ""},
      {"a?u=https://news.test/", ""},
      {"://news.test/", ""},
      {"file:///news.test/a", ""},
      {"filedesc://news.arc.gz", ""}};
  for (const auto& [id, host] : examples) {
    EXPECT_EQ(SurtHostOfId(id), host) << id;
  }
}

TEST(SurtHostOfId, IsTheHostOfTheKey) {
  std::mt19937_64 random(3);
  const std::vector<std::string> pieces = {
      "http", "https",     "://", ":",  "/",   "www.", "news",    ".",
      "test", "a.b",       "@",   "80", "[::", "]",    "%2e",     "?",
      "#",    "urn:view:", " ",   "\t", "WWW", "x",    "\xc3\xa4"};
  size_t host_count = 0;
  for (int i = 0; i < 20'000; ++i) {
    std::string id = i % 2 == 0 ? "http://" : "";
    for (size_t count = random() % 8; count > 0; --count) {
      id += pieces[random() % pieces.size()];
    }
    const std::string host = SurtHostOfId(id);
    if (i % 2 == 0) {
      const std::string key = SurtKey(id);
      std::string authority = key.substr(0, key.rfind(")/"));
      authority = authority.substr(0, authority.find(")/"));
      ASSERT_TRUE(absl::StartsWith(authority, host)) << id << " " << key;
      const std::string port = authority.substr(host.size());
      ASSERT_TRUE(port.empty() || port[0] == ':') << id << " " << key;
      host_count += host.empty() ? 0 : 1;
    }
    ASSERT_EQ(SurtHostOfId(absl::StrCat("urn:view:http://a.test/", id)),
              "test,a");
  }
  EXPECT_GT(host_count, 5'000U);
}

TEST(SurtHost, NamesStandAlone) {
  EXPECT_EQ(ParseSurtHost("www.News.test"), "test,news");
  EXPECT_EQ(ParseSurtHost("192.0.2.1"), "1,2,0,192");
  EXPECT_EQ(ParseSurtHost("[2001:DB8::1]"), "2001:db8::1");
  for (const char* name :
       {"", ".", "http://news.test", "news.test/", "news.test:80",
        "*.news.test", "a@news.test", "news test", "test,news", "[::1", "[]",
        "2001:db8::1", "news.test?a", "news.test#a", "a\\b"}) {
    EXPECT_EQ(ParseSurtHost(name), std::nullopt) << name;
  }
  EXPECT_TRUE(IsInSurtDomain("test,news", "test,news"));
  EXPECT_TRUE(IsInSurtDomain("test,news,shop", "test,news"));
  EXPECT_FALSE(IsInSurtDomain("test,newspaper", "test,news"));
  EXPECT_FALSE(IsInSurtDomain("test", "test,news"));
  EXPECT_FALSE(IsInSurtDomain("", "test,news"));
}

TEST(SurtKey, IsBounded) {
  EXPECT_EQ(SurtKey("http://a/" + std::string(100'000, 'x')).size(),
            kSurtKeySizeBytesMax);
}

TEST(SurtKey, EscapesTakeLinearTime) {
  std::string url = "http://a/%";
  for (int i = 0; i < 1'000'000; ++i) {
    url += "25";
  }
  EXPECT_EQ(SurtKey(url), "a)/%25");
}

}  // namespace
}  // namespace quire
