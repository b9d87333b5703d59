// SPDX-License-Identifier: Apache-2.0
#include "codecs/deflate/deflate_finder.h"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "absl/status/statusor.h"

#include "codecs/base/checksum.h"
#include "codecs/base/endian.h"

namespace quire {
namespace {

// Number of bytes tested as a group.
constexpr size_t kGroup = 64;
// Minimum cost of following a beginning, in steps.
constexpr uint64_t kTryCost = 64;
// Steps without result that each byte of a document allows, and that each
// document allows.
constexpr uint64_t kVainWorkOfByte = 16;
constexpr uint64_t kVainWorkFree = uint64_t{1} << 24;
// After this many consecutive members without a known encoder, only every
// eighth member whose header names the same maker is tried: fruitless trials of
// all parameters dominate the time.
constexpr uint32_t kForeignRow = 8;
constexpr uint32_t kForeignStep = 8;
// A stream of this size that the document's end truncates counts as refused.
constexpr size_t kLongStreamSize = size_t{1} << 20;
// Initial size of the memory for a decoded text.
constexpr size_t kTextSizeFirst = size_t{1} << 20;

// RFC 1952, section 2.3.1.
constexpr size_t kGzipHeaderSize = 10;
constexpr uint8_t kGzipHasHeaderCheck = 2;
constexpr uint8_t kGzipHasExtra = 4;
constexpr uint8_t kGzipHasName = 8;
constexpr uint8_t kGzipHasComment = 16;
constexpr uint8_t kGzipFlagsMax = 31;
// Maximum size of a name or comment with its final zero, in bytes. File systems
// allow names of 255 bytes.
constexpr size_t kGzipTextSizeMax = 4096;

constexpr size_t kZlibHeaderSize = 2;
constexpr uint8_t kZlibHasDictionary = 0x20;

// APPNOTE.TXT of PKWARE, section 4.3.7.
constexpr size_t kZipHeaderSize = 30;
constexpr uint32_t kZipSignature = 0x04034B50;
constexpr uint16_t kZipEncrypted = 1;
constexpr uint16_t kZipSizesFollow = 8;
constexpr uint16_t kZipDeflated = 8;

constexpr uint32_t kPngData = 0x54414449;  // "IDAT"

inline bool IsZlibHeader(uint8_t first, uint8_t second) {
  return (first & 0x8F) == 8 && (second & kZlibHasDictionary) == 0 &&
         (first * 256U + second) % 31 == 0;
}

// True if a header of some kind may begin with these two bytes.
inline bool MayBegin(uint8_t first, uint8_t second) {
  return ((first & 0x8F) == 8 && (second & kZlibHasDictionary) == 0) ||
         (first == 0x1F && second == 0x8B) || (first == 'P' && second == 'K');
}

// Returns the first position from `at` on at which MayBegin() holds, or `last`,
// which must be at most the last byte. The inner loop has no branch, so that
// the compiler vectorises it.
size_t NextBeginning(ByteView document, size_t at, size_t last) {
  const uint8_t* const bytes = document.data();
  while (at < last) {
    if (last - at >= kGroup) {
      uint8_t any = 0;
      for (size_t i = 0; i < kGroup; ++i) {
        const uint8_t a = bytes[at + i];
        const uint8_t b = bytes[at + i + 1];
        any |= static_cast<uint8_t>(
            (uint8_t{(a & 0x8F) == 8} & uint8_t{(b & 0x20) == 0}) |
            (uint8_t{a == 0x1F} & uint8_t{b == 0x8B}) |
            (uint8_t{a == 'P'} & uint8_t{b == 'K'}));
      }
      if (any == 0) {
        at += kGroup;
        continue;
      }
    }
    const size_t end = std::min(at + kGroup, last);
    for (; at < end; ++at) {
      if (MayBegin(bytes[at], bytes[at + 1])) {
        return at;
      }
    }
  }
  return last;
}

// Returns the size of the gzip header at the front; unset if there is no
// complete header. Adds the number of examined bytes to `work`.
std::optional<size_t> GzipHeaderSize(ByteView bytes, uint64_t& work) {
  if (bytes.size() < kGzipHeaderSize || bytes[2] != 8 ||
      bytes[3] > kGzipFlagsMax) {
    return std::nullopt;
  }
  const uint8_t flags = bytes[3];
  size_t size = kGzipHeaderSize;
  if ((flags & kGzipHasExtra) != 0) {
    if (bytes.size() < size + 2) {
      return std::nullopt;
    }
    size += size_t{2} + LoadLittleEndian<uint16_t>(bytes.data() + size);
  }
  for (const uint8_t flag : {kGzipHasName, kGzipHasComment}) {
    if ((flags & flag) != 0 && size < bytes.size()) {
      const ByteView rest = bytes.subspan(size).first(
          std::min(bytes.size() - size, kGzipTextSizeMax));
      const auto end = std::ranges::find(rest, 0);
      const auto text_size = static_cast<size_t>(end - rest.begin());
      work += text_size;
      if (end == rest.end()) {
        return std::nullopt;
      }
      size += text_size + 1;
    }
  }
  if ((flags & kGzipHasHeaderCheck) != 0) {
    size += 2;
  }
  return size < bytes.size() ? std::optional(size) : std::nullopt;
}

// True if a stream may begin with `bytes`; false for nearly all positions in
// random bytes.
bool MayBeStream(ByteView bytes) {
  if (bytes.size() < 2) {
    return false;
  }
  switch (bytes[0] >> 1 & 3) {
    case 0:
      return bytes.size() >= 5 &&
             (LoadLittleEndian<uint16_t>(bytes.data() + 1) ^
              LoadLittleEndian<uint16_t>(bytes.data() + 3)) == 0xFFFF;
    case 1:
      return true;
    case 2:
      // No more symbols than the format has.
      return bytes[0] >> 3 <= 29 && (bytes[1] & 31) <= 29;
    default:
      return false;
  }
}

}  // namespace

absl::string_view DeflateRefusalName(DeflateRefusal refusal) {
  switch (refusal) {
    case DeflateRefusal::kForeign:
      return "foreign encoder";
    case DeflateRefusal::kLarge:
      return "text too large";
    case DeflateRefusal::kSmall:
      return "too small";
    case DeflateRefusal::kWork:
      return "too much work";
    case DeflateRefusal::kRatio:
      return "compressed too well";
    case DeflateRefusal::kDamaged:
      return "checksum does not match";
  }
  return "unknown";
}

void KnownDeflateMembers::Add(ByteView member,
                              const DeflateParameters& parameters) {
  members_.push_back({.checksum = Checksum64(member),
                      .code = DeflateParametersCode(parameters)});
}

void KnownDeflateMembers::Add(const KnownDeflateMembers& other) {
  members_.insert(members_.end(), other.members_.begin(), other.members_.end());
}

void KnownDeflateMembers::Sort() {
  std::ranges::sort(members_, {}, [](const Known& known) {
    return std::pair(known.checksum, known.code);
  });
}

std::optional<DeflateParameters> KnownDeflateMembers::Find(
    ByteView member) const {
  const uint64_t checksum = Checksum64(member);
  const auto found =
      std::ranges::lower_bound(members_, checksum, {}, &Known::checksum);
  return found == members_.end() || found->checksum != checksum
             ? std::nullopt
             : DeflateParametersFromCode(found->code);
}

void DeflateFinderCounts::Add(const DeflateFinderCounts& other) {
  for (size_t i = 0; i < containers.size(); ++i) {
    OfContainer& to = containers[i];
    const OfContainer& from = other.containers[i];
    to.members += from.members;
    to.member_bytes += from.member_bytes;
    to.text_bytes += from.text_bytes;
    for (size_t k = 0; k < kDeflateRefusalCount; ++k) {
      to.refused[k] += from.refused[k];
      to.refused_bytes[k] += from.refused_bytes[k];
    }
  }
}

// The search of one document.
class DeflateFinder::Scan {
 public:
  Scan(DeflateFinder& finder, ByteView document,
       absl::FunctionRef<void(const DeflateMember&)> found,
       absl::FunctionRef<bool()> cancelled)
      : finder_(finder),
        document_(document),
        found_(found),
        cancelled_(cancelled),
        work_left_(kVainWorkFree + kVainWorkOfByte * document.size()) {}

