#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Sends requests that no honest client would send to a real quired.

Each request gets the documented code and reason, or is bounded in memory; afterwards the
server answers an honest read as before.

usage: hostile_test.py QUIRED [MEMORY_MIB]
Without MEMORY_MIB, resident memory is not checked against --memory (a sanitizer's own
memory is part of it).
"""
import os
import sys
import unittest

# The tests themselves.
from hostile_archives import *  # pylint: disable=wildcard-import,unused-wildcard-import
from hostile_memory import *  # pylint: disable=wildcard-import,unused-wildcard-import
from hostile_outside import *  # pylint: disable=wildcard-import,unused-wildcard-import
from hostile_reload import *  # pylint: disable=wildcard-import,unused-wildcard-import
from hostile_requests import *  # pylint: disable=wildcard-import,unused-wildcard-import

if __name__ == "__main__":
    HostileCase.quired = sys.argv.pop(1)
    if len(sys.argv) > 1 and sys.argv[1].isdigit():
        HostileCase.asserted_memory_mib = int(sys.argv.pop(1))
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    unittest.main(verbosity=2)
