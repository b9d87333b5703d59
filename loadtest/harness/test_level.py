# SPDX-License-Identifier: Apache-2.0
"""Effort of tests by level: deploy/test.sh sets these environment variables for `nightly`."""
import os
import unittest

NIGHTLY = os.environ.get("QUIRE_TEST_LEVEL") == "nightly"

# Of a test method that the default level leaves out: it takes long, or depends on
# the timing of foreign programs.
nightly = unittest.skipUnless(NIGHTLY, "only in deploy/test.sh nightly")

# The default level always runs the same trials, and each nightly run others.
SEED = int(os.environ.get("QUIRE_TEST_SEED", "20261128"))


def rounds(by_default, in_nightly):
    """Returns the number of rounds of a test."""
    return in_nightly if NIGHTLY else by_default