  void Run(size_t begin_max) {
    if (document_.size() <
        std::max<size_t>(finder_.options_.member_size_min, 2)) {
      return;
    }
    const size_t last = std::min(document_.size() - 1, begin_max);
    for (size_t at = NextBeginning(document_, 0, last);
         at < last && work_left_ != 0 && !cancelled_();
         at = NextBeginning(document_, at, last)) {
      at = std::max(at + 1, Follow(at));
    }
  }

 private:
  // The container, and two bytes of its header that depend on the maker.
  using Maker = std::tuple<DeflateContainer, uint8_t, uint8_t>;

  // Sizes of the text and the stream decoded so far: up to the stream's end, or
  // to the limit on the text.
  struct Decoded {
    size_t text_size = 0;
    size_t stream_size = 0;
    bool is_whole = false;
  };

  // Examines the header at `at`. Returns the position at which to continue.
  size_t Follow(size_t at) {
    header_begin_ = at;
    const ByteView bytes = document_.subspan(at);
    if (IsZlibHeader(bytes[0], bytes[1])) {
      maker_ = {DeflateContainer::kZlib, bytes[0], bytes[1]};
      if (IsPngData(at)) {
        // The rest of a PNG chunk contains only compressed data.
        const uint32_t size =
            __builtin_bswap32(LoadLittleEndian<uint32_t>(bytes.data() - 8));
        return at + std::min<size_t>(size, bytes.size());
      }
      return Try(at + kZlibHeaderSize,
                 {.container = DeflateContainer::kZlib,
                  .effort = static_cast<uint8_t>(bytes[1] >> 6),
                  .window_bits = static_cast<uint8_t>((bytes[0] >> 4) + 8)},
                 std::nullopt);
    }
    if (bytes[0] == 0x1F && bytes[1] == 0x8B) {
      uint64_t work = 0;
      const std::optional<size_t> header = GzipHeaderSize(bytes, work);
      Spend(work);
      if (!header.has_value()) {
        return at;
      }
      maker_ = {DeflateContainer::kGzip, bytes[8], bytes[9]};
      return Try(at + *header,
                 {.container = DeflateContainer::kGzip, .effort = bytes[8]},
                 std::nullopt);
    }
    if (bytes.size() >= kZipHeaderSize &&
        LoadLittleEndian<uint32_t>(bytes.data()) == kZipSignature) {
      return FollowZip(at);
    }
    return at;
  }

