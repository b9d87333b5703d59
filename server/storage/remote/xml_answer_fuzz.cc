// SPDX-License-Identifier: GPL-3.0-or-later
//
// Whatever a store answers, the parser takes a bounded tree or refuses it, and
// what it takes it takes again after escaping.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

#include "server/storage/remote/xml_answer.h"

namespace {

void Check(bool condition) {
  if (!condition) {
    std::abort();
  }
}

size_t CheckTree(const quire::XmlElement& element, int depth) {
  Check(depth <= quire::kXmlDepthMax && !element.name.empty());
  Check(element.children.empty() || element.text.empty());
  size_t count = 1;
  for (const quire::XmlElement& child : element.children) {
    count += CheckTree(child, depth + 1);
  }
  return count;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size_bytes) {
  const absl::string_view text(reinterpret_cast<const char*>(data), size_bytes);
  const auto root = quire::ParseXmlAnswer(text);
  if (root.ok()) {
    Check(CheckTree(*root, 1) <= quire::kXmlElementCountMax);
  }
  const auto read = quire::ParseXmlAnswer(
      absl::StrCat("<x>", quire::EscapeXml(text), "</x>"));
  Check(read.ok() && read->text == text);
  return 0;
}
