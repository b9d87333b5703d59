# SPDX-License-Identifier: Apache-2.0
"""A WebM film of which each frame is a picture of one colour, for seeks in a browser."""
import io
import struct

from PIL import Image

WIDTH, HEIGHT = 160, 90
FRAME_COUNT = 60


def colour_of(second):
    """The colour of the frame that begins at this second."""
    return (40 + 3 * second, 200 - 3 * second, 20 + (second * 53) % 200)


def _key_frame(second):
    """A key frame of VP8. Lossy WebP is one, in a RIFF file."""
    picture, file = Image.new("RGB", (WIDTH, HEIGHT), colour_of(second)), io.BytesIO()
    picture.save(file, "WEBP", quality=90)
    riff = file.getvalue()
    assert riff[12:16] == b"VP8 "
    (size,) = struct.unpack("<I", riff[16:20])
    return riff[20:20 + size]


def _element(name, data):
    """An element of Matroska; the length has 8 bytes."""
    return bytes.fromhex(name) + struct.pack(">Q", (1 << 56) | len(data)) + data


def _number(name, value):
    return _element(name, struct.pack(">Q", value))


def make_film():
    """A second a frame; each frame is a cluster, and has a cue."""
    head = _element("1A45DFA3", _number("4286", 1) + _number("42F7", 1) + _number("42F2", 4)
                    + _number("42F3", 8) + _element("4282", b"webm") + _number("4287", 2)
                    + _number("4285", 2))
    info = _element("1549A966", _number("2AD7B1", 1_000_000)
                    + _element("4489", struct.pack(">d", FRAME_COUNT * 1000))
                    + _element("4D80", b"test") + _element("5741", b"test"))
    tracks = _element("1654AE6B", _element("AE", _number("D7", 1) + _number("73C5", 1)
                                           + _number("83", 1) + _element("86", b"V_VP8")
                                           + _element("E0", _number("B0", WIDTH)
                                                      + _number("BA", HEIGHT))))
    # An element of Void makes clusters larger than what a browser reads ahead.
    clusters = [_element("1F43B675", _number("E7", second * 1000)
                         + _element("A3", b"\x81\0\0\x80" + _key_frame(second))
                         + _element("EC", bytes(100_000)))
                for second in range(FRAME_COUNT)]

    def cues(offset):
        points = b""
        for second, cluster in enumerate(clusters):
            points += _element("BB", _number("B3", second * 1000) + _element(
                "B7", _number("F7", 1) + _number("F1", offset)))
            offset += len(cluster)
        return _element("1C53BB6B", points)

    before = info + tracks
    before += cues(len(before) + len(cues(0)))
    return head + _element("18538067", before + b"".join(clusters))