  bool IsPngData(size_t at) const {
    return at >= 8 &&
           LoadLittleEndian<uint32_t>(document_.data() + at - 4) == kPngData;
  }

  size_t FollowZip(size_t at) {
    const uint8_t* const header = document_.data() + at;
    const auto flags = LoadLittleEndian<uint16_t>(header + 6);
    const auto method = LoadLittleEndian<uint16_t>(header + 8);
    const size_t begin = at + kZipHeaderSize +
                         LoadLittleEndian<uint16_t>(header + 26) +
                         LoadLittleEndian<uint16_t>(header + 28);
    if (method != kZipDeflated || (flags & kZipEncrypted) != 0) {
      return at;
    }
    // Required version, and flags.
    maker_ = {DeflateContainer::kRaw, header[4], header[6]};
    std::optional<size_t> size;
    if ((flags & kZipSizesFollow) == 0) {
      size = LoadLittleEndian<uint32_t>(header + 18);
    }
    return Try(begin, {.container = DeflateContainer::kRaw}, size);
  }

  void Spend(uint64_t work) { work_left_ -= std::min(work_left_, work); }

  // Decodes the stream at the front of `bytes`; unset if there is none.
  std::optional<Decoded> Decode(ByteView bytes) {
    const DeflateFinderOptions& options = finder_.options_;
    const size_t most =
        std::min(options.text_size_max, kDeflateTextSizeMax) + 1;
    std::vector<uint8_t>& text = finder_.text_;
    if (text.empty()) {
      text.resize(std::min(most, kTextSizeFirst));
    }
    for (;;) {
      finder_.decoder_.Start(bytes, text);
      const absl::StatusOr<size_t> size =
          finder_.decoder_.DecodeTo(text.size());
      if (!size.ok()) {
        return std::nullopt;
      }
      const bool is_whole = *size < text.size();
      if (is_whole || text.size() == most) {
        return Decoded{.text_size = *size,
                       .stream_size = finder_.decoder_.stored_size_so_far(),
                       .is_whole = is_whole};
      }
      Spend(*size);
      text.resize(std::min(most, 4 * text.size()));
    }
  }

  size_t Refuse(size_t end, size_t member_size, DeflateContainer container,
                DeflateRefusal refusal) {
    DeflateFinderCounts::OfContainer& counts =
        finder_.counts_.containers[static_cast<size_t>(container)];
    ++counts.refused[static_cast<size_t>(refusal)];
    counts.refused_bytes[static_cast<size_t>(refusal)] += member_size;
    return end;
  }

  // Tries to decode a stream at `begin`, of `stream_size` bytes if that is
  // known. Returns the position at which to continue; 0 if there is no stream.
  size_t Try(size_t begin, const DeflateHint& hint,
             std::optional<size_t> stream_size) {
    if (begin >= document_.size() || !MayBeStream(document_.subspan(begin))) {
      return 0;
    }
    ByteView bytes = document_.subspan(begin);
    if (stream_size.has_value()) {
      if (*stream_size > bytes.size()) {
        return 0;
      }
      bytes = bytes.first(*stream_size);
    }
    const std::optional<Decoded> decoded = Decode(bytes);
    Spend(kTryCost);
    if (!decoded.has_value()) {
      const size_t read_size = finder_.decoder_.stored_size_so_far();
      Spend(std::max(read_size, finder_.decoder_.text_size_so_far()));
      // False beginnings do not decode for this long.
      return read_size >= bytes.size() && read_size >= kLongStreamSize
                 ? Refuse(begin + bytes.size(), bytes.size(), hint.container,
                          DeflateRefusal::kLarge)
                 : 0;
    }
    return Judge(begin, hint, *decoded,
                 stream_size.value_or(decoded->stream_size));
  }

