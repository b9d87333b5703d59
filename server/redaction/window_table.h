// SPDX-License-Identifier: GPL-3.0-or-later
//
// Finds parts that texts have in common: windows of 32 bytes.
#ifndef QUIRE_SERVER_REDACTION_WINDOW_TABLE_H_
#define QUIRE_SERVER_REDACTION_WINDOW_TABLE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "absl/status/status.h"

#include "codecs/base/bytes.h"

namespace quire {

// A window is a sequence of this many bytes of a text.
inline constexpr size_t kWindowSizeBytes = 32;

// Bytes [begin, end) of a text.
struct TextInterval {
  uint64_t begin = 0;
  uint64_t end = 0;

  bool operator==(const TextInterval&) const = default;
};

// A text that arrives in pieces. Thread-compatible.
class TextSink {
 public:
  TextSink() = default;
  TextSink(const TextSink&) = delete;
  TextSink& operator=(const TextSink&) = delete;
  virtual ~TextSink() = default;

  // Adds the next bytes of the text.
  virtual void Add(ByteView piece) = 0;
  // Ends the text; the next piece begins another.
  virtual void Break() = 0;
};

// A set of windows of one text. Equal windows are represented by the one that
// was added first. A window is found by a rolling hash (R. Karp, M. Rabin) and
// then compared byte for byte. Memory: 10 to 20 bytes for each of `count_max`
// windows. Thread-compatible.
class WindowTable {
 public:
  // `text` must outlive the table. REQUIRES: text.size() < 2^32 - 1.
  WindowTable(ByteView text, size_t count_max);

  // Number of different windows.
  size_t count() const { return count_; }

  // Adds the windows of the text that begin at `begin` to `end` - 1.
  // REQUIRES: they lie in the text; at most `count_max` windows in total.
  void Add(size_t begin, size_t end);

  // Calls `visit(offset, position)` for each window of `text` that is in the
  // table: its offset in `text`, and the position of its representative.
  template <typename Visit>
  void Scan(ByteView text, Visit&& visit) const {
    if (text.size() < kWindowSizeBytes) {
      return;
    }
    uint64_t hash = HashOf(text.data());
    for (size_t i = 0;; ++i) {
      const uint64_t mixed = Mix(hash);
      if (IsInFilter(mixed)) {
        const uint32_t position = Find(mixed, text.data() + i);
        if (position != kNone) {
          visit(i, position);
        }
      }
      if (i + kWindowSizeBytes == text.size()) {
        return;
      }
      hash = Roll(hash, text[i], text[i + kWindowSizeBytes]);
    }
  }

 private:
  static constexpr uint32_t kNone = UINT32_MAX;
  static constexpr uint64_t kBase = 0x9E3779B97F4A7C15;
  // To the power of kWindowSizeBytes - 1.
  static constexpr uint64_t kBasePower = [] {
    uint64_t power = 1;
    for (size_t i = 1; i < kWindowSizeBytes; ++i) {
      power *= kBase;
    }
    return power;
  }();

  static uint64_t HashOf(const uint8_t* window);

  // Replaces the first byte of a window by the one after it.
  static uint64_t Roll(uint64_t hash, uint8_t first, uint8_t next) {
    return (hash - (first + uint64_t{1}) * kBasePower) * kBase + next + 1;
  }

  // The high bits of a sum of products depend on all bytes, the low ones do
  // not.
  static uint64_t Mix(uint64_t hash) { return (hash ^ (hash >> 32)) * kBase; }

  bool IsInFilter(uint64_t mixed) const {
    const uint64_t bit = mixed >> filter_shift_;
    return ((filter_[bit / 64] >> (bit % 64)) & 1) != 0;
  }

  // Returns the position of an equal window; kNone if there is none.
  uint32_t Find(uint64_t mixed, const uint8_t* window) const;

  const ByteView text_;
  size_t count_ = 0;
  // Positions by hash; a power of two, at least twice the windows.
  std::vector<uint32_t> slots_;
  int slot_shift_ = 0;
  // At least 16 bits per window.
  std::vector<uint64_t> filter_;
  int filter_shift_ = 0;
};

// Calls a function with the representative of each window of a text that is in
// a table. Thread-compatible.
class WindowScanner final : public TextSink {
 public:
  using Visit = std::function<void(uint32_t position)>;

  // `table` must outlive the scanner, and must not change during its life.
  WindowScanner(const WindowTable& table, Visit visit)
      : table_(table), visit_(std::move(visit)) {}

  void Add(ByteView piece) override;

  void Break() override { tail_size_ = 0; }

 private:
  const WindowTable& table_;
  const Visit visit_;
  // The end of the text so far.
  std::array<uint8_t, kWindowSizeBytes - 1> tail_ = {};
  size_t tail_size_ = 0;
};

// Passes texts on in batches of limited size. Windows that begin in one batch
// and end in the next are in the next. Thread-compatible.
class TextCollector final : public TextSink {
 public:
  // Gets a batch, and its texts: [begin, end) of each, with at least one
  // window. After an error it gets no more.
  using Check = std::function<absl::Status(
      ByteView batch, const std::vector<TextInterval>& texts)>;

  TextCollector(size_t size_bytes_max, Check check);

  void Add(ByteView piece) override;
  void Break() override;

  // Passes on the rest. Returns the first error of all batches.
  absl::Status Finish();

 private:
  // Continues the current text with the windows that are not in this batch.
  void Flush();

  const size_t size_max_;
  const Check check_;
  std::vector<uint8_t> batch_;
  // Start of the current text.
  uint64_t begin_ = 0;
  std::vector<TextInterval> texts_;
  absl::Status status_;
};

}  // namespace quire

#endif  // QUIRE_SERVER_REDACTION_WINDOW_TABLE_H_
