// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/service/limits/stream_window.h"

#include <deque>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

#include "server/service/base/service_error.h"
#include "testing/base/status_matchers.h"

namespace quire {
namespace {

constexpr StreamWindow::Sizes kSizes = {
    .least_bytes = 10, .start_bytes = 40, .most_bytes = 200};

// An endless stream of messages, always as far ahead as its window allows.
class Stream {
 public:
  explicit Stream(StreamWindow window) : window_(std::move(window)) { Fill(); }

  StreamWindow& window() { return window_; }

  // Simulates that the client takes `count` messages.
  void Send(int count) {
    for (int i = 0; i < count; ++i) {
      ASSERT_FALSE(messages_.empty()) << "the stream does not go on";
      window_.GiveBack(messages_.front());
      messages_.pop_front();
      Fill();
    }
  }

 private:
  void Fill() {
    while (window_.TryTake(window_.message_size_bytes())) {
      messages_.push_back(window_.message_size_bytes());
    }
  }

  StreamWindow window_;
  std::deque<uint64_t> messages_;
};

Stream OpenStream(Admission& admission, const std::string& client) {
  absl::StatusOr<StreamWindow> window =
      StreamWindow::Open(admission, client, kSizes);
  QUIRE_EXPECT_OK(window.status());
  return Stream(*std::move(window));
}

TEST(StreamWindowTest, DoublesWheneverItsClientHasTakenMoreThanAWindow) {
  Admission admission(10'000, 5'000);
  Stream stream = OpenStream(admission, "a");
  EXPECT_EQ(stream.window().size_bytes(), 40u);
  EXPECT_EQ(stream.window().message_size_bytes(), 20u);
  // As much may be on its way to a client that reads nothing.
  stream.Send(2);
  EXPECT_EQ(stream.window().size_bytes(), 40u);
  stream.Send(1);
  EXPECT_EQ(stream.window().size_bytes(), 80u);
  EXPECT_EQ(admission.in_flight_bytes(), 80u);
  stream.Send(4);
  EXPECT_EQ(stream.window().size_bytes(), 160u);
  stream.Send(100);
  EXPECT_EQ(stream.window().size_bytes(), 200u);
  EXPECT_EQ(stream.window().message_size_bytes(), 200u);
}

TEST(StreamWindowTest, StaysWhereItIsWideEnough) {
  Admission admission(10'000, 5'000);
  QUIRE_ASSERT_OK_AND_ASSIGN(StreamWindow window,
                             StreamWindow::Open(admission, "a", kSizes));
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(window.TryTake(40));
    window.GiveBack(40);
  }
  EXPECT_EQ(window.size_bytes(), 40u);
  EXPECT_FALSE(window.is_in_use());
}

TEST(StreamWindowTest, GrowsOnceForBeingFullOnce) {
  Admission admission(10'000, 5'000);
  QUIRE_ASSERT_OK_AND_ASSIGN(StreamWindow window,
                             StreamWindow::Open(admission, "a", kSizes));
  ASSERT_TRUE(window.TryTake(40));
  ASSERT_FALSE(window.TryTake(1));
  window.GiveBack(40);
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(window.TryTake(40));
    window.GiveBack(40);
  }
  EXPECT_EQ(window.size_bytes(), 80u);
}

TEST(StreamWindowTest, BeginsWithTheLeastWhereOthersHaveBegun) {
  Admission admission(1'000, 500);
  std::vector<Stream> streams;
  for (int i = 0; i < 50; ++i) {
    streams.push_back(OpenStream(admission, absl::StrCat(i)));
  }
  EXPECT_EQ(streams.front().window().size_bytes(), 40u);
  EXPECT_EQ(streams.back().window().size_bytes(), 10u);
  EXPECT_LE(admission.in_flight_bytes(), 1'000 / 8 + 49 * 10);
  for (Stream& stream : streams) {
    stream.Send(10);
  }
}

TEST(StreamWindowTest, WideWindowsLeaveRoomToOpenOthers) {
  Admission admission(1'000, 500);
  std::vector<Stream> wide;
  for (const char* client : {"a", "b", "c", "d"}) {
    wide.push_back(OpenStream(admission, client));
    wide.back().Send(100);
  }
  EXPECT_LE(admission.in_flight_bytes(), 500u);
  // All of them stop, as if their clients had stopped reading.
  std::vector<Stream> others;
  for (int i = 0; i < 25; ++i) {
    others.push_back(OpenStream(admission, absl::StrCat(i)));
    others.back().Send(10);
  }
  EXPECT_LE(admission.in_flight_bytes(), 750u);
}

TEST(StreamWindowTest, NarrowsForThoseWhoComeLater) {
  Admission admission(1'000, 500);
  Stream first = OpenStream(admission, "first");
  first.Send(100);
  EXPECT_EQ(first.window().size_bytes(), 200u);
  std::deque<Stream> others;
  for (int i = 0; i < 60; ++i) {
    others.push_back(OpenStream(admission, absl::StrCat(i)));
    first.Send(1);
  }
  // Half of all memory is in use, so each has only its minimum.
  EXPECT_EQ(first.window().size_bytes(), 10u);
  first.Send(100);
  others.clear();
  first.Send(100);
  EXPECT_EQ(first.window().size_bytes(), 200u);
}

TEST(StreamWindowTest, SharesAmongClientsNotAmongStreams) {
  Admission admission(1'600, 800);
  std::vector<Stream> many;
  for (int i = 0; i < 20; ++i) {
    many.push_back(OpenStream(admission, "many"));
  }
  for (int i = 0; i < 100; ++i) {
    for (Stream& stream : many) {
      stream.Send(1);
    }
  }
  Stream one = OpenStream(admission, "one");
  for (int i = 0; i < 100; ++i) {
    one.Send(1);
    for (Stream& stream : many) {
      stream.Send(1);
    }
  }
  uint64_t many_bytes = 0;
  for (Stream& stream : many) {
    many_bytes += stream.window().size_bytes();
  }
  EXPECT_GE(one.window().size_bytes(), 150u);
  EXPECT_LE(many_bytes, 2 * one.window().size_bytes());
}

TEST(StreamWindowTest, RaisesTheLeastOrSaysThatItCannot) {
  Admission admission(1'000, 600);
  QUIRE_ASSERT_OK_AND_ASSIGN(StreamWindow window,
                             StreamWindow::Open(admission, "a", kSizes));
  EXPECT_FALSE(window.TryTake(300));
  QUIRE_ASSERT_OK(window.Raise(300));
  EXPECT_EQ(admission.in_flight_bytes(), 300u);
  ASSERT_TRUE(window.TryTake(300));
  EXPECT_FALSE(window.TryTake(1));
  EXPECT_EQ(ReasonOf(window.Raise(501)), v1::SERVER_BUSY);
  QUIRE_ASSERT_OK_AND_ASSIGN(StreamWindow other,
                             StreamWindow::Open(admission, "b", kSizes));
  QUIRE_ASSERT_OK(other.Raise(440));
  // More than three quarters.
  EXPECT_EQ(ReasonOf(other.Raise(451)), v1::SERVER_BUSY);
  window.GiveBack(300);
  EXPECT_EQ(window.size_bytes(), 300u);
  window = StreamWindow();
  EXPECT_FALSE(window.is_open());
  EXPECT_EQ(admission.in_flight_bytes(), 440u);
}

}  // namespace
}  // namespace quire
