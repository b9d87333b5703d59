# SPDX-License-Identifier: Apache-2.0
"""Fields and filters of lists."""
import datetime
import pickle
import unittest

import quire_archive as quire
from package_harness import FakeServer

UTC = datetime.timezone.utc


class FakeServerFieldsTest(unittest.TestCase):
    """Against a fake server with given answers."""

    def test_values_have_types_of_python(self):
        requests = []

        def answer(request, _context):
            requests.append((list(request.fields), request.filter))
            values = [{"string_value": b"d\xff"}, {}, {"integer_value": -5}, {"float_value": .5},
                      {"boolean_value": False}, {"time_us": 1_500_000}, {"time_us": 2**62}]
            return {"is_filtered": True, "documents": [
                {"id": b"a", "range": {"size_bytes": 1}, "fields": values}]}
        with FakeServer(ListDocuments=answer) as server, \
                quire.connect(server.address) as client:
            server.description["fields"] = [{"name": "a", "type": 1}, {"name": "f", "type": 5},
                                            {"name": "new", "type": 77}]
            self.assertEqual(client["a"].info().fields, {"a": "string", "f": "time", "new": "77"})
            (document,) = client["a"].documents(fields=list("abcdefg"), where="x = 1")
        self.assertEqual(requests, [(list("abcdefg"), "x = 1")])
        self.assertEqual(dict(document.fields), {
            "a": "d\udcff", "b": None, "c": -5, "d": 0.5, "e": False,
            "f": datetime.datetime(1970, 1, 1, 0, 0, 1, 500_000, tzinfo=UTC), "g": 2**62})
        self.assertEqual(pickle.loads(pickle.dumps(document)).fields, document.fields)

    def test_servers_without_fields_are_noticed(self):
        listed = {"documents": [{"ordinal": 0, "id": b"a", "range": {"size_bytes": 1}}]}
        with FakeServer(ListDocuments=lambda request, context: listed) as server, \
                quire.connect(server.address) as client:
            self.assertEqual(len(list(client["a"].documents())), 1)
            with self.assertRaisesRegex(quire.ServerFault, "does not know fields"):
                list(client["a"].documents(fields=["lang"]))
            with self.assertRaisesRegex(quire.ServerFault, "does not know filters"):
                list(client["a"].documents(where="size > 1"))
            with self.assertRaises(TypeError):
                list(client["a"].documents(fields="lang"))


if __name__ == "__main__":
    unittest.main()
