// SPDX-License-Identifier: Apache-2.0
#include "codecs/auto/member_choice.h"

#include "gtest/gtest.h"

namespace quire {
namespace {

constexpr size_t kChosenSize = 64 << 10;

const AutoMember& Find(AutoObjective objective, CodecId id) {
  for (const AutoMember& member : AutoMembers(objective)) {
    if (member.spec.id == id) {
      return member;
    }
  }
  ADD_FAILURE() << "no such member";
  return AutoMembers(objective)[0];
}

uint64_t Cost(AutoObjective objective, CodecId id, size_t stored_size) {
  return stored_size +
         TimeCost(Find(objective, id).speed, objective, kChosenSize);
}

TEST(MemberChoiceTest, EveryObjectiveHasTheSameMembersInOrder) {
  for (const AutoObjective objective : kAutoObjectives) {
    const auto members = AutoMembers(objective);
    for (size_t i = 0; i < members.size(); ++i) {
      EXPECT_EQ(members[i].spec.id,
                AutoMembers(AutoObjective::kSpeed)[i].spec.id);
      EXPECT_NE(members[i].spec.id, CodecId::kAuto);
      const AutoSpeed& speed = members[i].speed;
      EXPECT_GT(speed.encode, 0u);
      EXPECT_GT(speed.decode, 0u);
      if (i > 0) {
        EXPECT_LT(members[i - 1].spec.id, members[i].spec.id);
      }
    }
  }
}

TEST(MemberChoiceTest, AnArchiveCountsBytesAlone) {
  EXPECT_EQ(Cost(AutoObjective::kArchive, CodecId::kXz, 1234), 1234u);
  EXPECT_EQ(Cost(AutoObjective::kArchive, CodecId::kRlz, 1234), 1234u);
}

TEST(MemberChoiceTest, SlowDecodersMustSaveMore) {
  // The text of a block takes 0.65 ms with xz at 100 MB/s, which is 6.5 kB at
  // 10 MB/s, and a twelfth of that with rlz.
  EXPECT_LT(Cost(AutoObjective::kBalanced, CodecId::kRlz, 20'000),
            Cost(AutoObjective::kBalanced, CodecId::kXz, 14'100));
  EXPECT_GT(Cost(AutoObjective::kBalanced, CodecId::kRlz, 20'000),
            Cost(AutoObjective::kBalanced, CodecId::kXz, 13'900));
  // lz4 may be a little larger and is still read faster.
  EXPECT_GT(Cost(AutoObjective::kSpeed, CodecId::kRlz, 20'000),
            Cost(AutoObjective::kSpeed, CodecId::kLz4, 35'000));
  EXPECT_LT(Cost(AutoObjective::kBalanced, CodecId::kRlz, 20'000),
            Cost(AutoObjective::kBalanced, CodecId::kLz4, 21'000));
}

}  // namespace
}  // namespace quire
