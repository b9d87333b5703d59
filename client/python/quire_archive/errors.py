# SPDX-License-Identifier: Apache-2.0
"""Errors. Each reason that a server gives (ErrorReason in archive.proto) has a class.

Catch QuireError for all of them, or the classes that you handle; do not match
messages. All can be pickled.
"""
from __future__ import annotations

from typing import Any, Dict, Optional, Type

import grpc

from . import _messages

__all__ = [
    "QuireError", "NotFoundError", "ArchiveNotFound", "DocumentNotFound", "RecordTypeNotFound",
    "RevisitTargetNotFound", "DepositedFileNotFound", "DictionaryNotFound",
    "SymbolTableNotFound", "RangePastEnd",
    "MalformedRequest", "FieldNotFound", "ArchiveStateUnknown", "CapturesNotIndexed",
    "LimitExceeded", "ServerBusy", "QuotaExceeded",
    "UnavailableError", "ServerUnreachable", "DeviceFailed", "Draining", "ArchiveReplaced",
    "ArchiveOpening", "ArchiveBroken", "DataLossError", "BlockDamaged", "AnswerDamaged", "PayloadDamaged",
    "DeadlinePassed", "CallCancelled", "CredentialsRejected", "ReadNotPermitted",
    "DocumentWithdrawn", "ServerFault", "ForkedError", "PrivateServerFailed"]


class QuireError(Exception):
    """A call that failed. The message is for humans."""

    # Name of the gRPC code that errors of a class made by the client have.
    _code = "UNKNOWN"

    def __init__(self, message: str, *, code: str = "", reason: str = "",
                 metadata: Optional[Dict[str, str]] = None,
                 retry_after: Optional[float] = None) -> None:
        super().__init__(message)
        # Name of the gRPC status code, such as "NOT_FOUND".
        self.code = code or self._code
        # Name of the ErrorReason; empty if the error is not the server's.
        self.reason = reason
        # Keys that archive.proto documents for the reason.
        self.metadata = metadata or {}
        # Seconds after which to repeat the call; None if waiting does not help.
        self.retry_after = retry_after


class NotFoundError(QuireError, LookupError):
    """What was asked for does not exist."""

    _code = "NOT_FOUND"


class ArchiveNotFound(NotFoundError):
    """The server has no such archive, or does not show it to this client."""


class DocumentNotFound(NotFoundError):
    """No document has this id or ordinal."""


class RecordTypeNotFound(DocumentNotFound):
    """Documents have this id, but none of the record types."""


class RevisitTargetNotFound(DocumentNotFound):
    """The record that a revisit refers to is not in the archive."""


class DepositedFileNotFound(NotFoundError):
    """No deposited file of the archive has this path."""


class DictionaryNotFound(NotFoundError):
    """No archive of the server uses this dictionary any more."""


class SymbolTableNotFound(NotFoundError):
    """No archive of the server uses this symbol table any more."""


class RangePastEnd(QuireError):
    """The range ends after the archive or document."""

    _code = "OUT_OF_RANGE"


class MalformedRequest(QuireError, ValueError):
    """The server rejects a field of the request, which the message names."""

    _code = "INVALID_ARGUMENT"


class FieldNotFound(MalformedRequest):
    """The archive has no field of this name; the message names those that it has."""


class ArchiveStateUnknown(QuireError):
    """The archive no longer has the contents that this handle is pinned to."""

    _code = "FAILED_PRECONDITION"


class CapturesNotIndexed(QuireError):
    """The archive has no index of captures."""

    _code = "FAILED_PRECONDITION"


class LimitExceeded(QuireError):
    """Over a limit of the server; repeating does not help."""

    _code = "RESOURCE_EXHAUSTED"


class ServerBusy(QuireError):
    """The server has no memory for the answer; repeat after `retry_after`."""

    _code = "RESOURCE_EXHAUSTED"


class QuotaExceeded(ServerBusy):
    """This client has exceeded its quota."""


class UnavailableError(QuireError, ConnectionError):
    """No answer now; the client has repeated the call already."""

    _code = "UNAVAILABLE"


