#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Checks a house rule: no loop iterates over a part of a temporary, and no reference to
one is kept.

In C++20 `for (auto& x : *Get())` keeps the reference that `*` returns, but not the
shared_ptr that Get() returned: that is destroyed before the first iteration. The same is
true of `Get()->items`, and of `auto& x = *Get();`. Name the result of the call first, and
use the name. Neither compiler warns about this.
"""
import re

from source_tree import read_text, run_check

LOOP = re.compile(r"\bfor \(")
# A reference into the result of a call.
REFERENCE = re.compile(r"\bauto& (?:\w+|\[[^\]]*\]) =\s*(\*\s*[^;{]*?\)|[^;{]*?\)\s*->\s*\w+);")
# These return references or pointers to parts of their objects.
KEPT = r"(?:mutable_\w+|back|front|at|value)"
OF_RESULT = re.compile(r"(\w+)\s*\(\)\s*(?:->|\.)\s*\w+$")
DEREFERENCED = re.compile(r"^\*.*?(\w+)\s*(\((?:[^()]|\([^()]*\))*\))$", re.DOTALL)


def loops(text):
    """Yields each range-based loop: its position, and its range."""
    for match in LOOP.finditer(text):
        depth, colon = 0, None
        for at in range(match.end() - 1, len(text)):
            depth += (text[at] in "([{") - (text[at] in ")]}")
            if depth == 0 or (depth == 1 and text[at] == ";"):
                break
            if (text[at] == ":" and depth == 1 and colon is None
                    and ":" not in (text[at - 1], text[at + 1])):
                colon = at
        if colon is not None and text[at] == ")":
            yield match.start(), " ".join(text[colon + 1:at].split())


def is_of_temporary(expression):
    """Returns True if the range goes through the result of a call, which is not kept."""
    for pattern in (OF_RESULT, DEREFERENCED):
        found = pattern.search(expression)
        if found and not re.fullmatch(KEPT, found[1]):
            return True
    return False


def check(root, files):
    complaints = []
    for path in files:
        if not path.endswith((".cc", ".h")):
            continue
        text = read_text(root / path) or ""
        places = list(loops(text))
        places += [(match.start(), match[1]) for match in REFERENCE.finditer(text)
                   if not match[1].startswith("*new ")]
        complaints += [f"{path}:{text.count(chr(10), 0, start) + 1}: {expression} leads through "
                       "a temporary that is gone; name what the call returns first"
                       for start, expression in sorted(places) if is_of_temporary(expression)]
    return complaints


BAD_SAMPLE = {
    "bad.cc": "for (const auto& [name, value] : *Get()) {\n}\n"
              "for (auto& x :\n     *catalog.Get(name, f(1))) {\n}\n"
              "for (auto& x : Table().lines) {\n}\n"
              "for (auto& x : state.Get()->lines) {\n}\n"
              "const auto& x = *Get();\n"
              "auto& [a, b] = *maps.Get(1);\n"
              "auto& x = Get()->lines;\n",
    "good.cc": "for (const auto& x : *kept) {\n}\nfor (auto& x : Get()) {\n}\n"
               "for (auto& x : *response.mutable_results()) {\n}\n"
               "for (auto& x : tables.back().lines) {\n}\n"
               "for (int i = 0; i < *Get(); ++i) {\n}\n"
               "for (auto& x : absl::StrSplit(Text(), ':')) {\n}\n"
               "static const auto& x = *new std::string(Text());\n"
               "auto x = *Get();\n",
}
EXPECTED = [f"bad.cc:{line}: " for line in (1, 3, 6, 8, 10, 11, 12)]

if __name__ == "__main__":
    run_check("temporaries_test", check, BAD_SAMPLE, EXPECTED)
