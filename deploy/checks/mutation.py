# SPDX-License-Identifier: Apache-2.0
"""A bug that the tests must catch (mutation_list.py)."""
from typing import NamedTuple


class Mutation(NamedTuple):
    path: str
    old: str
    new: str
    tests: str
    why: str
