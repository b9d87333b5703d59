# SPDX-License-Identifier: Apache-2.0
"""Part of mutation_list.py: archives that are opened on first use."""
from mutation import Mutation

LISTED = [
    Mutation("server/service/catalog/listed_archive.cc",
             "  if (is_wanted_ || (failure_count_", "  if ((failure_count_",
             "catalog_test", "each of many calls opens the archive"),
    Mutation("server/service/catalog/listed_archive.cc",
             "  return used_at() > opened_at_ || now >= opened_at_ + kUnusedTimeMin;",
             "  return true || now >= opened_at_ + kUnusedTimeMin;",
             "archive_opener_test", "an archive closes before its callers come back"),
    Mutation("server/service/archive_space.cc",
             "    const bool is_read = served.use_count() > 1;",
             "    const bool is_read = served.use_count() > 1000;",
             "archive_opener_test", "an archive that a call reads closes before an unread one"),
    Mutation("server/service/archive_space.cc",
             "         served->listed->used_at() < chosen->listed->used_at())) {",
             "         served->listed->used_at() > chosen->listed->used_at())) {",
             "archive_opener_test", "the most recently used archive is closed"),
    Mutation("server/service/archive_space.cc",
             "  retired_.push_back(served->archive);\n  ++closed_count_;",
             "  ++closed_count_;",
             "archive_opener_test", "the memory of closed archives that calls read is not counted"),
    Mutation("server/service/archive_opener.cc",
             "may_be_remote = remote_count_ < remote_max;",
             "may_be_remote = remote_count_ < 1000 * remote_max;",
             "remote_list_test", "a silent store keeps local archives from being opened"),
    Mutation("server/service/calls/call_access.cc",
             "           return entry.second->may_withdraw() &&",
             "           return false && entry.second->may_withdraw() &&",
             "server_test", "a dictionary with withdrawn text is given away before the opening"),
]
