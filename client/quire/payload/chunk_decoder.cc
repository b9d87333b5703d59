// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
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
// First part of a body by which chunks are recognised: most servers send
// smaller ones.
constexpr size_t kChunkTrialSizeBytes = 64 << 10;

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

enum class Trial { kChunked, kNotChunked, kNeedsMore };

// Judges a body that begins with an empty chunk, by the lines after that: in a
// message they are fields up to an empty line, and end it.
Trial TryTrailer(absl::string_view rest, bool is_end) {
  while (true) {
    const size_t end = rest.find('\n');
    if (end == absl::string_view::npos) {
      return is_end ? Trial::kNotChunked : Trial::kNeedsMore;
    }
    const absl::string_view line =
        absl::StripTrailingAsciiWhitespace(rest.substr(0, end));
    rest.remove_prefix(end + 1);
    if (line.empty()) {
      break;
    }
    const size_t colon = line.find(':');
    if (colon == absl::string_view::npos || colon == 0) {
      return Trial::kNotChunked;
    }
  }
  if (rest.find_first_not_of("\r\n") != absl::string_view::npos) {
    return Trial::kNotChunked;
  }
  return is_end ? Trial::kChunked : Trial::kNeedsMore;
}

// Judges a body that begins with `text`, and has no more if it `is_end`. A text
// that is not chunked may begin with a line of hexadecimal digits, too, so the
// first chunk must end as it should. One that does not end in `text` is taken
// for a chunk if CR LF ends its first line, as in every message over HTTP.
Trial TryChunks(absl::string_view text, bool is_end) {
  const bool is_all = is_end || text.size() >= kChunkTrialSizeBytes;
  const size_t line_end = text.find('\n');
  if (line_end == absl::string_view::npos || line_end >= kLineSizeBytesMax) {
    return is_all || text.size() > kLineSizeBytesMax ? Trial::kNotChunked
                                                     : Trial::kNeedsMore;
  }
  const std::optional<uint64_t> size = ParseChunkSize(
      absl::StripTrailingAsciiWhitespace(text.substr(0, line_end)));
  if (!size.has_value()) {
    return Trial::kNotChunked;
  }
  const absl::string_view rest = text.substr(line_end + 1);
  if (*size == 0) {
    const Trial trial = TryTrailer(rest, is_end);
    return trial == Trial::kNeedsMore && is_all ? Trial::kNotChunked : trial;
  }
  const absl::string_view after =
      rest.substr(static_cast<size_t>(std::min<uint64_t>(*size, rest.size())));
  const size_t end = after.find_first_not_of(" \t\v\f\r");
  if (end != absl::string_view::npos) {
    return after[end] == '\n' ? Trial::kChunked : Trial::kNotChunked;
  }
  if (!is_all) {
    return Trial::kNeedsMore;
  }
  return absl::EndsWith(text.substr(0, line_end), "\r") ? Trial::kChunked
                                                        : Trial::kNotChunked;
}

// True if a body that was cut may be chunked, and was cut before the text of
// its first chunk.
bool IsCutBeforeText(absl::string_view text) {
  if (TryChunks(text, /*is_end=*/false) != Trial::kNeedsMore) {
    return false;
  }
  const size_t line_end = text.find('\n');
  const absl::string_view line =
      absl::StripTrailingAsciiWhitespace(text.substr(0, line_end));
  const std::optional<uint64_t> size = ParseChunkSize(line);
  return line_end == absl::string_view::npos ? size.has_value() : size == 0;
}

class ChunkDecoder final : public BodyDecoder {
 public:
  absl::Status Feed(ByteView coded, PayloadSink out) override {
    if (state_ == State::kUnknown) {
      const absl::string_view taken =
          AsText(coded).substr(0, kChunkTrialSizeBytes - first_.size());
      first_.append(taken.data(), taken.size());
      QUIRE_RETURN_IF_ERROR(Try(/*is_end=*/false, out));
      coded = coded.subspan(taken.size());
    }
    return state_ == State::kUnknown ? absl::OkStatus() : Take(coded, out);
  }

  absl::Status Finish(bool is_whole, PayloadSink out) override {
    if (state_ == State::kUnknown) {
      // An empty body needs no chunks.
      if (first_.empty() || (!is_whole && IsCutBeforeText(first_))) {
        return absl::OkStatus();
      }
      QUIRE_RETURN_IF_ERROR(Try(/*is_end=*/true, out));
    }
    return is_whole ? CheckEnd() : absl::OkStatus();
  }

  bool was_not_coded() const override { return state_ == State::kNotChunked; }

 private:
  enum class State {
    // The first bytes do not show yet if the body is chunked.
    kUnknown,
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
      case State::kUnknown:
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

  // Looks at the bytes so far, and takes them if they show it.
  absl::Status Try(bool is_end, PayloadSink out) {
    const Trial trial =
        first_.empty() ? Trial::kNeedsMore : TryChunks(first_, is_end);
    if (trial == Trial::kNeedsMore) {
      return absl::OkStatus();
    }
    state_ = trial == Trial::kChunked ? State::kSize : State::kNotChunked;
    const std::string first = std::exchange(first_, {});
    return Take(AsBytes(first), out);
  }

  absl::Status Take(ByteView coded, PayloadSink out) {
    while (!coded.empty()) {
      switch (state_) {
        case State::kSize:
        case State::kTextEnd:
        case State::kTrailer:
          QUIRE_RETURN_IF_ERROR(TakeLine(coded));
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
        case State::kUnknown:
        case State::kDone:
          return absl::OkStatus();
      }
    }
    return absl::OkStatus();
  }

  // Takes bytes up to the end of a line, if present, and reads the line.
  absl::Status TakeLine(ByteView& coded) {
    const auto end = std::find(coded.begin(), coded.end(), '\n');
    const bool has_end = end != coded.end();
    const auto size =
        static_cast<size_t>(end - coded.begin()) + (has_end ? 1 : 0);
    const size_t taken = std::min(size, kLineSizeBytesMax + 1 - line_.size());
    line_.append(reinterpret_cast<const char*>(coded.data()), taken);
    coded = coded.subspan(taken);
    if (line_.size() > kLineSizeBytesMax) {
      return Malformed();
    }
    return has_end ? ReadLine() : absl::OkStatus();
  }

  absl::Status ReadLine() {
    const absl::string_view line = absl::StripTrailingAsciiWhitespace(
        absl::string_view(line_.data(), line_.size()));
    if (state_ == State::kSize) {
      const std::optional<uint64_t> size = ParseChunkSize(line);
      if (!size.has_value()) {
        return Malformed();
      }
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

  State state_ = State::kUnknown;
  // The first bytes, while the state is kUnknown.
  std::string first_;
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
