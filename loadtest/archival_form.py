# SPDX-License-Identifier: Apache-2.0
"""Migration as the archival prototype of "Migratory Compression" does it (FAST 2014,
section 3.3): similar chunks are copied into compression regions of bounded size, one open
for each cluster, in three passes, the largest clusters first; then what is like nothing
else. Each region is compressed by itself.
"""
import collections
import concurrent.futures
import time
import zlib

REGION_SIZE = 128 << 10
# So many regions are filled at once; the one that has waited longest makes room.
OPEN_REGIONS_MAX = 48 << 10
PASSES = 3
# Of gzip, as in the prototype.
LEVEL = 6
THREADS = (1, 2, 4, 8, 16)


def passes_of(leaders):
    """Of each chunk the pass that copies it, from 0: clusters by falling size, about as many
    chunks in each pass; PASSES for those that are alone. `leaders` has the number of the
    first chunk of each one's cluster."""
    sizes = collections.Counter(leaders)
    similar = sum(size for size in sizes.values() if size > 1)
    pass_of, copied = {}, 0
    for leader, size in sorted(sizes.items(), key=lambda item: (-item[1], item[0])):
        pass_of[leader] = PASSES if size == 1 else min(copied * PASSES // similar, PASSES - 1)
        copied += size
    return [pass_of[leader] for leader in leaders]


class Regions:
    """Fills regions with chunks, which are numbers."""

    def __init__(self, sizes):
        self.sizes = sizes
        self.done = []
        # Cluster -> [bytes, chunks], by when they were opened.
        self.open = {}
        self.open_max = 0

    def add(self, cluster, number):
        region = self.open.get(cluster)
        if region is not None and region[0] + self.sizes[number] > REGION_SIZE:
            self.done.append(self.open.pop(cluster)[1])
            region = None
        if region is None:
            if len(self.open) == OPEN_REGIONS_MAX:
                self.done.append(self.open.pop(next(iter(self.open)))[1])
            region = self.open[cluster] = [0, []]
            self.open_max = max(self.open_max, len(self.open))
        region[0] += self.sizes[number]
        region[1].append(number)

    def end_pass(self):
        """What is open yet is put together, as far as it fits."""
        size, chunks = 0, []
        for more, numbers in self.open.values():
            if chunks and size + more > REGION_SIZE:
                self.done.append(chunks)
                size, chunks = 0, []
            size += more
            chunks = chunks + numbers
        if chunks:
            self.done.append(chunks)
        self.open = {}


def fill_regions(sizes, leaders, moved_passes):
    """The regions, lists of chunks, if so many of the passes are made, and the rest stays in
    its order; and how many were open at most."""
    regions = Regions(sizes)
    of_pass = passes_of(leaders)
    for number in range(moved_passes):
        for chunk, leader in enumerate(leaders):
            if of_pass[chunk] == number:
                regions.add(leader, chunk)
        regions.end_pass()
    for chunk in range(len(leaders)):
        if of_pass[chunk] >= moved_passes:
            regions.add("rest", chunk)
    regions.end_pass()
    return regions.done, regions.open_max


def measure_archival(text, table):
    """The figures of a text whose stored chunks are (offset, size, leader)."""
    sizes = [size for _, size, _ in table]
    leaders = [leader for _, _, leader in table]

    def compress(numbers):
        region = b"".join(text[table[number][0]:table[number][0] + sizes[number]]
                          for number in numbers)
        return len(zlib.compress(region, LEVEL))

    found = {"stored_bytes": sum(sizes), "compressed_bytes": [], "open_regions": 0}
    regions = []
    for moved_passes in range(PASSES + 1):
        regions, open_max = fill_regions(sizes, leaders, moved_passes)
        assert sorted(number for region in regions for number in region) == list(range(len(table)))
        found["compressed_bytes"].append(sum(map(compress, regions)))
        found["open_regions"] = max(found["open_regions"], open_max)
    found["regions"] = len(regions)
    found["seconds"] = {}
    for threads in THREADS:
        started = time.monotonic()
        with concurrent.futures.ThreadPoolExecutor(threads) as pool:
            assert sum(pool.map(compress, regions)) == found["compressed_bytes"][-1]
        found["seconds"][str(threads)] = time.monotonic() - started
    return found
