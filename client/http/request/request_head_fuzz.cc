// SPDX-License-Identifier: Apache-2.0
//
// Request lines and headers: a line "METHOD TARGET", then lines NAME: VALUE.
#include <cstddef>
#include <cstdint>

#include "client/http/request/html_text.h"
#include "client/http/request/request_head.h"
#include "codecs/base/check.h"
#include "codecs/base/header_fields.h"

namespace quire {
namespace {

void CheckTarget(const RequestTarget& target) {
  const absl::string_view id(target.id.data(), target.id.size());
  const std::string path = PercentEncode(id, /*keeps_slashes=*/true);
  const absl::StatusOr<std::string> decoded =
      PercentDecode({path.data(), path.size()});
  QUIRE_CHECK(decoded.ok() && *decoded == target.id);
  const std::string html = HtmlEscape(id);
  QUIRE_CHECK(html.find_first_of("<>\"'") == std::string::npos);
  QUIRE_CHECK(target.archive.find_first_of("/%@\r\n\"<") == std::string::npos);
}

void CheckRange(const RangeHeader& range) {
  for (const uint64_t size :
       {uint64_t{0}, uint64_t{1}, uint64_t{1000}, UINT64_MAX}) {
    const SelectedPart part = SelectPart(range, size, false);
    if (part.kind == SelectedPart::Kind::kPart) {
      QUIRE_CHECK(part.size_bytes > 0 && part.offset < size &&
                  part.size_bytes <= size - part.offset);
    }
  }
}

}  // namespace
}  // namespace quire

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  absl::string_view rest(reinterpret_cast<const char*>(data), size);
  const absl::string_view line = quire::TakeHeaderLine(rest);
  const size_t space = line.find(' ');
  quire::RequestHead head{.method = line.substr(0, space),
                          .target = space == absl::string_view::npos
                                        ? absl::string_view()
                                        : line.substr(space + 1),
                          .version = "HTTP/1.1",
                          .headers = {{"Host", "localhost"}}};
  std::vector<quire::HeaderField> fields;
  while (std::optional<quire::HeaderField> field =
             quire::TakeHeaderField(rest)) {
    fields.push_back(*std::move(field));
  }
  for (const quire::HeaderField& field : fields) {
    head.headers.emplace_back(
        field.name, absl::string_view(field.value.data(), field.value.size()));
  }
  const auto parsed = quire::ParseRequest(
      head, {.hosts = {"localhost"}, .allowed_origins = {}});
  if (const auto* request = std::get_if<quire::HttpRequest>(&parsed)) {
    quire::CheckTarget(request->target);
    quire::CheckRange(request->range);
    quire::EvaluateConditions(request->conditions, "\"a\"");
    quire::RangeApplies(request->conditions, "\"a\"");
  }
  return 0;
}
