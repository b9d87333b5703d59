// SPDX-License-Identifier: GPL-3.0-or-later
//
// Compares the catalog with a model of the table of states and events in
// catalog.h: for each pair, and for random events.
#include "server/service/catalog/catalog.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"

#include "server/service/base/service_error.h"
#include "testing/archive/archive_testing.h"
#include "testing/base/status_matchers.h"
#include "testing/base/test_level.h"

namespace quire {
namespace {

using std::chrono::seconds;

// Writes an archive of one document, and opens it.
std::shared_ptr<const Archive> SmallArchive() {
  const TemporaryDirectory scratch;
  ArchiveWriterOptions options;
  options.codec = ParseCodecSpec("copy").value();
  options.block_size_bytes = 4096;
  const std::string path = scratch.path() + "/a.quire";
  QUIRE_EXPECT_OK(
      WriteTestArchive(path, options, {{{.id = "id", .text = "text"}}}));
  return Archive::Open(path).value();
}

ArchiveArgument At(const std::string& name, int place, bool is_listed) {
  return {.name = name,
          .path = absl::StrCat("/srv/", place),
          .is_listed = is_listed};
}

class CatalogTest : public ::testing::Test {
 protected:
  CatalogTest() {
    catalog_.SetDemand([this](const ArchiveArgument& archive) {
      asked_.push_back(archive.name);
    });
  }

  std::shared_ptr<ServedArchive> Open(const std::string& name) const {
    auto served = std::make_shared<ServedArchive>();
    served->name = name;
    served->archive = archive_;
    return served;
  }

  void Remove(const std::string& name) {
    catalog_.RemoveAllBut(
        [&](const ArchiveArgument& argument) { return argument.name != name; });
  }

  std::string MessageOfNotFound() {
    const absl::Status status = catalog_.Find("x").status();
    EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
    return std::string(status.message());
  }

  void Fail(const std::string& name) {
    catalog_.Begin(name, Catalog::Purpose::kReplace)->Fail();
  }

  const std::shared_ptr<const Archive> archive_ = SmallArchive();
  Catalog::Clock::time_point now_ = Catalog::Clock::now();
  Catalog catalog_{[this] { return now_; }};
  std::vector<std::string> asked_;
};

// The entry of one archive.
struct Model {
  bool exists = false;
  Wanted wanted = Wanted::kAlways;
  bool is_served = false;
  Attempt attempt = Attempt::kNone;
  bool has_failed = false;
  // The last failure delays the next attempt.
  bool is_delayed = false;
  // No call has used it since it was opened, a moment ago.
  bool is_fresh = false;

  auto Key() const {
    return std::tuple(exists, wanted, is_served, attempt, has_failed,
                      is_delayed, is_fresh);
  }

  v1::ArchiveState State() const {
    if (!exists) {
      return v1::ARCHIVE_STATE_UNSPECIFIED;
    }
    if (is_served) {
      return v1::ARCHIVE_STATE_OPEN;
    }
    if (wanted == Wanted::kAlways) {
      return has_failed ? v1::ARCHIVE_STATE_UNSPECIFIED
                        : v1::ARCHIVE_STATE_OPENING;
    }
    return attempt == Attempt::kNone ? v1::ARCHIVE_STATE_CLOSED
                                     : v1::ARCHIVE_STATE_OPENING;
  }
};

enum class Event {
  kFind,
  kBeginOpen,
  kBeginReplace,
  kBeginTidy,
  kWait,
  kFail,
  kClose,
  kEnd,
  kPublish,
  kCloseOne,
  kWantAlways,
  kWantOnUse,
  kWantOnUseElsewhere,
  kRemove,
  kTimePasses,
};
constexpr int kEventCount = 15;

// One archive, with its model.
class CatalogTableTest : public CatalogTest {
 protected:
  // False if the event would wait for the holder of the Opening, this thread.
  bool MayApply(Event event) const {
    return !opening_.has_value() ||
           (event != Event::kBeginReplace && event != Event::kRemove &&
            event != Event::kWantOnUseElsewhere);
  }

