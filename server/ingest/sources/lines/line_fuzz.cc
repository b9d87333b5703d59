// SPDX-License-Identifier: GPL-3.0-or-later
//
// Arbitrary bytes as a file: its lines are the file; fields are those of other
// parsers.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/types/span.h"

#include "codecs/base/check.h"
#include "server/ingest/sources/container_detection.h"
#include "server/ingest/sources/lines/json_fields.h"
#include "server/ingest/sources/lines/line_source.h"
#include "server/ingest/sources/lines/utf16_stream.h"

#include "nlohmann/json.hpp"

namespace {

using quire::AsText;
using quire::ByteView;
using quire::MutableByteView;

// One file, read in pieces.
class FileReader final : public quire::SourceReader {
 public:
  FileReader(ByteView text, size_t piece_size)
      : text_(text), piece_size_(piece_size) {}

  absl::StatusOr<std::optional<quire::SourceDocument>> Next() override {
    if (std::exchange(done_, true)) {
      return std::nullopt;
    }
    quire::SourceDocument document;
    document.id = "f";
    return document;
  }

  std::string Place() const override { return "the file"; }

  absl::StatusOr<size_t> Read(MutableByteView out) override {
    const size_t size = std::min({out.size(), text_.size(), piece_size_});
    std::copy_n(text_.begin(), size, out.begin());
    text_ = text_.subspan(size);
    return size;
  }

 private:
  ByteView text_;
  const size_t piece_size_;
  bool done_ = false;
};

void CheckLines(ByteView text, size_t piece_size, const char* id_field) {
  quire::LineReader reader(std::make_unique<FileReader>(text, piece_size),
                           "fuzz", {.id_field = id_field}, nullptr, 1 << 20);
  std::string whole;
  std::vector<uint8_t> piece(piece_size);
  while (true) {
    const auto document = reader.Next();
    if (!document.ok()) {
      // After the last record.
      if (absl::StrContains(document.status().message(), "usable field")) {
        break;
      }
      return;
    }
    if (!document->has_value()) {
      break;
    }
    const size_t begin = whole.size();
    while (true) {
      const absl::StatusOr<size_t> got = reader.Read(piece);
      if (!got.ok()) {
        return;
      }
      if (*got == 0) {
        break;
      }
      whole.append(AsText(piece).data(), *got);
    }
    QUIRE_CHECK(whole.size() > begin);
    QUIRE_CHECK((*document)->size_bytes == whole.size() - begin);
  }
  QUIRE_CHECK(
      whole == AsText(text) || quire::MayBeCompressed(AsText(text)) ||
      (*id_field != '\0' && quire::WideEncodingOf(AsText(text)).has_value()));
}

void CheckJson(absl::string_view text) {
  std::vector<quire::RecordField> fields = {{.name = "a"}};
  std::string tolerated;
  const absl::Status status =
      quire::ReadJsonFields(text, absl::MakeSpan(fields), &tolerated);
  const bool is_accepted = status.ok() && tolerated.empty();
  const auto json =
      nlohmann::json::parse(text.begin(), text.end(), nullptr, false);
  // Only ours refuses a byte order mark, and depth; only the other one numbers
  // that no double holds.
  const bool refuses_more =
      text.substr(0, 1) == "\xEF" ||
      std::count_if(text.begin(), text.end(), [](char byte) {
        return byte == '{' || byte == '[';
      }) > quire::kJsonDepthMax;
  const bool accepts_more =
      text.find_first_of("eE") != text.npos || text.size() > 300;
  QUIRE_CHECK(is_accepted == json.is_object() ||
              (is_accepted ? accepts_more : refuses_more));
  if (!is_accepted || !json.is_object()) {
    return;
  }
  const auto member = json.find("a");
  const bool is_string = member != json.end() && member->is_string();
  QUIRE_CHECK(!is_string || fields[0].value == member->get<std::string>());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) {
    return 0;
  }
  // The first byte chooses the sizes of pieces.
  const ByteView text(data + 1, size - 1);
  const size_t piece_size = size_t{1} + data[0];
  CheckLines(text, piece_size, "");
  CheckLines(text, piece_size, "a");
  CheckJson(AsText(text));
  return 0;
}
