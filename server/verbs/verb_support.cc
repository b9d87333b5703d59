// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/verbs/verb_support.h"

#include <algorithm>
#include <cmath>
#include <iostream>
#include <thread>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include "codecs/base/byte_size.h"

namespace quire {
namespace {

// The length of the UTF-8 sequence that `text` starts with (shortest form, no
// surrogates, up to U+10FFFF); 0 if there is none.
size_t Utf8SequenceSize(absl::string_view text) {
  const auto byte = [text](size_t i) {
    return static_cast<uint8_t>(i < text.size() ? text[i] : 0);
  };
  const auto continues = [&byte](size_t i) { return (byte(i) & 0xC0) == 0x80; };
  const uint8_t first = byte(0);
  if (first < 0x80) {
    return 1;
  }
  if (first >= 0xC2 && first <= 0xDF && continues(1)) {
    return 2;
  }
  if (first >= 0xE0 && first <= 0xEF && continues(1) && continues(2)) {
    const bool overlong = first == 0xE0 && byte(1) < 0xA0;
    const bool surrogate = first == 0xED && byte(1) >= 0xA0;
    return overlong || surrogate ? 0 : 3;
  }
  if (first >= 0xF0 && first <= 0xF4 && continues(1) && continues(2) &&
      continues(3)) {
    const bool overlong = first == 0xF0 && byte(1) < 0x90;
    const bool too_large = first == 0xF4 && byte(1) >= 0x90;
    return overlong || too_large ? 0 : 4;
  }
  return 0;
}

}  // namespace

std::vector<std::string> ArgumentsForParse(int argc, const char* const* argv) {
  std::vector<std::string> arguments;
  for (int i = argc - 1; i > 0; --i) {
    const absl::string_view argument = argv[i];
    const bool like_list = argument.size() > 1 && argument.front() == '[' &&
                           argument.back() == ']';
    arguments.push_back(absl::StrCat(like_list ? "./" : "", argument));
  }
  return arguments;
}

int ReportFailure(const absl::Status& status) {
  std::cerr << "quired: " << status.message() << "\n";
  return kExitFailed;
}

int ReportUsage(absl::string_view verb, absl::string_view message) {
  std::cerr << "quired: " << message << "\n"
            << "Try 'quired " << verb << " --help'.\n";
  return kExitUsage;
}

CLI::Option* AddByteSizeOption(CLI::App& verb, const std::string& name,
                               uint64_t& size_bytes,
                               const std::string& description) {
  return verb
      .add_option_function<std::string>(
          name,
          [name, &size_bytes](const std::string& text) {
            const absl::StatusOr<uint64_t> size = ParseByteSize(text);
            if (!size.ok()) {
              throw CLI::ValidationError(name,
                                         std::string(size.status().message()));
            }
            size_bytes = *size;
          },
          description)
      ->type_name("SIZE")
      ->default_str(FormatByteSizeExact(size_bytes));
}

uint32_t CoreCount() {
  return std::max(1u, std::thread::hardware_concurrency());
}

std::string JsonString(absl::string_view text) {
  std::string json = "\"";
  while (!text.empty()) {
    const size_t size = Utf8SequenceSize(text);
    const char c = text[0];
    if (size == 0) {
      json += "\\ufffd";
    } else if (c == '"' || c == '\\') {
      json += '\\';
      json += c;
    } else if (size == 1 && static_cast<uint8_t>(c) < 0x20) {
      absl::StrAppendFormat(&json, "\\u%04x", static_cast<uint8_t>(c));
    } else {
      absl::StrAppend(&json, text.substr(0, size));
    }
    text.remove_prefix(std::max<size_t>(size, 1));
  }
  return json + "\"";
}

std::string FormatPercent(uint64_t part, uint64_t whole) {
  if (whole == 0) {
    return "0%";
  }
  return absl::StrFormat(
      "%.2f%%", 100 * static_cast<double>(part) / static_cast<double>(whole));
}

std::string FormatDuration(double seconds) {
  const auto whole =
      static_cast<uint64_t>(std::clamp(std::ceil(seconds), 0.0, 360000.0 * 24));
  const uint64_t minutes = whole / 60;
  if (minutes < 60) {
    return absl::StrFormat("%d:%02d", minutes, whole % 60);
  }
  return absl::StrFormat("%d:%02d:%02d", minutes / 60, minutes % 60,
                         whole % 60);
}

}  // namespace quire