  void Apply(Event event) {
    switch (event) {
      case Event::kFind:
        Find();
        break;
      case Event::kBeginOpen:
        Begin(Catalog::Purpose::kOpen,
              model_.exists && (model_.attempt == Attempt::kQueued ||
                                model_.attempt == Attempt::kWaiting));
        break;
      case Event::kBeginReplace:
        Begin(Catalog::Purpose::kReplace,
              model_.exists &&
                  (model_.wanted == Wanted::kAlways || model_.is_served));
        break;
      case Event::kBeginTidy:
        Begin(Catalog::Purpose::kTidy,
              model_.exists && model_.wanted == Wanted::kOnUse &&
                  !model_.is_served && model_.attempt == Attempt::kNone);
        break;
      case Event::kWait:
        if (opening_.has_value()) {
          opening_->Wait();
          opening_.reset();
          model_.attempt = Attempt::kWaiting;
        }
        break;
      case Event::kFail:
        if (opening_.has_value()) {
          opening_->Fail();
          opening_.reset();
          model_.attempt = Attempt::kNone;
          model_.has_failed = true;
          model_.is_delayed = true;
        }
        break;
      case Event::kClose:
        if (opening_.has_value()) {
          opening_->Close();
          opening_.reset();
          model_.attempt = Attempt::kNone;
          model_.is_served = false;
          model_.has_failed = true;
          model_.is_delayed = true;
        }
        break;
      case Event::kEnd:
        if (opening_.has_value()) {
          opening_.reset();
          model_.attempt = Attempt::kNone;
        }
        break;
      case Event::kPublish:
        Publish();
        break;
      case Event::kCloseOne: {
        const bool may_close =
            model_.wanted == Wanted::kOnUse && model_.is_served &&
            model_.attempt == Attempt::kNone && !model_.is_fresh;
        EXPECT_EQ(catalog_.CloseOne(Catalog::Victim::kUnread), may_close);
        model_.is_served = model_.is_served && !may_close;
        break;
      }
      case Event::kWantAlways:
        Add(At("a", place_, false));
        break;
      case Event::kWantOnUse:
        Add(At("a", place_, true));
        break;
      case Event::kWantOnUseElsewhere:
        Add(At("a", ++place_, true));
        if (model_.is_served) {
          model_.is_served = false;
        }
        model_.attempt = Attempt::kNone;
        model_.has_failed = false;
        break;
      case Event::kRemove:
        Remove("a");
        model_ = {};
        break;
      case Event::kTimePasses:
        now_ += Catalog::kRetryDelayMax;
        model_.is_delayed = false;
        model_.is_fresh = false;
        break;
    }
  }

  void ExpectAsModelled() const {
    const auto shown = catalog_.Show("a");
    EXPECT_EQ(shown.has_value(), model_.exists);
    EXPECT_EQ(shown.has_value() ? shown->state : v1::ARCHIVE_STATE_UNSPECIFIED,
              model_.State());
    EXPECT_EQ(catalog_.FindOpen("a") != nullptr, model_.is_served);
    EXPECT_EQ(catalog_.Get().size(), model_.is_served ? 1u : 0u);
    const Catalog::Counts counts = catalog_.counts();
    const uint64_t one = model_.exists ? 1 : 0;
    EXPECT_EQ(counts.open + counts.opening + counts.failed + counts.closed,
              one);
    EXPECT_EQ(counts.open, model_.is_served ? one : 0);
    EXPECT_EQ(counts.failed, model_.has_failed && !model_.is_served ? one : 0);
    EXPECT_EQ(counts.on_use, model_.wanted == Wanted::kOnUse ? one : 0);
    EXPECT_EQ(counts.on_use_open,
              model_.wanted == Wanted::kOnUse && model_.is_served ? one : 0);
  }

  Model model_;
  int place_ = 0;
  std::optional<Catalog::Opening> opening_;

 private:
  void Find() {
    const size_t asked_before = asked_.size();
    now_ += std::chrono::milliseconds(1);
    const auto found = catalog_.Find("a");
    EXPECT_EQ(found.ok(), model_.is_served);
    if (model_.is_served) {
      model_.is_fresh = model_.is_fresh && model_.wanted == Wanted::kAlways;
      return;
    }
    EXPECT_EQ(found.status().code(), model_.exists
                                         ? absl::StatusCode::kUnavailable
                                         : absl::StatusCode::kNotFound);
    EXPECT_EQ(ReasonOf(found.status()),
              !model_.exists ? v1::ARCHIVE_NOT_FOUND
              : model_.State() == v1::ARCHIVE_STATE_UNSPECIFIED ||
                      (model_.wanted == Wanted::kOnUse &&
                       model_.attempt == Attempt::kNone && model_.has_failed &&
                       model_.is_delayed)
                  ? v1::ARCHIVE_BROKEN
                  : v1::ARCHIVE_OPENING);
    const bool is_asked = model_.exists && model_.wanted == Wanted::kOnUse &&
                          model_.attempt == Attempt::kNone &&
                          !model_.is_delayed;
    EXPECT_EQ(asked_.size(), asked_before + (is_asked ? 1 : 0));
    if (is_asked) {
      model_.attempt = Attempt::kQueued;
    }
  }

