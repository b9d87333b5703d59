# SPDX-License-Identifier: Apache-2.0
"""Part of mutation_list.py: calls that are routed by archive, segments opened at once, and the
Python package."""
from mutation import Mutation

ROUTING = [
    Mutation("client/quire/internal/connection.cc", "  if (IsArchiveName(archive)) {",
             "  if (!archive.empty()) {", "client_test",
             "a name that is no header value is sent as one"),
    Mutation("client/quire/internal/wire_call.cc", "  routed.archive = archive_;\n", "",
             "client_test", "tables are requested from the default server"),
    Mutation("client/quire/internal/batch_stream.h", "batch_.archive_, context_);",
             "\"\", context_);", "client_test", "batches go to the default server"),
    Mutation("client/python/quire_archive/_core.py", 'yield Open("Scan", self._archive.name,',
             'yield Open("Scan", "",', "python_package_test", "scans go to the default server"),
    Mutation("server/archive/files/ordered_openings.cc",
             "if (failure_.ok() || index < failed_index_) {", "if (failure_.ok()) {",
             "ordered_openings_test", "the segment that fails first is named, not the first"),
    Mutation("server/archive/archive_opening.cc",
             "(has_filters && segment.filter == nullptr)) {",
             "(has_filters && segment.opened == nullptr)) {",
             "ordered_openings_test", "shared segments get no filter when an archive has grown"),
    Mutation("server/service/catalog/parallel_opening.cc",
             "working_bytes > memory_bytes_ - held_bytes_) {", "working_bytes > memory_bytes_) {",
             "parallel_opening_test", "helpers take memory that others hold"),
    Mutation("client/python/quire_archive/wacz.py",
             "self._lists[self.has_further].write(", "self._lists[0].write(",
             "python_package_test", "all pages of a WACZ are in its first list"),
    Mutation("client/python/quire_archive/wacz.py",
             "        if pages.has_further:\n", "        if pages:\n",
             "python_package_test", "a WACZ of few pages has a second list"),
    Mutation("client/python/quire_archive/wacz.py",
             'member.name.rpartition("/")[2].lower()', 'member.name.rpartition("/")[2]',
             "python_package_test", "names of a data package have capitals"),
    Mutation("client/python/quire_archive/client.py", "    __contains__ = None\n", "",
             "python_package_test", "an id is never in an archive"),
    Mutation("server/service/server.cc", "limits.set_page_size_max(4000);",
             "limits.set_page_size_max(1000);", "hostile_memory_test", "lists have short pages"),
]
