// SPDX-License-Identifier: Apache-2.0
#include "codecs/deflate/deflate_finder.h"

#include <zlib.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "codecs/base/check.h"
#include "codecs/base/checksum.h"
#include "testing/base/sanitized.h"
#include "testing/base/status_matchers.h"
#include "testing/codecs/deflate_test_streams.h"

namespace quire {
namespace {

constexpr uint64_t kFinderSeed = 29;

struct Found {
  uint64_t offset;
  DeflateRecipe recipe;
  std::string text;
};

// Returns the members found; reproduces each and compares it with the document.
std::vector<Found> FindAll(DeflateFinder& finder, const std::string& document) {
  std::vector<Found> all;
  DeflateEncoder encoder;
  uint64_t end = 0;
  finder.Find(AsBytes(document), [&](const DeflateMember& member) {
    EXPECT_GE(member.offset, end);
    end = member.offset + member.recipe.member_size;
    ASSERT_LE(end, document.size());
    std::string made(member.recipe.member_size, '?');
    QUIRE_EXPECT_OK(RecreateDeflateMember(
        member.recipe, [&] { return absl::StatusOr<ByteView>(member.text); },
        encoder, AsMutableBytes(made)));
    EXPECT_TRUE(made == document.substr(member.offset, made.size()));
    all.push_back(
        {member.offset, member.recipe, std::string(AsText(member.text))});
  });
  return all;
}

uint64_t Refused(const DeflateFinder& finder, DeflateContainer container,
                 DeflateRefusal refusal) {
  return finder.counts()
      .containers[static_cast<size_t>(container)]
      .refused[static_cast<size_t>(refusal)];
}

void AppendNumber(uint64_t value, size_t size, std::string& out) {
  for (size_t i = 0; i < size; ++i) {
    out += static_cast<char>(value >> (8 * i) & 0xFF);
  }
}

std::string ZipMember(const std::string& name, const std::string& stream,
                      bool sizes_follow) {
  std::string header = "PK\3\4";
  AppendNumber(20, 2, header);
  AppendNumber(sizes_follow ? 8 : 0, 2, header);
  AppendNumber(8, 2, header);
  AppendNumber(0, 8, header);
  AppendNumber(sizes_follow ? 0 : static_cast<uint32_t>(stream.size()), 4,
               header);
  AppendNumber(0, 4, header);
  AppendNumber(static_cast<uint32_t>(name.size()), 2, header);
  AppendNumber(0, 2, header);
  return absl::StrCat(header, name, stream);
}

// Only what was added is known, and it is taken without a trial, even if the
// parameters are wrong.
TEST(DeflateFinderTest, KnownMembersNeedNoSearch) {
  TestRandom random(kFinderSeed);
  const std::string text = RandomText(random, 30000);
  const std::string other = RandomText(random, 30000);
  const DeflateParameters parameters = {.level = 9};
  const DeflateParameters wrong = {.level = 1};
  const std::string document =
      absl::StrCat(ZlibStream(parameters, text, DeflateContainer::kZlib), "gap",
                   ZlibStream(parameters, other, DeflateContainer::kZlib));
  DeflateFinder searching;
  const std::vector<Found> searched = FindAll(searching, document);
  ASSERT_EQ(searched.size(), 2);
  KnownDeflateMembers known;
  known.Add(AsBytes(document).subspan(searched[0].offset,
                                      searched[0].recipe.member_size),
            wrong);
  known.Sort();
  DeflateFinder finder({.known = &known});
  std::vector<DeflateParameters> found;
  finder.Find(AsBytes(document), [&](const DeflateMember& member) {
    found.push_back(member.recipe.parameters);
  });
  EXPECT_THAT(found,
              testing::ElementsAre(wrong, searched[1].recipe.parameters));
}

TEST(DeflateFinderTest, FindsMembersOfAllKinds) {
  TestRandom random(kFinderSeed);
  const std::string words = RandomText(random, 30000);
  const std::string other = RandomText(random, 200000);
  std::string gzip = ZlibStream({.level = 9}, words, DeflateContainer::kGzip);
  // With a name, and a header check, which the finder ignores.
  gzip[3] = 2 | 8;
  gzip.insert(10, std::string("name.txt\0hc", 11));

  std::string document = "%PDF-1.4\nstream\n";
  std::vector<uint64_t> offsets = {document.size() + 2};
  document += ZlibStream({}, words, DeflateContainer::kZlib);
  document += "endstream " + words.substr(0, 500);
  offsets.push_back(document.size() + 21);
  document += gzip;
  // Directly after it.
  offsets.push_back(document.size() + 10);
  document += GzipProgramStream(9, other);
  offsets.push_back(document.size() + 35);
  document += ZipMember("a.txt", ZlibStream({}, words), false);
  offsets.push_back(document.size() + 36);
  document += ZipMember("bb.txt", ZlibStream({}, other), true);
  document += "end";

  DeflateFinder finder;
  const std::vector<Found> all = FindAll(finder, document);
  ASSERT_EQ(all.size(), offsets.size());
  const std::vector<std::string> texts = {words, words, other, words, other};
  for (size_t i = 0; i < all.size(); ++i) {
    SCOPED_TRACE(i);
    EXPECT_EQ(all[i].offset, offsets[i]);
    EXPECT_TRUE(all[i].text == texts[i]);
    EXPECT_EQ(all[i].recipe.text_size, texts[i].size());
  }
  EXPECT_EQ(all[1].recipe.parameters.level, 9);
  EXPECT_EQ(all[2].recipe.parameters.encoder, DeflateEncoderId::kGzip);
  EXPECT_EQ(all[3].recipe.container, DeflateContainer::kRaw);
  EXPECT_EQ(finder.counts().containers[0].members, 2);
  EXPECT_EQ(finder.counts().containers[1].members, 1);
  EXPECT_EQ(finder.counts().containers[2].members, 2);
  EXPECT_EQ(finder.counts().containers[2].text_bytes,
            words.size() + other.size());
}

TEST(DeflateFinderTest, FindsAllParameters) {
  TestRandom random(kFinderSeed);
  DeflateFinder finder;
  for (int i = 0; i < Fewer(400); ++i) {
    DeflateParameters parameters = RandomZlibParameters(random);
    // Random bytes make each member long enough to be considered.
    const std::string text = RandomBytes(random, 100) +
                             MixedText(random, RandomBelow(random, 80000));
    const auto container =
        i % 2 == 0 ? DeflateContainer::kZlib : DeflateContainer::kGzip;
    // Neither the headers nor a text of one block reveal these.
    if (container == DeflateContainer::kGzip) {
      parameters.window_bits = 15;
    }
    parameters.memory_level = static_cast<uint8_t>(8 + RandomBelow(random, 2));
    const std::string document =
        "?" + ZlibStream(parameters, text, container) + "?";
    const std::vector<Found> all = FindAll(finder, document);
    ASSERT_EQ(all.size(), 1)
        << DeflateParametersText(parameters) << ", " << text.size() << " bytes";
    EXPECT_TRUE(all[0].text == text);
  }
}

TEST(DeflateFinderTest, LeavesWhatItCannotMakeAgain) {
  TestRandom random(kFinderSeed);
  const std::string text = RandomText(random, 50000);
  const std::string stream = ZlibStream({}, text, DeflateContainer::kZlib);
  const auto refused = [](const std::string& document, DeflateRefusal refusal,
                          const DeflateFinderOptions& options = {}) {
    DeflateFinder finder(options);
    EXPECT_TRUE(FindAll(finder, document).empty());
    return Refused(finder, DeflateContainer::kZlib, refusal);
  };
  std::string damaged = stream;
  damaged.back() ^= 1;
  EXPECT_EQ(refused(damaged, DeflateRefusal::kDamaged), 1);
  EXPECT_EQ(refused(stream, DeflateRefusal::kLarge, {.text_size_max = 49999}),
            1);
  EXPECT_EQ(refused(stream, DeflateRefusal::kSmall,
                    {.member_size_min = stream.size() - 1}),
            1);
  EXPECT_EQ(
      refused(ZlibStream({}, std::string(500000, 'x'), DeflateContainer::kZlib),
              DeflateRefusal::kRatio),
      1);
  // Truncated by the end of the document.
  for (const size_t size : {stream.size() - 1, stream.size() - 4,
                            stream.size() - 5, stream.size() / 2, size_t{64}}) {
    DeflateFinder finder;
    EXPECT_TRUE(FindAll(finder, stream.substr(0, size)).empty()) << size;
  }
}

// A member whose text is halved by a flush, which no known encoder makes.
std::string FlushedMember(const std::string& text) {
  z_stream stream = {};
  QUIRE_CHECK(deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8,
                           Z_DEFAULT_STRATEGY) == Z_OK);
  std::string in = text;
  std::string stored(text.size() + 1000, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(in.data());
  stream.next_out = reinterpret_cast<Bytef*>(stored.data());
  stream.avail_out = static_cast<uInt>(stored.size());
  stream.avail_in = static_cast<uInt>(text.size() / 2);
  QUIRE_CHECK(deflate(&stream, Z_SYNC_FLUSH) == Z_OK);
  stream.avail_in = static_cast<uInt>(text.size() - text.size() / 2);
  QUIRE_CHECK(deflate(&stream, Z_FINISH) == Z_STREAM_END);
  stored.resize(stream.total_out);
  deflateEnd(&stream);
  return stored;
}

TEST(DeflateFinderTest, ForeignMembersDoNotHideOthers) {
  TestRandom random(kFinderSeed);
  std::string document;
  std::vector<std::string> texts;
  constexpr uint64_t kForeignCount = Fewer(400u);
  for (uint64_t i = 0; i < kForeignCount; ++i) {
    document += FlushedMember(RandomText(random, 20000));
    // By another maker, according to its header.
    if (i % 4 == 0) {
      texts.push_back(RandomText(random, 10000));
      document +=
          ZlibStream({.level = 9}, texts.back(), DeflateContainer::kGzip);
    }
  }
  DeflateFinder finder;
  const std::vector<Found> found = FindAll(finder, document);
  ASSERT_EQ(found.size(), texts.size());
  for (size_t i = 0; i < texts.size(); ++i) {
    EXPECT_TRUE(found[i].text == texts[i]) << i;
  }
  EXPECT_EQ(Refused(finder, DeflateContainer::kGzip, DeflateRefusal::kForeign),
            kForeignCount);
}

TEST(DeflateFinderTest, AKnownMakerIsFoundAgainAmongForeignMembers) {
  TestRandom random(kFinderSeed);
  std::string document;
  for (int i = 0; i < 100; ++i) {
    document += FlushedMember(RandomText(random, 2000));
  }
  // Their headers are the same.
  for (int i = 0; i < 100; ++i) {
    document +=
        ZlibStream({}, RandomText(random, 2000), DeflateContainer::kGzip);
  }
  DeflateFinder finder;
  EXPECT_GE(FindAll(finder, document).size(), 92u);
}

TEST(DeflateFinderTest, LeavesForeignStreams) {
  TestRandom random(kFinderSeed);
  const std::string text = RandomText(random, 3000);
  // Level 0: stored blocks, although they can be compressed.
  std::string stream("\x78\x01\x01", 3);
  AppendNumber(static_cast<uint32_t>(text.size()), 2, stream);
  AppendNumber(~static_cast<uint32_t>(text.size()), 2, stream);
  stream += text;
  const DeflateTrailer trailer =
      MakeDeflateTrailer(DeflateContainer::kZlib, AsBytes(text));
  stream.append(trailer.begin(), trailer.begin() + 4);
  DeflateFinder finder;
  EXPECT_TRUE(FindAll(finder, stream).empty());
  EXPECT_EQ(Refused(finder, DeflateContainer::kZlib, DeflateRefusal::kForeign),
            1);
}

TEST(DeflateFinderTest, LeavesImages) {
  TestRandom random(kFinderSeed);
  const std::string stream =
      ZlibStream({}, RandomText(random, 5000), DeflateContainer::kZlib);
  std::string document = "\x89PNG\r\n\x1a\n";
  document += std::string("\0\0", 2);
  document += static_cast<char>(stream.size() >> 8);
  document += static_cast<char>(stream.size() & 0xFF);
  DeflateFinder finder;
  EXPECT_TRUE(FindAll(finder, document + "IDAT" + stream + "crc.").empty());
  EXPECT_EQ(FindAll(finder, document + "IDOT" + stream + "crc.").size(), 1);
}

TEST(DeflateFinderTest, FindsMembersWhereverTheyBegin) {
  TestRandom random(kFinderSeed);
  const std::string stream =
      ZlibStream({}, RandomText(random, 1000), DeflateContainer::kZlib);
  for (size_t before = 0; before < 200; ++before) {
    DeflateFinder finder;
    const std::vector<Found> all =
        FindAll(finder, RandomText(random, before) + stream);
    ASSERT_EQ(all.size(), 1) << before;
    EXPECT_EQ(all[0].offset, before + 2);
  }
}

// Many apparent beginnings of a stream must not take time quadratic in the
// size.
TEST(DeflateFinderTest, EndsInVainWork) {
  TestRandom random(kFinderSeed);
  // As many nested stored blocks as possible.
  std::string document;
  while (document.size() < 3000000) {
    document += std::string("\x78\x9c\x00\xf9\xff\x06\x00", 7);
  }
  DeflateFinder finder;
  EXPECT_TRUE(FindAll(finder, document).empty());
  EXPECT_TRUE(FindAll(finder, RandomBytes(random, 1000000)).empty());
}

// Each name would be searched up to the end of the document.
TEST(DeflateFinderTest, BoundsTheSearchForTheEndOfNames) {
  std::string document;
  while (document.size() < size_t{1} << 20) {
    document += "\x1f\x8b\x08\x08";
  }
  size_t follow_count = 0;
  DeflateFinder finder;
  const auto found = [](const DeflateMember&) { ADD_FAILURE(); };
  const auto count = [&follow_count] {
    ++follow_count;
    return false;
  };
  finder.Find(AsBytes(document), found, document.size(), count);
  EXPECT_GT(follow_count, 1000u);
  // 2^24 steps and 16 per byte, at 4 KiB per name; two more bytes of each may
  // begin a header.
  EXPECT_LT(follow_count, 30'000u);
}

// Each beginning decodes up to the end of the document, where it is truncated.
TEST(DeflateFinderTest, BoundsWhatIsDecodedInVain) {
  std::string document;
  while (document.size() < 200'000) {
    // A fixed block that does not end.
    document += "\x78\x9c\x33\x8a";
  }
  size_t follow_count = 0;
  DeflateFinder finder;
  finder.Find(
      AsBytes(document), [](const DeflateMember&) { ADD_FAILURE(); },
      document.size(),
      [&follow_count] {
        ++follow_count;
        return false;
      });
  // 2^24 steps and 16 per byte, at 200,000 per beginning.
  EXPECT_LT(follow_count, 1000u);
}

TEST(DeflateFinderTest, FollowsNamesOfUpTo4095Bytes) {
  TestRandom random(kFinderSeed);
  const std::string stream =
      ZlibStream({}, RandomText(random, 5000), DeflateContainer::kGzip);
  for (const size_t size : {size_t{0}, size_t{4095}, size_t{4096}}) {
    std::string document = stream;
    document[3] = 8 | 16;
    document.insert(
        10, std::string(size, 'n') + '\0' + std::string(size, 'c') + '\0');
    DeflateFinder finder;
    EXPECT_EQ(FindAll(finder, document).size(), size < 4096 ? 1u : 0u) << size;
  }
}

TEST(DeflateFinderTest, EndsWhenItIsCancelled) {
  TestRandom random(kFinderSeed);
  std::string document;
  for (int i = 0; i < 10; ++i) {
    document +=
        ZlibStream({}, RandomText(random, 5000), DeflateContainer::kGzip);
  }
  DeflateFinder finder;
  size_t found_count = 0;
  finder.Find(
      AsBytes(document), [&](const DeflateMember&) { ++found_count; },
      document.size(), [&] { return found_count == 3; });
  EXPECT_EQ(found_count, 3u);
  finder.Find(
      AsBytes(document), [&](const DeflateMember&) { ++found_count; },
      document.size(), [] { return true; });
  EXPECT_EQ(found_count, 3u);
}

// Memory after a document is not a part of it.
TEST(DeflateFinderTest, DoesNotReadPastTheDocument) {
  TestRandom random(kFinderSeed);
  for (const auto container :
       {DeflateContainer::kZlib, DeflateContainer::kGzip}) {
    const std::string stream =
        ZlibStream({}, RandomText(random, 5000), container);
    for (size_t missing = 0; missing < 10; ++missing) {
      DeflateFinder finder;
      size_t found_count = 0;
      finder.Find(AsBytes(stream).first(stream.size() - missing),
                  [&](const DeflateMember&) { ++found_count; });
      EXPECT_EQ(found_count, missing == 0 ? 1u : 0u) << missing;
    }
  }
}

TEST(DeflateFinderTest, CountsLongStreamsThatTheDocumentCutsOff) {
  TestRandom random(kFinderSeed);
  // Three letters, at about 2 bits each.
  std::string text(size_t{5} << 20, '?');
  for (char& c : text) {
    c = static_cast<char>('a' + RandomBelow(random, 3));
  }
  const std::string stream =
      ZlibStream({.level = 1}, text, DeflateContainer::kGzip);
  ASSERT_GT(stream.size(), (size_t{1} << 20) + 100);
  DeflateFinder finder({.text_size_max = size_t{6} << 20});
  EXPECT_TRUE(
      FindAll(finder, stream.substr(0, (size_t{1} << 20) + 50)).empty());
  EXPECT_EQ(Refused(finder, DeflateContainer::kGzip, DeflateRefusal::kLarge),
            1u);
}

TEST(DeflateFinderTest, TakesTinyDocuments) {
  DeflateFinder finder({.member_size_min = 0});
  for (const std::string document :
       {"", "x", "\x78", "\x78\x9c", "\x1f\x8b", "\x1f\x8b\x08", "PK\3\4",
        "\x78\x9c\x03"}) {
    EXPECT_TRUE(FindAll(finder, document).empty());
  }
}

}  // namespace
}  // namespace quire
