#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""An Arrow Flight server for the archives of a Quire server. Needs quire-archive[arrow].

    flight_server.py [SERVER [LOCATION]]     # 127.0.0.1:7420, grpc://127.0.0.1:8815

A flight is an archive, by its name. A ticket is a name, or JSON with options of to_arrow():

    client = pyarrow.flight.connect("grpc://127.0.0.1:8815")
    client.do_get(pyarrow.flight.Ticket(b"docs")).read_pandas()
    client.do_get(pyarrow.flight.Ticket(b'{"archive": "docs", "columns": ["id", "size"]}'))

Flight has no authorisation here: every client reads all that this server may read.
"""
from __future__ import annotations

import json
import sys
from typing import Any, Iterator

import pyarrow.flight as flight

import quire_archive


class ArchiveFlightServer(flight.FlightServerBase):  # type: ignore[misc]
    """Serves the archives of a client."""

    def __init__(self, client: quire_archive.Client, location: str) -> None:
        super().__init__(location)
        self._client = client

    def list_flights(self, _context: Any, _criteria: bytes) -> Iterator[Any]:
        """All archives."""
        for info in self._client.archives():
            yield self._flight(flight.FlightDescriptor.for_path(info.name), info.name.encode())

    def get_flight_info(self, _context: Any, descriptor: Any) -> Any:
        """An archive by its name, or a ticket as a command."""
        if descriptor.descriptor_type == flight.DescriptorType.CMD:
            return self._flight(descriptor, descriptor.command)
        return self._flight(descriptor, b"/".join(descriptor.path))

    def do_get(self, _context: Any, ticket: Any) -> Any:
        """The documents of a ticket, as they come."""
        return flight.RecordBatchStream(self._open(ticket.ticket))

    def _flight(self, descriptor: Any, ticket: bytes) -> Any:
        endpoint = flight.FlightEndpoint(ticket, [])
        return flight.FlightInfo(self._open(ticket).schema, descriptor, [endpoint], -1, -1)

    def _open(self, ticket: bytes) -> Any:
        try:
            options = json.loads(ticket) if ticket.startswith(b"{") else {
                "archive": ticket.decode()}
            return self._client[options.pop("archive")].to_arrow(**options)
        except (KeyError, TypeError, ValueError) as error:
            raise flight.FlightServerError(f"the ticket {ticket!r}: {error}") from None


def main() -> None:
    """Serves until it is interrupted."""
    server, location = (sys.argv[1:] + [None, None])[:2]
    with quire_archive.connect(server) as client:
        flights = ArchiveFlightServer(client, location or "grpc://127.0.0.1:8815")
        print(f"listening on port {flights.port}", flush=True)
        flights.serve()


if __name__ == "__main__":
    main()
