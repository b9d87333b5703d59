# SPDX-License-Identifier: Apache-2.0
"""Options of a client, and the channel that they describe."""
from __future__ import annotations

import dataclasses
import ipaddress
import json
import os
import re
import stat
from typing import Any, Dict, List, Mapping, Optional, Tuple

import grpc

from .errors import ForkedError

DEFAULT_SERVER = "127.0.0.1:7420"
_SCHEMES = ("unix:", "unix-abstract:", "dns:", "ipv4:", "ipv6:", "xds:")
_SECRET_SIZE_MAX = 1 << 20
# Names that archives can have.
_ARCHIVE_NAME = re.compile(r"[A-Za-z0-9._-]{1,128}", re.ASCII)
_TOKEN = re.compile(r"[!-~]{1,1024}", re.ASCII)
# Option -> environment variable, as for the program quire.
_ENVIRONMENT = {"server": "QUIRE_SERVER", "ca_file": "QUIRE_CA", "cert_file": "QUIRE_CERT",
                "key_file": "QUIRE_KEY", "token_file": "QUIRE_TOKEN_FILE"}
_ENCODINGS = ("auto", "identity", "stored")
# gRPC ends calls at once whose end does not fit 64 bits of nanoseconds.
_TIMEOUT_SECONDS_MAX = 1e8
# Servers send at most 4 MiB by default.
_MESSAGE_SIZE_MAX = 16 << 20

# True in a child of a process that had used gRPC through this package.
_is_forked = False
_is_used = False


def _note_fork() -> None:
    global _is_forked  # pylint: disable=global-statement
    _is_forked = _is_used


os.register_at_fork(after_in_child=_note_fork)


def is_forked() -> bool:
    """True in such a child."""
    return _is_forked


def is_used() -> bool:
    """True if this process has used gRPC through this package, and so must not be forked."""
    return _is_used


def check_not_forked() -> None:
    """Raises ForkedError in such a child."""
    if _is_forked:
        raise ForkedError(
            f"process {os.getpid()} was forked from one that had used a Quire client, and gRPC "
            "does not survive that; start processes with "
            'multiprocessing.get_context("spawn") or "forkserver", or fork before the first call')


@dataclasses.dataclass(frozen=True)
class Options:
    """See connect(). Can be pickled, with the token if it is given as text."""

    server: str = DEFAULT_SERVER
    deadline: float = 30.0
    idle_max: float = 30.0
    attempts_max: int = 4
    retry_backoff: float = 0.1
    encoding: str = "auto"
    dictionary_size_max: int = 256 << 20
    tls: bool = False
    ca_file: Optional[str] = None
    cert_file: Optional[str] = None
    key_file: Optional[str] = None
    server_name: Optional[str] = None
    token: Optional[str] = dataclasses.field(default=None, repr=False)
    token_file: Optional[str] = None
    allow_readable_secrets: bool = False

    @property
    def uses_tls(self) -> bool:
        """True if calls are encrypted."""
        return bool(self.tls or self.ca_file or self.cert_file or self.key_file
                    or self.server_name)


def make_options(server: Optional[str], options: Mapping[str, Any],
                 environment: Mapping[str, str] = os.environ) -> Options:
    """Checked options; what is not given comes from the environment.

    Raises ValueError, naming the option.
    """
    given: Dict[str, Any] = {k: v for k, v in options.items() if v is not None}
    if server is not None:
        given["server"] = server
    for name, variable in _ENVIRONMENT.items():
        # A token is given in one way only.
        if name == "token_file" and "token" in given:
            continue
        if name not in given and environment.get(variable):
            given[name] = environment[variable]
    unknown = set(given) - {field.name for field in dataclasses.fields(Options)}
    if unknown:
        raise TypeError(f"unknown option {', '.join(sorted(unknown))}; known: "
                        + ", ".join(field.name for field in dataclasses.fields(Options)))
    made = Options(**given)
    _check(made)
    return made


def _check(options: Options) -> None:
    check_address(options.server)
    if not (options.deadline > 0 and options.idle_max > 0):
        raise ValueError("deadline and idle_max must be positive numbers of seconds")
    if not 1 <= options.attempts_max <= 100:
        raise ValueError(f"attempts_max must be 1 to 100, got {options.attempts_max}")
    if not 0.001 <= options.retry_backoff <= 3600:
        raise ValueError("retry_backoff must be 0.001 to 3600 seconds, "
                         f"got {options.retry_backoff}")
    if options.encoding not in _ENCODINGS:
        raise ValueError(f"encoding must be one of {', '.join(_ENCODINGS)}, "
                         f"got {options.encoding!r}")
    if (options.cert_file is None) != (options.key_file is None):
        raise ValueError("cert_file and key_file must be given together")
    if options.token is not None and options.token_file is not None:
        raise ValueError("give token or token_file, not both")
    has_token = options.token is not None or options.token_file is not None
    if has_token and not options.uses_tls and not is_local(options.server):
        raise ValueError(f"a token would travel to {options.server} where all can read it; use "
                         "TLS (tls or ca_file), a unix socket, or a server on this machine")