  void Begin(Catalog::Purpose purpose, bool may_begin) {
    std::optional<Catalog::Opening> begun = catalog_.Begin("a", purpose);
    EXPECT_EQ(begun.has_value(), may_begin);
    if (begun.has_value()) {
      EXPECT_EQ(begun->argument().path, absl::StrCat("/srv/", place_));
      opening_.emplace(*std::move(begun));
      model_.attempt = Attempt::kRunning;
    }
  }

  void Publish() {
    if (!opening_.has_value()) {
      return;
    }
    // As after an opening: the time to the next event is no time.
    now_ += seconds(10);
    model_.is_delayed = false;
    catalog_.Publish(Open("a"));
    model_.is_served = true;
    model_.has_failed = false;
    model_.is_fresh = true;
  }

  void Add(const ArchiveArgument& argument) {
    catalog_.Add(argument, {});
    model_.exists = true;
    model_.wanted = argument.is_listed ? Wanted::kOnUse : Wanted::kAlways;
    model_.is_delayed = false;
  }
};

// Breadth first: the events that lead to each state are applied again before
// each event in it.
TEST_F(CatalogTableTest, EachEventInEachStateIsAsTheTableSays) {
  std::map<decltype(model_.Key()), std::vector<Event>> paths;
  std::deque<std::vector<Event>> unexplored = {{}};
  paths[model_.Key()] = {};
  while (!unexplored.empty() && !HasFailure()) {
    const std::vector<Event> path = unexplored.front();
    unexplored.pop_front();
    for (int e = 0; e < kEventCount && !HasFailure(); ++e) {
      opening_.reset();
      Remove("a");
      model_ = {};
      for (const Event event : path) {
        Apply(event);
      }
      const auto event = static_cast<Event>(e);
      if (!MayApply(event)) {
        continue;
      }
      SCOPED_TRACE(
          absl::StrCat("event ", e, " after ", path.size(), " others"));
      Apply(event);
      ExpectAsModelled();
      std::vector<Event> longer = path;
      longer.push_back(event);
      if (paths.emplace(model_.Key(), longer).second) {
        unexplored.push_back(std::move(longer));
      }
    }
  }
  opening_.reset();
  // Wanted in two ways, with four attempts, served or not, failed or not; some
  // exclude each other.
  EXPECT_GT(paths.size(), 30u);
}

// Events of other threads wait for an opening that hangs; those that end it
// cancel it first.
TEST_F(CatalogTest, EventsWaitForAnOpeningThatHangs) {
  const auto hang = [&](const std::function<void()>& event) {
    catalog_.Add(At("a", 0, true), {});
    EXPECT_THAT(catalog_.Find("a"), HasCode(absl::StatusCode::kUnavailable));
    auto opening = catalog_.Begin("a", Catalog::Purpose::kOpen);
    ASSERT_TRUE(opening.has_value());
    std::atomic<bool> has_ended = false;
    std::jthread other([&] {
      event();
      has_ended = true;
    });
    while (!opening->is_cancelled()) {
      std::this_thread::yield();
    }
    EXPECT_FALSE(has_ended);
    EXPECT_THAT(catalog_.Find("b"), HasCode(absl::StatusCode::kNotFound));
    opening.reset();
    other.join();
    EXPECT_TRUE(has_ended);
  };
  hang([&] { Remove("a"); });
  EXPECT_THAT(catalog_.Find("a"), HasCode(absl::StatusCode::kNotFound));
  hang([&] { catalog_.Add(At("a", 1, true), {}); });
  EXPECT_EQ(catalog_.Show("a")->state, v1::ARCHIVE_STATE_CLOSED);
  Remove("a");

  // A reload waits for its turn, and does not cancel.
  catalog_.Add(At("a", 0, false), {});
  auto first = catalog_.Begin("a", Catalog::Purpose::kReplace);
  std::atomic<bool> has_begun = false;
  std::jthread second([&] {
    EXPECT_TRUE(catalog_.Begin("a", Catalog::Purpose::kReplace).has_value());
    has_begun = true;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_FALSE(has_begun);
  EXPECT_FALSE(first->is_cancelled());
  first.reset();
  second.join();

  auto last = catalog_.Begin("a", Catalog::Purpose::kReplace);
  catalog_.CancelOpenings();
  EXPECT_TRUE(last->is_cancelled());
  last.reset();
  EXPECT_TRUE(catalog_.Begin("a", Catalog::Purpose::kReplace)->is_cancelled());
}

// Many threads apply events to a few archives: what is counted is what there
// is, and each attempt has one thread.
TEST(CatalogThreadsTest, EventsOfManyThreads) {
  const std::shared_ptr<const Archive> archive = SmallArchive();
  Catalog catalog;
  Mutex mutex;
  std::vector<std::string> queue;
  catalog.SetDemand([&](const ArchiveArgument& asked) {
    MutexLock lock(&mutex);
    queue.push_back(asked.name);
  });
  const auto argument = [](uint64_t i) {
    return At(absl::StrCat("n", i % 4), static_cast<int>(i / 4 % 2),
              i % 4 != 0);
  };
  std::array<std::atomic<int>, 4> holders{};
  std::atomic<bool> is_done = false;
  const auto hold = [&](const Catalog::Opening& opening, uint64_t roll) {
    std::atomic<int>& count =
        holders[static_cast<size_t>(opening.argument().name[1] - '0')];
    EXPECT_EQ(++count, 1);
    if (roll % 3 != 0) {
      auto served = std::make_shared<ServedArchive>();
      served->name = opening.argument().name;
      served->archive = archive;
      catalog.Publish(std::move(served));
    }
    --count;
  };
  {
    std::vector<std::jthread> threads;
    // Calls.
    for (uint64_t t = 0; t < 2; ++t) {
      threads.emplace_back([&, t] {
        std::mt19937_64 random(t);
        while (!is_done) {
          const std::string name = absl::StrCat("n", random() % 4);
          const auto found = catalog.Find(name);
          EXPECT_TRUE(!found.ok() || (*found)->name == name);
          catalog.Visit([](const Catalog::Shown& shown) {
            EXPECT_EQ(shown.served != nullptr,
                      shown.state == v1::ARCHIVE_STATE_OPEN);
          });
          EXPECT_LE(catalog.counts().on_use, 4u);
        }
      });
    }
    // Openers, and what closes for memory.
    for (uint64_t t = 2; t < 4; ++t) {
      threads.emplace_back([&, t] {
        std::mt19937_64 random(t);
        while (!is_done) {
          std::string name;
          {
            MutexLock lock(&mutex);
            if (!queue.empty()) {
              name = queue.back();
              queue.pop_back();
            }
          }
          if (auto opening = catalog.Begin(name, Catalog::Purpose::kOpen);
              opening.has_value()) {
            hold(*opening, random());
            if (random() % 4 == 0) {
              opening->Fail();
            }
          }
          catalog.CloseOne(Catalog::Victim::kAny);
          catalog.GetHeld();
        }
      });
    }
    // Reloads.
    std::mt19937_64 random(9);
    for (int i = 0; i < TestRounds(300, 3000); ++i) {
      const uint64_t roll = random();
      catalog.Add(argument(roll), {});
      if (roll % 5 == 0) {
        catalog.RemoveAllBut([&](const ArchiveArgument& one) {
          return one.name != argument(roll).name;
        });
      }
      if (auto opening =
              catalog.Begin(argument(roll).name, Catalog::Purpose::kReplace);
          opening.has_value()) {
        hold(*opening, random());
      }
    }
    is_done = true;
  }
  const Catalog::Counts counts = catalog.counts();
  EXPECT_EQ(counts.open, catalog.Get().size());
  catalog.RemoveAllBut([](const ArchiveArgument&) { return false; });
  const Catalog::Counts none = catalog.counts();
  EXPECT_EQ(none.open + none.opening + none.failed + none.closed + none.on_use,
            0u);
  for (const Catalog::Held& held : catalog.GetHeld()) {
    EXPECT_EQ(held.served, nullptr);
  }
}

TEST_F(CatalogTest, NamesThoseThatThereAre) {
  EXPECT_EQ(MessageOfNotFound(), "no archive \"x\" here");
  catalog_.Add(At("docs", 0, false), {});
  EXPECT_EQ(MessageOfNotFound(), "no archive \"x\" here, but docs");
  for (const char* name : {"a", "b", "c", "d"}) {
    catalog_.Add(At(name, 0, name[0] % 2 == 0), {});
  }
  EXPECT_EQ(MessageOfNotFound(), "no archive \"x\" here, but a, b, c, d, docs");
  catalog_.Add(At("e", 0, false), {});
  catalog_.Add(At("f", 0, false), {});
  EXPECT_EQ(MessageOfNotFound(),
            "no archive \"x\" here, but a, b, c, d, docs and others");
  // Hidden names do not affect the message either.
  const NameSample shown = catalog_.SampleNames(
      [](const std::string& name) { return name != "e" && name != "f"; });
  EXPECT_EQ(shown.names.size(), kSampledNamesMax);
  EXPECT_FALSE(shown.has_more);
  // Nor do those that could not be opened.
  Fail("a");
  EXPECT_THAT(
      catalog_.SampleNames([](const std::string& /*name*/) { return true; })
          .names,
      ::testing::ElementsAre("b", "c", "d", "docs", "e"));
}

TEST_F(CatalogTest, ConsidersABoundedNumberOfNames) {
  for (int i = 0; i < 10'000; ++i) {
    catalog_.Add(At(absl::StrCat("n", i), 0, true), {});
  }
  size_t asked_count = 0;
  const NameSample none = catalog_.SampleNames([&](const std::string&) {
    ++asked_count;
    return false;
  });
  EXPECT_LE(asked_count, kConsideredNamesMax);
  EXPECT_TRUE(none.names.empty());
  EXPECT_TRUE(none.has_more);
  size_t visited_count = 0;
  catalog_.Visit([&](const Catalog::Shown&) { ++visited_count; });
  EXPECT_EQ(visited_count, 10'000u);
}

// Delays double, and end with the next good opening or a reload.
TEST_F(CatalogTest, WaitsAfterFailures) {
  catalog_.Add(At("a", 0, true), {});
  const auto opening = [&] {
    EXPECT_THAT(catalog_.Find("a"), HasCode(absl::StatusCode::kUnavailable));
    return catalog_.Begin("a", Catalog::Purpose::kOpen);
  };
  for (const int delay_s : {1, 2, 4, 8, 16, 32, 60, 60, 60, 60, 60, 60, 60}) {
    EXPECT_EQ(opening()->Fail(), seconds(delay_s));
    now_ += seconds(delay_s) - std::chrono::milliseconds(500);
    EXPECT_FALSE(opening().has_value());
    EXPECT_THAT(catalog_.Find("a"),
                FailsWith(absl::StatusCode::kUnavailable,
                          ::testing::HasSubstr("tries again in 1s")));
    now_ += std::chrono::milliseconds(500);
  }
  opening()->Fail();
  catalog_.Add(At("a", 0, true), {});
  {
    const auto good = opening();
    ASSERT_TRUE(good.has_value());
    catalog_.Publish(Open("a"));
  }
  now_ += seconds(10);
  EXPECT_TRUE(catalog_.CloseOne(Catalog::Victim::kUnread));
  EXPECT_EQ(opening()->Fail(), seconds(1));
}

TEST_F(CatalogTest, ClosesTheLeastRecentlyUsedThatNoCallReads) {
  for (const char* name : {"a", "b", "c"}) {
    catalog_.Add({.name = name,
                  .path = name,
                  .url = name[0] == 'c' ? "s3://bucket/c" : "",
                  .is_listed = true},
                 {});
    catalog_.Publish(Open(name));
    now_ += seconds(10);
  }
  catalog_.Add(At("named", 0, false), {});
  catalog_.Publish(Open("named"));
  const auto read = catalog_.Find("a").value();
  EXPECT_TRUE(catalog_.CloseOne(Catalog::Victim::kUnreadRemote));
  EXPECT_EQ(catalog_.FindOpen("c"), nullptr);
  EXPECT_FALSE(catalog_.CloseOne(Catalog::Victim::kUnreadRemote));
  EXPECT_TRUE(catalog_.CloseOne(Catalog::Victim::kUnread));
  EXPECT_EQ(catalog_.FindOpen("b"), nullptr);
  EXPECT_FALSE(catalog_.CloseOne(Catalog::Victim::kUnread));
  EXPECT_TRUE(catalog_.CloseOne(Catalog::Victim::kAny));
  EXPECT_FALSE(catalog_.CloseOne(Catalog::Victim::kAny));
  EXPECT_EQ(catalog_.counts().closings, 3u);
  EXPECT_NE(catalog_.FindOpen("named"), nullptr);
  // What a call reads is held until it ends.
  std::vector<Catalog::Held> held = catalog_.GetHeld();
  EXPECT_TRUE(std::ranges::any_of(held, [&](const Catalog::Held& one) {
    return one.served == read && !one.is_current;
  }));
  const std::vector<ArchiveArgument> remote = catalog_.GetClosedRemote();
  ASSERT_EQ(remote.size(), 1u);
  EXPECT_EQ(remote[0].name, "c");
}

TEST_F(CatalogTest, OpenedAgainFromTheSameFilesIsTheSameOpening) {
  catalog_.Add(At("a", 0, true), {});
  std::shared_ptr<ServedArchive> first = Open("a");
  first->opening_id = 7;
  catalog_.Publish(std::move(first));
  now_ += seconds(10);
  EXPECT_TRUE(catalog_.CloseOne(Catalog::Victim::kUnread));
  std::shared_ptr<ServedArchive> second = Open("a");
  second->opening_id = 8;
  catalog_.Publish(std::move(second));
  EXPECT_EQ(catalog_.FindOpen("a")->opening_id, 7u);
}

TEST_F(CatalogTest, TrafficGoesOnWhenAnArchiveIsReplaced) {
  catalog_.Publish(Open("a"));
  const std::shared_ptr<const ServedArchive> first = *catalog_.Find("a");
  first->traffic->AddCall();
  first->traffic->AddSent(100);
  catalog_.Publish(Open("a"));
  const std::shared_ptr<const ServedArchive> second = *catalog_.Find("a");
  EXPECT_NE(first, second);
  second->traffic->AddCall();
  // A call that began before.
  first->traffic->AddSent(11);
  const auto totals = [&](const std::string& name) {
    return catalog_.GetTraffic().find(name)->second->totals();
  };
  EXPECT_EQ(totals("a").call_count, 2u);
  EXPECT_EQ(totals("a").sent_bytes, 111u);

  Remove("a");
  EXPECT_TRUE(catalog_.GetTraffic().empty());
  first->traffic->AddCall();
  catalog_.Publish(Open("a"));
  EXPECT_EQ(totals("a").call_count, 0u);
}

TEST_F(CatalogTest, CountsTheTrafficOfManyArchivesTogether) {
  for (size_t i = 0; i < kTrafficArchivesMax + 2; ++i) {
    catalog_.Publish(Open(absl::StrCat("a", i)));
  }
  const std::string last = absl::StrCat("a", kTrafficArchivesMax + 1);
  const std::string last_but_one = absl::StrCat("a", kTrafficArchivesMax);
  catalog_.Find(last).value()->traffic->AddCall();
  catalog_.Find(last_but_one).value()->traffic->AddCall();
  Catalog::TrafficByName traffic = catalog_.GetTraffic();
  EXPECT_EQ(traffic.size(), kTrafficArchivesMax + 1);
  ASSERT_TRUE(traffic.contains(kOtherArchives));
  EXPECT_EQ(traffic[kOtherArchives]->totals().call_count, 2u);
  EXPECT_EQ(traffic["a0"]->totals().call_count, 0u);
  EXPECT_FALSE(traffic.contains(last));

  // Traffic counted with others stays there, or counters would decrease.
  Remove("a0");
  catalog_.Publish(Open(last));
  EXPECT_FALSE(catalog_.GetTraffic().contains(last));
  catalog_.Publish(Open("new"));
  EXPECT_TRUE(catalog_.GetTraffic().contains("new"));
  EXPECT_EQ(catalog_.GetTraffic().size(), kTrafficArchivesMax + 1);
}

}  // namespace
}  // namespace quire
