// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/service/listen_address.h"

#include "codecs/base/status_matchers.h"
#include "server/service/catalog.h"

namespace quire {
namespace {

TEST(ListenAddressTest, TellsGoodFromBad) {
  for (const char* good : {"127.0.0.1:7420", "[::]:0", "localhost:65535",
                           "unix:/tmp/no-such-socket", "unix:relative"}) {
    QUIRE_EXPECT_OK(CheckListenAddress(good)) << good;
  }
  for (const char* bad :
       {"", "7420", ":7420", "host:", "host:x", "host:65536", "unix:"}) {
    EXPECT_THAT(CheckListenAddress(bad),
                HasCode(absl::StatusCode::kInvalidArgument))
        << bad;
  }
  EXPECT_THAT(CheckListenAddress("unix:/" + std::string(200, 'x')),
              HasCode(absl::StatusCode::kInvalidArgument));
}

TEST(ListenAddressTest, PutsThePortInPlace) {
  EXPECT_EQ(WithPort("127.0.0.1:0", 1234), "127.0.0.1:1234");
  EXPECT_EQ(WithPort("[::1]:0", 1234), "[::1]:1234");
  EXPECT_EQ(WithPort("unix:/x:0", 1234), "unix:/x:0");
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