def check_address(address: str) -> None:
    """Raises ValueError unless it is HOST:PORT or a gRPC target with a scheme."""
    if any(address.startswith(scheme) and len(address) > len(scheme) for scheme in _SCHEMES):
        return
    host, _, port = address.rpartition(":")
    if (not host or "/" in address or not (port.isascii() and port.isdigit())
            or not 1 <= int(port) <= 65535):
        raise ValueError(f"{address!r} is not a server address; give HOST:PORT, with a port "
                         "from 1 to 65535, or unix:PATH")


def is_local(address: str) -> bool:
    """True for a unix socket and for an address of this machine."""
    if address.startswith(("unix:", "unix-abstract:")):
        return True
    for scheme in ("dns:///", "dns:", "ipv4:", "ipv6:"):
        if address.startswith(scheme):
            address = address[len(scheme):]
            break
    if "," in address or "/" in address:
        return False
    host = address.rpartition(":")[0]
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def _read_secret(path: str, options: Options, is_secret: bool) -> bytes:
    with open(path, "rb") as file:
        mode = os.fstat(file.fileno()).st_mode
        if is_secret and not options.allow_readable_secrets and stat.S_ISREG(mode) \
                and mode & stat.S_IROTH:
            raise PermissionError(f"{path}: can be read by all users, and a secret must not be: "
                                  "chmod o-r, or allow_readable_secrets=True")
        data = file.read(_SECRET_SIZE_MAX + 1)
    if len(data) > _SECRET_SIZE_MAX:
        raise ValueError(f"{path}: must be a file of at most 1 MiB, and is larger")
    return data


def _read_pem(path: Optional[str], what: str, label: bytes, options: Options) -> Optional[bytes]:
    if path is None:
        return None
    data = _read_secret(path, options, is_secret=b"PRIVATE" in label)
    match = re.search(rb"-----BEGIN ([^\n]*)-----", data)
    if match is None or label not in match.group(1):
        raise ValueError(f"{path}: must hold {what} in PEM form, and does not")
    if b"ENCRYPTED" in match.group(1):
        raise ValueError(f"{path}: must hold {what} without a passphrase, and has one")
    return data


def call_timeout(seconds: float) -> float:
    """The timeout that gRPC is given for a call with this time left, which may be infinite."""
    return min(max(0.001, seconds), _TIMEOUT_SECONDS_MAX)


def call_metadata(options: Options) -> Optional[List[Tuple[str, str]]]:
    """Metadata of each call: the token."""
    token = options.token
    if token is None and options.token_file is not None:
        token = _read_secret(options.token_file, options, True).decode("latin-1").strip()
    if token is None:
        return None
    if not _TOKEN.fullmatch(token):
        raise ValueError("a token must look like ID.SECRET, as quired token new prints it, "
                         f"and that of {options.token_file or 'the option token'} does not")
    return [("authorization", f"Bearer {token}")]


def with_route(metadata: Optional[List[Tuple[str, str]]], archive: str,
               attempt: int = 0) -> Optional[List[Tuple[str, str]]]:
    """`metadata` of a call with those by which proxies route.

    quire-archive is the archive's name; not for a name that no archive has: the default
    server says so. quire-attempt is the number of attempts before, in a row, that ended with
    UNAVAILABLE, except ArchiveOpening; the first attempt has none.
    """
    route = []
    if _ARCHIVE_NAME.fullmatch(archive):
        route.append(("quire-archive", archive))
    if attempt:
        route.append(("quire-attempt", str(attempt)))
    return [*(metadata or ()), *route] if route else metadata


def _arguments(options: Options) -> List[Tuple[str, Any]]:
    arguments: List[Tuple[str, Any]] = [
        # Calls are spread over all addresses that the name resolves to.
        ("grpc.service_config", json.dumps({"loadBalancingConfig": [{"round_robin": {}}]})),
        # This client repeats calls itself.
        ("grpc.enable_retries", 0),
        ("grpc.primary_user_agent", "quire-python/0.1.0"),
        ("grpc.max_receive_message_length", _MESSAGE_SIZE_MAX),
        ("grpc.keepalive_time_ms", 60_000),
        ("grpc.keepalive_timeout_ms", 20_000),
        ("grpc.initial_reconnect_backoff_ms", max(100, int(options.retry_backoff * 1000))),
        ("grpc.min_reconnect_backoff_ms", 10_000),
        ("grpc.max_reconnect_backoff_ms", 5_000),
        # Fewer frames, each of which costs time.
        ("grpc.http2.max_frame_size", 256 << 10),
        # A proxy from the environment is meant for the web.
        ("grpc.enable_http_proxy", 0),
        ("grpc.use_local_subchannel_pool", 1),
    ]
    if options.server_name is not None:
        arguments.append(("grpc.ssl_target_name_override", options.server_name))
    return arguments


def open_channel(options: Options, module: Any) -> Any:
    """A channel of `module`: grpc or grpc.aio."""
    global _is_used  # pylint: disable=global-statement
    check_not_forked()
    credentials = None
    if options.uses_tls:
        credentials = grpc.ssl_channel_credentials(
            _read_pem(options.ca_file, "certificates", b"CERTIFICATE", options),
            _read_pem(options.key_file, "a private key", b"PRIVATE KEY", options),
            _read_pem(options.cert_file, "a certificate", b"CERTIFICATE", options))
    _is_used = True
    if credentials is None:
        return module.insecure_channel(options.server, options=_arguments(options))
    return module.secure_channel(options.server, credentials, options=_arguments(options))
