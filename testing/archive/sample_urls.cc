// SPDX-License-Identifier: GPL-3.0-or-later
#include "testing/archive/sample_urls.h"

#include <array>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace quire {
namespace {

// Draws from one number (splitmix64, S. Vigna).
class Draws {
 public:
  explicit Draws(uint64_t seed) : state_(seed) {}

  uint64_t Below(uint64_t bound) {
    state_ += 0x9E3779B97F4A7C15;
    uint64_t mixed = state_;
    mixed = (mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9;
    mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EB;
    return (mixed ^ (mixed >> 31)) % bound;
  }

  // Small numbers far more often than large ones.
  uint64_t SkewedBelow(uint64_t bound) {
    return Below(Below(Below(bound) + 1) + 1);
  }

 private:
  uint64_t state_;
};

std::string Word(uint64_t number) {
  static constexpr std::array<absl::string_view, 40> kSyllables = {
      "an",  "ber", "co",  "den", "el",  "fa",  "gra", "hi",   "in",   "jo",
      "ka",  "lin", "mo",  "ne",  "or",  "pa",  "qui", "re",   "sta",  "ti",
      "un",  "ver", "wa",  "xe",  "yo",  "za",  "ing", "tion", "er",   "ly",
      "man", "net", "sho", "pro", "tra", "ble", "con", "dis",  "ment", "ous"};
  std::string word;
  Draws draws(number);
  for (uint64_t left = 2 + draws.Below(3); left > 0; --left) {
    const absl::string_view syllable = kSyllables[draws.Below(40)];
    word.append(syllable.data(), syllable.size());
  }
  return word;
}

std::string Title(Draws& draws, char separator) {
  std::string title = Word(draws.SkewedBelow(5000));
  for (uint64_t left = 2 + draws.Below(5); left > 0; --left) {
    title += separator;
    title += Word(draws.SkewedBelow(5000));
  }
  return title;
}

}  // namespace

std::string SampleUrl(uint64_t number) {
  Draws draws(number);
  const uint64_t site = draws.SkewedBelow(20000);
  static constexpr std::array<absl::string_view, 5> kEndings = {
      "com", "org", "de", "net", "co.uk"};
  const std::string host = absl::StrCat(Word(site + 100000), Word(site / 7),
                                        ".", kEndings[site % 5]);
  switch (site % 6) {
    case 0:
      return absl::StrCat("https://www.", host, "/", 2004 + draws.Below(20),
                          "/", 10 + draws.Below(3), "/", 10 + draws.Below(19),
                          "/", Title(draws, '-'), "/");
    case 1:
      return absl::StrCat("https://en.", host, "/wiki/", Title(draws, '_'));
    case 2:
      return absl::StrCat("http://shop.", host, "/", Word(draws.Below(40)), "/",
                          Title(draws, '-'), "-p", draws.Below(10000000),
                          ".html");
    case 3:
      return absl::StrCat(
          "http://", host, "/forum/viewtopic.php?f=", draws.Below(30),
          "&t=", draws.Below(3000000), "&start=", 15 * draws.SkewedBelow(40));
    case 4:
      return absl::StrCat("https://www.", host, "/", Word(draws.Below(30)),
                          "/article", draws.Below(100000000), "/",
                          Title(draws, '-'), ".html?page=", draws.Below(4));
    default:
      return absl::StrCat("https://cdn.", host, "/assets/",
                          absl::Hex(draws.Below(256), absl::kZeroPad2), "/",
                          absl::Hex(draws.Below(~uint64_t{0})), ".jpg");
  }
}

}  // namespace quire
