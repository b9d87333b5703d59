// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/service/catalog/catalog.h"

#include <string>

#include "gmock/gmock.h"

#include "codecs/base/status_matchers.h"

namespace quire {
namespace {

std::string MessageOfNotFound(const Catalog::ByName& archives) {
  const absl::Status status = Catalog(archives).Find("x").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  return std::string(status.message());
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
            "no archive \"x\" here, but a, b, c, d, docs and 2 more");
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
  for (const char* bad : {"", "=x", "name=", "a b=x", "dir/a b.quire", "/"}) {
    EXPECT_THAT(ParseArchiveArgument(bad),
                HasCode(absl::StatusCode::kInvalidArgument))
        << bad;
  }
}

}  // namespace
}  // namespace quire
