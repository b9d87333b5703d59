# SPDX-License-Identifier: Apache-2.0
"""What a dataset makes of the bytes of a document."""
from __future__ import annotations

import json
from typing import Any, Callable

_KINDS = ("document", "record")


def converter(kind: str) -> Callable[[int, bytes], Any]:
    """Returns a function of an ordinal and the bytes; it can be pickled.

    It returns the bytes ("document"), or the JSON value in them ("record") and raises
    ValueError, which names the document, if they are none.
    """
    if kind not in _KINDS:
        raise ValueError(f"kind must be one of {', '.join(_KINDS)}, got {kind!r}")
    return _parse if kind == "record" else _keep


def _keep(_: int, data: bytes) -> bytes:
    return data


def _parse(ordinal: int, data: bytes) -> Any:
    try:
        return json.loads(data)
    except ValueError as error:
        raise ValueError(f"document {ordinal} is not JSON: {error}; read it with "
                         'kind="document"') from None
