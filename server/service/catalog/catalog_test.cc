// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/service/catalog/catalog.h"

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"

#include "codecs/base/status_matchers.h"
#include "codecs/base/testing/temporary_directory.h"
#include "server/service/catalog/listed_archive.h"

namespace quire {
namespace {

std::string MessageOfNotFound(const Catalog::ByName& archives) {
  const absl::Status status = Catalog(archives).Find("x").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  return std::string(status.message());
}

std::shared_ptr<ServedArchive> Named(const std::string& name) {
  auto archive = std::make_shared<ServedArchive>();
  archive->name = name;
  return archive;
}

TEST(CatalogTest, NamesThoseThatThereAre) {
  Catalog::ByName archives = {{"docs", nullptr}};
  EXPECT_EQ(MessageOfNotFound(archives), "no archive \"x\" here, but docs");
  for (const char* name : {"a", "b", "c", "d"}) {
    archives[name] = nullptr;
  }
  EXPECT_EQ(MessageOfNotFound(archives),
            "no archive \"x\" here, but a, b, c, d, docs");
  archives["e"] = nullptr;
  archives["f"] = nullptr;
  EXPECT_EQ(MessageOfNotFound(archives),
            "no archive \"x\" here, but a, b, c, d, docs and others");
}

TEST(CatalogTest, SamplesNamesInOrder) {
  const auto all = [](const std::string& /*name*/) { return true; };
  EXPECT_THAT(Catalog({}).SampleNames(all).names, ::testing::ElementsAre());
  EXPECT_EQ(MessageOfNotFound({}), "no archive \"x\" here");
  const Catalog catalog({{"b", nullptr}, {"d", nullptr}, {"e", nullptr}},
                        {{"a", {}}, {"c", {}}, {"f", {}}});
  EXPECT_EQ(catalog.size(), 6u);
  EXPECT_TRUE(catalog.Contains("a"));
  EXPECT_TRUE(catalog.Contains("e"));
  EXPECT_FALSE(catalog.Contains("g"));
  const NameSample sample = catalog.SampleNames(all);
  EXPECT_THAT(sample.names, ::testing::ElementsAre("a", "b", "c", "d", "e"));
  EXPECT_TRUE(sample.has_more);
  // Hidden names do not affect the message either.
  const NameSample shown =
      catalog.SampleNames([](const std::string& name) { return name != "f"; });
  EXPECT_EQ(shown.names.size(), kSampledNamesMax);
  EXPECT_FALSE(shown.has_more);
}

TEST(CatalogTest, ConsidersABoundedNumberOfNames) {
  Catalog::ByName archives;
  for (int i = 0; i < 10'000; ++i) {
    archives[absl::StrCat("n", i)] = nullptr;
  }
  const Catalog catalog(std::move(archives));
  size_t asked_count = 0;
  const NameSample none = catalog.SampleNames([&](const std::string&) {
    ++asked_count;
    return false;
  });
  EXPECT_LE(asked_count, kConsideredNamesMax);
  EXPECT_TRUE(none.names.empty());
  EXPECT_TRUE(none.has_more);
}

TEST(CatalogTest, ListedArchivesAreDemandedOnce) {
  Catalog catalog({{"b", nullptr}});
  Catalog::ListedByName listed;
  for (const char* name : {"a", "c"}) {
    v1::ArchiveDescription description;
    description.set_name(name);
    listed.emplace(
        name, std::make_shared<ListedArchive>(
                  ArchiveArgument{.name = name, .path = "", .is_listed = true},
                  std::move(description)));
  }
  const std::shared_ptr<ListedArchive> a = listed.at("a");
  std::vector<std::string> demanded;
  catalog.SetDemand([&](const std::shared_ptr<ListedArchive>& archive) {
    demanded.push_back(archive->argument().name);
  });
  catalog.SetListed(std::move(listed));
  EXPECT_TRUE(catalog.Contains("a"));
  EXPECT_EQ(catalog.size(), 1u);
  EXPECT_THAT(
      catalog.SampleNames([](const std::string& /*name*/) { return true; })
          .names,
      ::testing::ElementsAre("a", "b", "c"));
  for (int i = 0; i < 3; ++i) {
    EXPECT_THAT(catalog.Find("a"), HasCode(absl::StatusCode::kUnavailable));
  }
  EXPECT_EQ(catalog.FindOpen("c"), nullptr);
  EXPECT_THAT(demanded, ::testing::ElementsAre("a"));
  EXPECT_EQ(a->description()->state(), v1::ARCHIVE_STATE_OPENING);
  a->Cancelled();
  EXPECT_EQ(a->description()->state(), v1::ARCHIVE_STATE_CLOSED);
  EXPECT_THAT(catalog.Await("a"), HasCode(absl::StatusCode::kUnavailable));
  EXPECT_THAT(demanded, ::testing::ElementsAre("a", "a"));
}

// Delays double, and end with the next good opening or a reload.
TEST(ListedArchiveTest, WaitsAfterFailures) {
  using std::chrono::seconds;
  ListedArchive archive({.name = "a", .path = "", .is_listed = true}, {});
  ListedArchive::Clock::time_point now = ListedArchive::Clock::now();
  for (const int delay_s : {1, 2, 4, 8, 16, 32, 60, 60, 60, 60, 60, 60, 60}) {
    EXPECT_TRUE(archive.Want(now));
    EXPECT_EQ(archive.RetryDelay(now), std::nullopt);
    EXPECT_EQ(archive.Failed(now), seconds(delay_s));
    EXPECT_TRUE(archive.has_failed());
    EXPECT_EQ(archive.RetryDelay(now), seconds(delay_s));
    EXPECT_FALSE(
        archive.Want(now + seconds(delay_s) - std::chrono::milliseconds(500)));
    now += seconds(delay_s);
  }
  EXPECT_TRUE(archive.Want(now));
  archive.Failed(now);
  archive.Forgive();
  EXPECT_TRUE(archive.Want(now));
}

// Snapshots are replaced while they are read. With this many archives a reader
// is probably inside one at the time.
TEST(CatalogTest, IsReadWhileArchivesComeAndGo) {
  constexpr size_t kArchiveCount = 500;
  Catalog::ByName archives;
  for (size_t i = 0; i < kArchiveCount; ++i) {
    archives[absl::StrCat("n", i)] = nullptr;
  }
  Catalog catalog(std::move(archives));
  std::atomic<bool> is_done = false;
  std::jthread reader([&] {
    while (!is_done) {
      EXPECT_THAT(catalog.Find("x"), HasCode(absl::StatusCode::kNotFound));
      EXPECT_LE(catalog.size(), kArchiveCount + 1);
      EXPECT_FALSE(catalog.Contains("x"));
    }
  });
  for (int i = 0; i < 500; ++i) {
    catalog.Publish(Named("a"));
    catalog.Remove("a");
  }
  is_done = true;
}

TEST(ArchiveArgumentTest, TakesNameAndPath) {
  const struct {
    const char* text;
    const char* name;
    const char* path;
  } cases[] = {{"docs.quire", "docs", "docs.quire"},
               {"/srv/a.b.quire/", "a.b", "/srv/a.b.quire/"},
               {"web=/srv/x.quire", "web", "/srv/x.quire"},
               {"./odd=name/docs", "docs", "./odd=name/docs"},
               {"a=b=c", "a", "b=c"}};

  for (const auto& c : cases) {
    QUIRE_ASSERT_OK_AND_ASSIGN(const ArchiveArgument argument,
                               ParseArchiveArgument(c.text));
    EXPECT_EQ(argument.name, c.name) << c.text;
    EXPECT_EQ(argument.path, c.path) << c.text;
  }
  for (const char* bad : {"", "=x", "name=", "a b=x", "dir/a b.quire", "/", ".",
                          "..", "dir/..", ".=x", "..=x", "...quire"}) {
    EXPECT_THAT(ParseArchiveArgument(bad),
                HasCode(absl::StatusCode::kInvalidArgument))
        << bad;
  }
}

TEST(FindArchivesTest, TakesDirectoriesThatLookLikeArchives) {
  namespace fs = std::filesystem;
  const TemporaryDirectory made;
  const std::string& scratch = made.path();
  const fs::path directory = scratch;
  const auto names = [&] {
    std::vector<std::string> found;
    const auto archives = FindArchives(scratch);
    QUIRE_EXPECT_OK(archives);
    for (const ArchiveArgument& archive : archives->archives) {
      found.push_back(archive.name);
      EXPECT_EQ(fs::path(archive.path).parent_path(), directory);
    }
    return found;
  };
  EXPECT_THAT(names(), ::testing::ElementsAre());
  for (const char* name : {"web.quire", "docs", "empty", ".hidden.quire",
                           "docs.quire.partial", "target"}) {
    fs::create_directory(directory / name);
  }
  std::ofstream(directory / "docs/MANIFEST") << "x";
  std::ofstream(directory / ".hidden.quire/MANIFEST") << "x";
  // A build that was stopped after its last file.
  std::ofstream(directory / "docs.quire.partial/MANIFEST") << "x";
  std::ofstream(directory / "file.quire") << "x";
  fs::create_directory_symlink(directory / "target", directory / "b.quire");
  fs::create_directory_symlink(directory / "nowhere", directory / "c.quire");
  EXPECT_THAT(names(), ::testing::ElementsAre("b", "docs", "web"));

  fs::create_directory(directory / "docs.quire");
  EXPECT_THAT(FindArchives(scratch),
              FailsWith(absl::StatusCode::kInvalidArgument,
                        ::testing::HasSubstr("two archives are named")));
  fs::remove(directory / "docs.quire");
  fs::create_directory(directory / "a b.quire");
  EXPECT_THAT(FindArchives(scratch),
              FailsWith(absl::StatusCode::kInvalidArgument,
                        ::testing::HasSubstr("a b.quire")));
  fs::remove_all(directory);
  EXPECT_THAT(FindArchives(scratch), HasCode(absl::StatusCode::kNotFound));
}

// All of it is the path, also where it looks like NAME=PATH.
TEST(FindArchivesTest, TakesPathsWithAnEqualsSign) {
  namespace fs = std::filesystem;
  const TemporaryDirectory scratch;
  const fs::path before = fs::current_path();
  fs::current_path(scratch.path());
  fs::create_directories("a=b/docs.quire");
  const auto found = FindArchives("a=b");
  fs::current_path(before);
  QUIRE_ASSERT_OK(found);
  ASSERT_EQ(found->archives.size(), 1u);
  EXPECT_EQ(found->archives[0].name, "docs");
  EXPECT_EQ(found->archives[0].path, "a=b/docs.quire");
}

TEST(CatalogTest, RemovesWhatIsOpenAndWhatIsToCome) {
  Catalog catalog({{"a", nullptr}, {"b", nullptr}}, {{"c", {}}, {"d", {}}});
  const auto before = catalog.Get();
  catalog.Remove("a");
  catalog.Remove("c");
  catalog.Remove("absent");
  EXPECT_FALSE(catalog.Contains("a"));
  EXPECT_TRUE(catalog.Contains("b"));
  EXPECT_FALSE(catalog.Contains("c"));
  EXPECT_TRUE(catalog.Contains("d"));
  EXPECT_EQ(catalog.size(), 2u);
  EXPECT_EQ(before->size(), 2u);
}

TEST(CatalogTest, TrafficGoesOnWhenAnArchiveIsReplaced) {
  Catalog catalog({});
  catalog.Publish(Named("a"));
  const std::shared_ptr<const ServedArchive> first = *catalog.Find("a");
  first->traffic->AddCall();
  first->traffic->AddSent(100);
  catalog.Publish(Named("a"));
  const std::shared_ptr<const ServedArchive> second = *catalog.Find("a");
  EXPECT_NE(first, second);
  second->traffic->AddCall();
  // A call that began before.
  first->traffic->AddSent(11);
  const auto totals = [&](const std::string& name) {
    return catalog.GetTraffic().find(name)->second->totals();
  };
  EXPECT_EQ(totals("a").call_count, 2u);
  EXPECT_EQ(totals("a").sent_bytes, 111u);

  catalog.Remove("a");
  EXPECT_TRUE(catalog.GetTraffic().empty());
  first->traffic->AddCall();
  catalog.Publish(Named("a"));
  EXPECT_EQ(totals("a").call_count, 0u);
}

TEST(CatalogTest, CountsTheTrafficOfManyArchivesTogether) {
  Catalog catalog({});
  for (size_t i = 0; i < kTrafficArchivesMax + 2; ++i) {
    catalog.Publish(Named(absl::StrCat("a", i)));
  }
  const std::string last = absl::StrCat("a", kTrafficArchivesMax + 1);
  const std::string last_but_one = absl::StrCat("a", kTrafficArchivesMax);
  catalog.Find(last).value()->traffic->AddCall();
  catalog.Find(last_but_one).value()->traffic->AddCall();
  Catalog::TrafficByName traffic = catalog.GetTraffic();
  EXPECT_EQ(traffic.size(), kTrafficArchivesMax + 1);
  ASSERT_TRUE(traffic.contains(kOtherArchives));
  EXPECT_EQ(traffic[kOtherArchives]->totals().call_count, 2u);
  EXPECT_EQ(traffic["a0"]->totals().call_count, 0u);
  EXPECT_FALSE(traffic.contains(last));

  // Traffic counted with others stays there, or counters would decrease.
  catalog.Remove("a0");
  catalog.Publish(Named(last));
  EXPECT_FALSE(catalog.GetTraffic().contains(last));
  catalog.Publish(Named("new"));
  EXPECT_TRUE(catalog.GetTraffic().contains("new"));
  EXPECT_EQ(catalog.GetTraffic().size(), kTrafficArchivesMax + 1);
}

TEST(CatalogTest, NoArchiveHasTheNameOfOthers) {
  EXPECT_THAT(ParseArchiveArgument(absl::StrCat(kOtherArchives, "=/a.quire")),
              HasCode(absl::StatusCode::kInvalidArgument));
}

}  // namespace
}  // namespace quire