class ServerUnreachable(UnavailableError):
    """No connection, or it broke."""


class DeviceFailed(UnavailableError):
    """A disk of the server failed."""


class Draining(UnavailableError):
    """The server shuts down."""


class ArchiveReplaced(UnavailableError):
    """The archive was replaced during a batch."""


class ArchiveOpening(UnavailableError):
    """The server is opening the archive."""


class ArchiveBroken(UnavailableError):
    """The server could not open the archive; another server may have it."""


class DataLossError(QuireError):
    """Damaged bytes."""

    _code = "DATA_LOSS"


class BlockDamaged(DataLossError):
    """Bytes are damaged on the server's disk; `metadata` names the block."""


class AnswerDamaged(DataLossError):
    """Bytes were damaged between server and client, or are missing."""


class PayloadDamaged(DataLossError):
    """A record of a crawl has no complete payload; read() returns the record.

    `payload` is a Payload with the bytes that could be decoded.
    """

    payload: Any = None


class DeadlinePassed(QuireError, TimeoutError):
    """No answer in time."""

    _code = "DEADLINE_EXCEEDED"


class CallCancelled(QuireError):
    """The call was cancelled."""

    _code = "CANCELLED"


class CredentialsRejected(QuireError, PermissionError):
    """The server does not know this client, or this client not the server."""

    _code = "UNAUTHENTICATED"


class ReadNotPermitted(QuireError, PermissionError):
    """The client may see the archive, but not read it."""

    _code = "PERMISSION_DENIED"


class DocumentWithdrawn(QuireError, PermissionError):
    """The server's operator withdrew the document."""

    _code = "PERMISSION_DENIED"


class ServerFault(QuireError):
    """A bug in the server, or an answer to something that was not asked."""

    _code = "INTERNAL"


class ForkedError(QuireError, RuntimeError):
    """This process was forked from one that had used a client.

    gRPC does not survive a fork. Start processes with spawn or forkserver, or
    fork before the first call.
    """

    _code = "FAILED_PRECONDITION"


class PrivateServerFailed(QuireError):
    """The private server of open() could not be started, as the message of quired explains."""

    _code = "FAILED_PRECONDITION"

    def __init__(self, message: str, *, exit_code: Optional[int] = None, **details: Any) -> None:
        super().__init__(message, **details)
        # That of quired; None if it did not run.
        self.exit_code = exit_code


CLASSES: Dict[str, Type[QuireError]] = {
    "ARCHIVE_NOT_FOUND": ArchiveNotFound,
    "DOCUMENT_NOT_FOUND": DocumentNotFound,
    "DICTIONARY_NOT_FOUND": DictionaryNotFound,
    "RANGE_PAST_END": RangePastEnd,
    "MALFORMED_REQUEST": MalformedRequest,
    "LIMIT_EXCEEDED": LimitExceeded,
    "SERVER_BUSY": ServerBusy,
    "BLOCK_DAMAGED": BlockDamaged,
    "DEVICE_FAILED": DeviceFailed,
    "DRAINING": Draining,
    "DEADLINE_PASSED": DeadlinePassed,
    "CALL_CANCELLED": CallCancelled,
    "SERVER_FAULT": ServerFault,
    "SYMBOL_TABLE_NOT_FOUND": SymbolTableNotFound,
    "ARCHIVE_REPLACED": ArchiveReplaced,
    "RECORD_TYPE_NOT_FOUND": RecordTypeNotFound,
    "ARCHIVE_OPENING": ArchiveOpening,
    "CREDENTIALS_REJECTED": CredentialsRejected,
    "READ_NOT_PERMITTED": ReadNotPermitted,
    "QUOTA_EXCEEDED": QuotaExceeded,
    "ARCHIVE_STATE_UNKNOWN": ArchiveStateUnknown,
    "DOCUMENT_WITHDRAWN": DocumentWithdrawn,
    "ARCHIVE_BROKEN": ArchiveBroken,
    "FIELD_NOT_FOUND": FieldNotFound,
    "CAPTURES_NOT_INDEXED": CapturesNotIndexed,
    "FILE_NOT_FOUND": DepositedFileNotFound,
}
# Errors without a reason: those of gRPC, and of servers that are not Quire's.
_CLASSES_BY_CODE: Dict[str, Type[QuireError]] = {
    "CANCELLED": CallCancelled,
    "DEADLINE_EXCEEDED": DeadlinePassed,
    "UNAUTHENTICATED": CredentialsRejected,
    "PERMISSION_DENIED": ReadNotPermitted,
    "UNAVAILABLE": ServerUnreachable,
    "INTERNAL": ServerFault,
}
_CODE_NAMES = {code.value[0]: code.name for code in grpc.StatusCode}
_DETAILS_KEY = "grpc-status-details-bin"
# Messages of gRPC about a certificate that is not accepted.
_CERTIFICATE_FAULTS = ("CERTIFICATE_VERIFY_FAILED", "certificate verify failed",
                       "is not in peer certificate")


