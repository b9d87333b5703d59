// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

#include "client/quire/payload/body_decoder.h"
#include "codecs/base/printable_text.h"
#include "codecs/base/status_macros.h"

namespace quire {
namespace {

// Upper bound on the line before a chunk, with its extensions, and on a trailer
// line.
constexpr size_t kLineSizeBytesMax = 16 << 10;
constexpr size_t kShownLineSizeBytes = 20;

// Parses the size at the start of a line: hexadecimal digits up to a semicolon
// or the end.
std::optional<uint64_t> ParseChunkSize(absl::string_view line) {
  uint64_t size = 0;
  size_t digit_count = 0;
  for (; digit_count < line.size(); ++digit_count) {
    const auto c = static_cast<unsigned char>(line[digit_count]);
    if (!absl::ascii_isxdigit(c)) {
      break;
    }
    if (size > (std::numeric_limits<uint64_t>::max() >> 4)) {
      return std::nullopt;
    }
    const int digit =
        absl::ascii_isdigit(c) ? c - '0' : absl::ascii_tolower(c) - 'a' + 10;
    size = size * 16 + static_cast<uint64_t>(digit);
  }
  const absl::string_view rest =
      absl::StripAsciiWhitespace(line.substr(digit_count));
  return digit_count > 0 && (rest.empty() || rest.front() == ';')
             ? std::optional(size)
             : std::nullopt;
}

class ChunkDecoder final : public BodyDecoder {
 public:
  absl::Status Feed(ByteView coded, PayloadSink out) override {
    while (!coded.empty()) {
      switch (state_) {
        case State::kSize:
        case State::kTextEnd:
        case State::kTrailer:
          QUIRE_RETURN_IF_ERROR(TakeLine(coded, out));
          break;
        case State::kText: {
          const auto size = static_cast<size_t>(
              std::min<uint64_t>(coded.size(), left_size_bytes_));
          QUIRE_RETURN_IF_ERROR(out(coded.first(size)));
          coded = coded.subspan(size);
          left_size_bytes_ -= size;
          state_ = left_size_bytes_ == 0 ? State::kTextEnd : State::kText;
          break;
        }
        case State::kNotChunked:
          return out(coded);
        case State::kDone:
          return absl::OkStatus();
      }
    }
    return absl::OkStatus();
  }

  absl::Status Finish(bool is_whole, PayloadSink out) override {
    if (state_ == State::kSize && is_first_) {
      // An empty body needs no chunks.
      const bool is_chunk =
          line_.empty() || (!is_whole && ParseChunkSize(line_).has_value());
      return is_chunk ? absl::OkStatus() : PassOn(out);
    }
    return is_whole ? CheckEnd() : absl::OkStatus();
  }

  bool was_not_coded() const override { return state_ == State::kNotChunked; }

 private:
  enum class State {
    // In the line before a chunk.
    kSize,
    kText,
    // In the line end after a chunk.
    kTextEnd,
    // After the last chunk, up to an empty line.
    kTrailer,
    kNotChunked,
    kDone,
  };

  absl::Status CheckEnd() const {
    switch (state_) {
      case State::kSize:
        return absl::DataLossError(
            "the body is cut short: its last chunk is missing");
      case State::kText:
        return absl::DataLossError(
            absl::StrCat("the body is cut short: ", left_size_bytes_,
                         " bytes of a chunk are missing"));
      case State::kTextEnd:
        return absl::DataLossError(
            "the body is cut short at the end of a chunk");
      case State::kTrailer:
      case State::kNotChunked:
      case State::kDone:
        break;
    }
    return absl::OkStatus();
  }

  absl::Status PassOn(PayloadSink out) {
    state_ = State::kNotChunked;
    return line_.empty()
               ? absl::OkStatus()
               : out(AsBytes(absl::string_view(line_.data(), line_.size())));
  }

  // Takes bytes up to the end of a line, if present, and reads the line.
  absl::Status TakeLine(ByteView& coded, PayloadSink out) {
    const auto end = std::find(coded.begin(), coded.end(), '\n');
    const bool has_end = end != coded.end();
    const auto size =
        static_cast<size_t>(end - coded.begin()) + (has_end ? 1 : 0);
    const size_t taken = std::min(size, kLineSizeBytesMax + 1 - line_.size());
    line_.append(reinterpret_cast<const char*>(coded.data()), taken);
    coded = coded.subspan(taken);
    if (line_.size() > kLineSizeBytesMax) {
      return is_first_ ? PassOn(out) : Malformed();
    }
    return has_end ? ReadLine(out) : absl::OkStatus();
  }

  absl::Status ReadLine(PayloadSink out) {
    const absl::string_view line = absl::StripTrailingAsciiWhitespace(
        absl::string_view(line_.data(), line_.size()));
    if (state_ == State::kSize) {
      const std::optional<uint64_t> size = ParseChunkSize(line);
      if (!size.has_value()) {
        return is_first_ ? PassOn(out) : Malformed();
      }
      is_first_ = false;
      left_size_bytes_ = *size;
      state_ = *size == 0 ? State::kTrailer : State::kText;
    } else if (state_ == State::kTextEnd) {
      if (!line.empty()) {
        return Malformed();
      }
      state_ = State::kSize;
    } else if (line.empty()) {
      state_ = State::kDone;
    }
    line_.clear();
    return absl::OkStatus();
  }

  absl::Status Malformed() const {
    return absl::DataLossError(absl::StrCat(
        "the body is not chunked as Transfer-Encoding says: found ",
        QuotedText(line_, kShownLineSizeBytes),
        state_ == State::kTextEnd ? " where a chunk must end"
                                  : " where a chunk must begin"));
  }

  State state_ = State::kSize;
  // No chunk has begun yet.
  bool is_first_ = true;
  // Received part of the current line.
  std::string line_;
  // Remaining size of the current chunk.
  uint64_t left_size_bytes_ = 0;
};

}  // namespace

std::unique_ptr<BodyDecoder> MakeChunkDecoder() {
  return std::make_unique<ChunkDecoder>();
}

}  // namespace quire
