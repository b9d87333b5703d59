// SPDX-License-Identifier: Apache-2.0
#include "codecs/base/tar_format.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"

#include "codecs/base/check.h"
#include "codecs/base/printable_text.h"

namespace quire {
namespace {

constexpr size_t kBlockSizeBytes = 512;
constexpr size_t kNameSizeBytes = 100;
// Maximum of 11 octal digits, for sizes and for seconds since 1970.
constexpr uint64_t kOctalMax = (uint64_t{1} << 33) - 1;
constexpr int64_t kMsPerSecond = 1000;

// Fields of a ustar header: offset and size.
struct Field {
  size_t offset;
  size_t size;
};

constexpr Field kName = {0, kNameSizeBytes};
constexpr Field kMode = {100, 8};
constexpr Field kUser = {108, 8};
constexpr Field kGroup = {116, 8};
constexpr Field kSize = {124, 12};
constexpr Field kTime = {136, 12};
constexpr Field kChecksum = {148, 8};
constexpr size_t kTypeOffset = 156;
constexpr Field kMagic = {257, 8};

void Put(std::string& block, Field field, absl::string_view text) {
  QUIRE_CHECK(text.size() <= field.size, "a tar header's field is too short");
  std::copy(text.begin(), text.end(),
            block.begin() + static_cast<std::ptrdiff_t>(field.offset));
}

void PutOctal(std::string& block, Field field, uint64_t number) {
  Put(block, field,
      absl::StrFormat("%0*o", static_cast<int>(field.size) - 1, number));
}

// Returns one block. Truncates a long name: a pax header has it in full.
std::string UstarBlock(absl::string_view name, char type, uint64_t size_bytes,
                       uint64_t seconds) {
  std::string block(kBlockSizeBytes, '\0');
  Put(block, kName, name.substr(0, kNameSizeBytes));
  PutOctal(block, kMode, 0644);
  PutOctal(block, kUser, 0);
  PutOctal(block, kGroup, 0);
  PutOctal(block, kSize, size_bytes);
  PutOctal(block, kTime, seconds);
  block[kTypeOffset] = type;
  Put(block, kMagic, absl::string_view("ustar\00000", kMagic.size));
  // Sum of all bytes, with blanks in place of the sum.
  Put(block, kChecksum, "        ");
  uint64_t sum = 0;
  for (const char c : block) {
    sum += static_cast<unsigned char>(c);
  }
  Put(block, kChecksum,
      absl::StrFormat("%06o%s", sum, absl::string_view("\0 ", 2)));
  return block;
}

// Returns "LENGTH KEY=VALUE\n", where the length includes its own digits.
std::string PaxRecord(absl::string_view key, absl::string_view value) {
  const std::string rest = absl::StrCat(" ", key, "=", value, "\n");
  size_t size = rest.size();
  while (size != rest.size() + absl::StrCat(size).size()) {
    size = rest.size() + absl::StrCat(size).size();
  }
  return absl::StrCat(size, rest);
}

// Returns decimal seconds with a fraction.
std::string PaxTime(int64_t time_ms) {
  const uint64_t size = time_ms < 0
                            ? uint64_t{0} - static_cast<uint64_t>(time_ms)
                            : static_cast<uint64_t>(time_ms);
  return absl::StrFormat("%s%d.%03d", time_ms < 0 ? "-" : "", size / 1000,
                         size % 1000);
}

bool IsAscii(absl::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) {
    return absl::ascii_isascii(static_cast<unsigned char>(c));
  });
}

}  // namespace

std::string TarHeader(absl::string_view name, uint64_t size_bytes,
                      std::optional<int64_t> time_ms) {
  std::string records;
  if (name.size() > kNameSizeBytes || !IsAscii(name)) {
    if (!IsUtf8(name)) {
      records += PaxRecord("hdrcharset", "BINARY");
    }
    records += PaxRecord("path", name);
  }
  if (size_bytes > kOctalMax) {
    absl::StrAppend(&records, PaxRecord("size", absl::StrCat(size_bytes)));
  }
  const int64_t time = time_ms.value_or(0);
  const bool is_plain_time =
      time >= 0 && time % kMsPerSecond == 0 &&
      static_cast<uint64_t>(time / kMsPerSecond) <= kOctalMax;
  if (!is_plain_time) {
    absl::StrAppend(&records, PaxRecord("mtime", PaxTime(time)));
  }
  const uint64_t seconds =
      time < 0
          ? 0
          : std::min(static_cast<uint64_t>(time / kMsPerSecond), kOctalMax);
  std::string header;
  if (!records.empty()) {
    header = UstarBlock("PaxHeaders/next", 'x', records.size(), 0);
    header += records;
    header += TarPadding(records.size());
  }
  header += UstarBlock(name, '0', std::min(size_bytes, kOctalMax), seconds);
  return header;
}

std::string TarPadding(uint64_t size_bytes) {
  return std::string(
      (kBlockSizeBytes - size_bytes % kBlockSizeBytes) % kBlockSizeBytes, '\0');
}

std::string TarEnd() {
  return std::string(2 * kBlockSizeBytes, '\0');
}

std::string TarName(absl::string_view id) {
  if (id.empty()) {
    return "%";
  }
  std::string name;
  for (absl::string_view component : absl::StrSplit(id, '/')) {
    if (component == "." || component == "..") {
      component.remove_prefix(1);
      absl::StrAppend(&name, "%2E");
    }
    absl::StrAppend(&name, component, "/");
  }
  // Each component is followed by a slash, the last one too.
  name.pop_back();
  if (name.size() > 1 && name.back() == '/') {
    name.replace(name.size() - 1, 1, "%2F");
  }
  if (name.front() == '/') {
    name.replace(0, 1, "%2F");
  }
  return absl::StrReplaceAll(name, {{absl::string_view("\0", 1), "%00"}});
}

}  // namespace quire