def _class_of(code: str, reason: str) -> Type[QuireError]:
    return CLASSES.get(reason) or _CLASSES_BY_CODE.get(code, QuireError)


def from_rpc(error: Any, address: str) -> QuireError:
    """The error of a failed call: `error` is a grpc.RpcError."""
    code, message = error.code().name, error.details() or ""
    reason, metadata, retry_after = "", {}, None
    for key, value in error.trailing_metadata() or ():
        if key == _DETAILS_KEY:
            reason, metadata, retry_after = _details(value)
            if reason and message.startswith("Received RST_STREAM"):
                # A proxy reset the call after its end, such as HAProxy where a batch is refused
                # while its client still sends; gRPC then reports the reset.
                sent = _messages.RpcStatus.FromString(value)
                code, message = _CODE_NAMES.get(sent.code, code), sent.message
    if not reason and any(fault in message for fault in _CERTIFICATE_FAULTS):
        code = "UNAUTHENTICATED"
        message = f"the certificate of {address} is not accepted: {message}"
    elif not reason and ((code == "INTERNAL" and message.startswith("Received RST_STREAM"))
                         or (code, message) == ("UNKNOWN", "Stream removed")):
        # gRPC has no code for it; errors of servers have a reason.
        code, message = "UNAVAILABLE", f"a proxy at {address} ended the call: {message}"
    elif not reason and code == "INTERNAL" and "overflows local window" in message:
        # Data crossed a window that gRPC had made smaller: nothing is wrong with the call.
        code, message = "UNAVAILABLE", f"gRPC reset the call to {address}: {message}"
    elif not reason and code == "UNAVAILABLE":
        message = f"no connection to {address}: {message}"
    elif not reason and code == "DEADLINE_EXCEEDED":
        message = f"no answer from {address} in time: {message}"
    return _class_of(code, reason)(message, code=code, reason=reason, metadata=metadata,
                                   retry_after=retry_after)


def _details(value: bytes) -> Any:
    reason, metadata, retry_after = "", {}, None
    try:
        for detail in _messages.RpcStatus.FromString(value).details:
            kind = detail.type_url.rpartition("/")[2]
            if kind == "google.rpc.ErrorInfo":
                info = _messages.RpcErrorInfo.FromString(detail.value)
                if info.domain == "quire":
                    reason, metadata = info.reason, dict(info.metadata)
            elif kind == "google.rpc.RetryInfo":
                delay = _messages.RpcRetryInfo.FromString(detail.value).retry_delay
                retry_after = max(0.0, delay.seconds + delay.nanos * 1e-9)
    except Exception:  # pylint: disable=broad-except
        # The class that protobuf raises differs between its versions.
        return "", {}, None
    return reason, metadata, retry_after


def from_item(status: Any) -> QuireError:
    """The error of one item of a batch: an ItemStatus."""
    code = _CODE_NAMES.get(status.code, "UNKNOWN")
    reason = _messages.REASON_NAMES.get(status.reason, "") if status.reason else ""
    return _class_of(code, reason)(status.message, code=code, reason=reason)
