// SPDX-License-Identifier: Apache-2.0
//
// Arbitrary bytes as a URL, and as the body of a request: a key is short,
// printable, and in the ranges that its URL matches. And as the name of a host.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

#include "codecs/base/check.h"
#include "codecs/surt/method_query.h"
#include "codecs/surt/surt_key.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) {
    return 0;
  }
  const absl::string_view text(reinterpret_cast<const char*>(data) + 1,
                               size - 1);
  constexpr absl::string_view kTypes[] = {
      "", "application/x-www-form-urlencoded", "application/json", "text/plain",
      "multipart/form-data; boundary=b"};
  const std::string url =
      data[0] % 8 < 5
          ? quire::UrlWithMethod("http://a/", "POST", kTypes[data[0] % 8], text)
          : std::string(text);
  QUIRE_CHECK(data[0] % 8 >= 5 ||
              url.size() <= 30 + quire::kMethodQuerySizeBytesMax);
  const std::string key = quire::SurtKey(url);
  QUIRE_CHECK(!key.empty() && key.size() <= 3 * url.size() + 16);
  for (const char c : key) {
    QUIRE_CHECK(c > ' ' && c < 0x7F);
  }
  const std::string host = quire::SurtHostOfId(url);
  QUIRE_CHECK(host.size() <= 3 * url.size() + 16);
  QUIRE_CHECK(quire::IsInSurtDomain(host, host));
  const std::optional<std::string> name = quire::ParseSurtHost(text);
  QUIRE_CHECK(!name.has_value() ||
              quire::SurtHostOfId(absl::StrCat("http://", text)) == *name);
  for (const quire::SurtMatch match :
       {quire::SurtMatch::kExact, quire::SurtMatch::kPrefix,
        quire::SurtMatch::kHost, quire::SurtMatch::kDomain}) {
    const quire::SurtRange range = quire::SurtRangeOfKey(key, match);
    QUIRE_CHECK(range.begin < range.end);
    QUIRE_CHECK(range.Contains(key) || match == quire::SurtMatch::kHost ||
                match == quire::SurtMatch::kDomain);
  }
  return 0;
}