  size_t Judge(size_t begin, const DeflateHint& hint, const Decoded& decoded,
               size_t stream_size) {
    const DeflateFinderOptions& options = finder_.options_;
    const DeflateContainer container = hint.container;
    const size_t end = begin + decoded.stream_size;
    if (!decoded.is_whole) {
      Spend(decoded.text_size);
      return Refuse(end, decoded.stream_size, container,
                    DeflateRefusal::kLarge);
    }
    const size_t trailer_size = DeflateTrailerSize(container);
    const size_t member_size = decoded.stream_size + trailer_size;
    if (decoded.stream_size != stream_size ||
        member_size > document_.size() - begin) {
      Spend(decoded.text_size);
      return 0;
    }
    const ByteView member = document_.subspan(begin, member_size);
    const ByteView text = ByteView(finder_.text_).first(decoded.text_size);
    const DeflateTrailer trailer = MakeDeflateTrailer(container, text);
    if (!std::ranges::equal(member.last(trailer_size),
                            ByteView(trailer).first(trailer_size))) {
      Spend(decoded.text_size);
      // Short ones are usually random bytes, not streams.
      return member_size < options.member_size_min
                 ? 0
                 : Refuse(end, member_size, container,
                          DeflateRefusal::kDamaged);
    }
    if (member_size < options.member_size_min) {
      return Refuse(end, member_size, container, DeflateRefusal::kSmall);
    }
    if (text.size() / kDeflateRatioMax > member_size) {
      Spend(text.size());
      return Refuse(end, member_size, container, DeflateRefusal::kRatio);
    }
    DeflateRecipe recipe = {.parameters = {},
                            .container = container,
                            .text_size = text.size(),
                            .member_size = member_size};
    const std::optional<DeflateParameters> known =
        options.known == nullptr ? std::nullopt : options.known->Find(member);
    if (known.has_value()) {
      recipe.parameters = *known;
    } else if (const std::optional<DeflateRefusal> refusal =
                   Search(member.first(decoded.stream_size), hint, recipe)) {
      return Refuse(end, member_size, container, *refusal);
    }
    DeflateFinderCounts::OfContainer& counts =
        finder_.counts_.containers[static_cast<size_t>(container)];
    ++counts.members;
    counts.member_bytes += member_size;
    counts.text_bytes += text.size();
    found_({.offset = begin,
            .header_size = begin - header_begin_,
            .recipe = recipe,
            .text = text});
    return begin + member_size;
  }

  // Sets the parameters of `recipe`, of the text that was decoded last from
  // `stream`, or returns why there are none.
  std::optional<DeflateRefusal> Search(ByteView stream, const DeflateHint& hint,
                                       DeflateRecipe& recipe) {
    const ByteView text =
        ByteView(finder_.text_).first(static_cast<size_t>(recipe.text_size));
    uint32_t& row = foreign_rows_[maker_];
    if (row >= kForeignRow && (++row - kForeignRow) % kForeignStep != 0) {
      Spend(text.size());
      return DeflateRefusal::kForeign;
    }
    const absl::StatusOr<DeflateParameters> parameters =
        finder_.parameter_finder_.Find(stream, text, hint, cancelled_);
    recipe.parameters = parameters.value_or(DeflateParameters());
    if (!parameters.ok() || !CheckDeflateRecipe(recipe).ok()) {
      row += row < kForeignRow ? 1 : 0;
      Spend(finder_.parameter_finder_.work());
      return absl::IsResourceExhausted(parameters.status())
                 ? DeflateRefusal::kWork
                 : DeflateRefusal::kForeign;
    }
    row = 0;
    return std::nullopt;
  }

  DeflateFinder& finder_;
  ByteView document_;
  absl::FunctionRef<void(const DeflateMember&)> found_;
  absl::FunctionRef<bool()> cancelled_;
  uint64_t work_left_;
  // For the current member: the position of its header, and the maker that the
  // header suggests.
  size_t header_begin_ = 0;
  Maker maker_ = {};
  // Per maker, the number of consecutive members without a known encoder; above
  // kForeignRow, the excess counts members that were not tried.
  std::map<Maker, uint32_t> foreign_rows_;
};

DeflateFinder::DeflateFinder(const DeflateFinderOptions& options)
    : options_(options) {}

void DeflateFinder::Find(ByteView document,
                         absl::FunctionRef<void(const DeflateMember&)> found,
                         size_t begin_max,
                         absl::FunctionRef<bool()> cancelled) {
  Scan(*this, document, found, cancelled).Run(begin_max);
}

}  // namespace quire
