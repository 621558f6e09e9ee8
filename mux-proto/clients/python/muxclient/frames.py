"""Frames: the header of twenty bytes and its rules. Knows which bytes are a frame; never what a frame asks for."""

import struct
from collections import namedtuple

MAGIC = b"\xf5mx"
VERSION = 1
HEADER = struct.Struct(">3sBBBHIII")
MAX_BODY = 32 * 1024
MAX_NOTE = 4 * 1024
FLAG_STDERR = 1

HELLO, PING, PONG, ROUTE, LOG, GOODBYE = 1, 2, 3, 4, 5, 6
OPEN, DATA, CREDIT, FINISH, RESULT, RESET = 16, 17, 18, 19, 20, 21

# The shortest and the longest body, and the flags that may be set.
KINDS = {
    HELLO: (1, MAX_NOTE, 0),
    PING: (8, 8, 0),
    PONG: (8, 8, 0),
    ROUTE: (1, MAX_BODY, 0),
    LOG: (1, MAX_NOTE, 0),
    GOODBYE: (1, MAX_NOTE, 0),
    OPEN: (1, MAX_BODY, 0),
    DATA: (1, MAX_BODY, FLAG_STDERR),
    CREDIT: (4, 4, 0),
    FINISH: (0, 0, 0),
    RESULT: (1, MAX_BODY, 0),
    RESET: (1, MAX_NOTE, 0),
}

Frame = namedtuple("Frame", "kind flags destination source channel body")


class Violation(Exception):
    """The peer broke the protocol; the link is of no use any more."""


class Incompatible(Exception):
    """Both sides keep the protocol and have nothing in common."""


def encode(kind, body=b"", channel=0, flags=0, destination=0, source=0):
    """The bytes of a frame."""
    header = HEADER.pack(MAGIC, VERSION, kind, flags, len(body), destination, source, channel)
    return header + bytes(body)


class Decoder:
    """Cuts a stream of bytes into frames."""

    def __init__(self):
        self._input = bytearray()
        # What came is not written by a peer.
        self.is_foreign = False

    def feed(self, data):
        """All frames that are complete with `data`; the rest waits."""
        self._input += data
        frames, at = [], 0
        while (end := self._end_of_frame(at)) is not None:
            _, _, kind, flags, _, destination, source, channel = HEADER.unpack_from(self._input, at)
            body = bytes(self._input[at + HEADER.size : end])
            frames.append(Frame(kind, flags, destination, source, channel, body))
            at = end
        del self._input[:at]
        return frames

    def is_empty(self):
        """Whether the stream may end here."""
        return not self._input

    def _end_of_frame(self, at):
        start = bytes(self._input[at : at + HEADER.size])
        if not start:
            return None
        if start[:3] != MAGIC[: len(start)]:
            self.is_foreign = True
            raise Violation(f"{bytes(self._input[at : at + 64])!r} came where a frame should begin")
        if len(start) > 3 and start[3] != VERSION:
            raise Incompatible(f"the peer speaks version {start[3]} of the protocol, this side {VERSION}")
        if len(start) < HEADER.size:
            return None
        _, _, kind, flags, length, destination, source, channel = HEADER.unpack(start)
        if kind not in KINDS:
            raise Violation(f"a frame of unknown kind {kind}")
        shortest, longest, allowed = KINDS[kind]
        if not shortest <= length <= longest:
            raise Violation(f"a frame of kind {kind} with {length} bytes")
        if flags & ~allowed:
            raise Violation(f"a frame of kind {kind} with flags {flags}")
        if kind < OPEN and (destination or source or channel):
            raise Violation(f"a frame of kind {kind} with a node or a channel")
        end = at + HEADER.size + length
        return end if end <= len(self._input) else None
