"""The upper end of a link: opens channels, carries their bytes. One thread; nothing happens outside of `pump`."""

import os
import select
import struct
import time
from collections import deque

from . import cbor, frames
from .frames import Incompatible, Violation

INITIAL_CREDIT = 64 * 1024
MAX_CREDIT = 16 * 1024 * 1024
# What may wait on a channel, and on the way out, before `room` is nothing.
MAX_UNSENT = 256 * 1024
LOW_WATER = 64 * 1024


class Reset(Exception):
    """The channel has ended without a result."""

    def __init__(self, code, text):
        super().__init__(f"reset, code {code}: {text}" if text else f"reset, code {code}")
        self.code = code
        self.text = text


class Goodbye(Exception):
    """The peer has ended the link, or went away."""

    def __init__(self, code, text):
        super().__init__(text or f"goodbye, code {code}")
        self.code = code
        self.text = text


class Channel:
    """Made by `Connection.open`. Ends with `result` or `error`."""

    def __init__(self, connection, number):
        self.number = number
        self.result = None
        self.error = None
        self.is_ended = False
        self.is_finished_by_peer = False
        self._connection = connection
        self._came = deque()
        self._granted = INITIAL_CREDIT
        self._unconsumed = 0
        self._credit = INITIAL_CREDIT
        self._unsent = deque()
        self._unsent_len = 0
        self._is_finished = False
        self._finish_due = False

    def room(self):
        """Bytes that `send` takes now."""
        if self.is_ended or self._is_finished:
            return 0
        return max(0, MAX_UNSENT - self._unsent_len)

    def send(self, data):
        """Queues up to `room()` bytes and says how many; they leave as credit allows."""
        data = bytes(data[: self.room()])
        if data:
            self._unsent.append(data)
            self._unsent_len += len(data)
        return len(data)

    def finish(self):
        """Nothing follows what was queued."""
        if not self._is_finished:
            self._is_finished = self._finish_due = True

    def reset(self, code=1, text=""):
        """Ends the channel at once."""
        if not self.is_ended:
            body = cbor.dumps({"code": code, "text": text})
            self._connection._put(frames.RESET, body, self.number)
            self._connection._end(self, Reset(code, text))

    def take(self):
        """All that has come since the last call, as pairs of stream (0 or 1) and bytes; gives credit for it."""
        taken = list(self._came)
        self._came.clear()
        self._unconsumed -= sum(len(data) for _, data in taken)
        owed = INITIAL_CREDIT - self._granted - self._unconsumed
        if owed >= INITIAL_CREDIT // 2 and not self.is_ended and not self.is_finished_by_peer:
            self._granted += owed
            self._connection._put(frames.CREDIT, struct.pack(">I", owed), self.number)
        return taken

    def _next_frame(self):
        """What it has to send, if credit allows."""
        if self._unsent:
            if self._credit == 0:
                return None
            most = min(self._credit, frames.MAX_BODY)
            data = self._unsent.popleft()
            if len(data) > most:
                self._unsent.appendleft(data[most:])
                data = data[:most]
            self._credit -= len(data)
            self._unsent_len -= len(data)
            return frames.DATA, data
        if self._finish_due:
            self._finish_due = False
            return frames.FINISH, b""
        return None

    def _receive(self, frame):
        """A reset code if the frame may not be."""
        if frame.kind == frames.CREDIT:
            (more,) = struct.unpack(">I", frame.body)
            self._credit += more
            return 11 if more == 0 or self._credit > MAX_CREDIT else None
        if frame.kind in (frames.DATA, frames.FINISH) and self.is_finished_by_peer:
            return 14
        if frame.kind == frames.FINISH:
            self.is_finished_by_peer = True
            return None
        if len(frame.body) > self._granted:
            return 10
        self._granted -= len(frame.body)
        self._unconsumed += len(frame.body)
        self._came.append((frame.flags & frames.FLAG_STDERR, frame.body))
        return None


class Connection:
    """Over two descriptors, which may be the same; both become non-blocking. Says hello at once."""

    def __init__(self, reads, writes, software="muxclient 1", timeout=15):
        self.hello = None
        self._reads, self._writes = reads, writes
        os.set_blocking(reads, False)
        os.set_blocking(writes, False)
        self._decoder = frames.Decoder()
        self._out = bytearray()
        self._channels = {}
        self._turns = deque()
        self._last = 0
        self._is_over = False
        fields = {"software": software, "platform": "", "above": True, "channels": 0}
        self._put(frames.HELLO, cbor.dumps(fields))
        end = time.monotonic() + timeout
        while self.hello is None:
            if time.monotonic() >= end:
                raise TimeoutError("the peer did not say hello in time")
            self.pump(end - time.monotonic())

    def open(self, kind, arguments):
        """A new channel. Whether it was accepted shows in what comes."""
        if len(self._channels) >= self.hello["channels"]:
            raise Incompatible("the peer takes no more channels at a time")
        body = cbor.dumps({"kind": kind, "arguments": arguments})
        if len(body) > frames.MAX_BODY:
            raise ValueError("the arguments are too long")
        self._last += 1
        channel = self._channels[self._last] = Channel(self, self._last)
        self._turns.append(channel)
        self._put(frames.OPEN, body, channel.number)
        return channel

    def run(self, kind, arguments, given=b""):
        """Opens a channel, sends `given`, and waits for its end: the result and the bytes of both streams."""
        channel, came, at = self.open(kind, arguments), (bytearray(), bytearray()), 0
        while True:
            at += channel.send(given[at : at + LOW_WATER])
            if at == len(given):
                channel.finish()
            for stream, data in channel.take():
                came[stream].extend(data)
            if channel.is_ended:
                break
            self.pump()
        if channel.error is not None:
            raise channel.error
        return channel.result, bytes(came[0]), bytes(came[1])

    def pump(self, timeout=None):
        """Waits until something can be read or written, and does it."""
        self._fill()
        reads, writes, _ = select.select([self._reads], [self._writes] if self._out else [], [], timeout)
        if writes:
            try:
                del self._out[: os.write(self._writes, memoryview(self._out)[:LOW_WATER].tobytes())]
            except BlockingIOError:
                pass
        if reads:
            try:
                data = os.read(self._reads, LOW_WATER)
            except BlockingIOError:
                return
            if not data:
                self._part(Goodbye(0, "the peer went away without a goodbye"))
            try:
                for frame in self._decoder.feed(data):
                    self._receive(frame)
            except (Violation, Incompatible) as error:
                self._say_why(error)
                self._part(error)

    def goodbye(self, code=1, text=""):
        """Ends the link; open channels are lost."""
        self._put(frames.GOODBYE, cbor.dumps({"code": code, "text": text}))
        while self._out:
            self.pump()

    def _say_why(self, error):
        """A goodbye, if the peer understands it and has room for it."""
        code = 4 if isinstance(error, Violation) else 5
        if not self._decoder.is_foreign:
            self._put(frames.GOODBYE, cbor.dumps({"code": code, "text": str(error)}))
            try:
                os.write(self._writes, self._out)
            except OSError:
                pass

    def _put(self, kind, body, channel=0, destination=0, source=0):
        self._out += frames.encode(kind, body, channel, 0, destination, source)

    def _fill(self):
        """Channels take turns, a frame each, while the way out has room."""
        idle = 0
        while len(self._out) < LOW_WATER and idle < len(self._turns):
            channel = self._turns[0]
            self._turns.rotate(-1)
            frame = channel._next_frame()
            idle = 0 if frame else idle + 1
            if frame:
                self._put(frame[0], frame[1], channel.number)

    def _receive(self, frame):
        if self.hello is None and frame.kind != frames.HELLO:
            raise Violation("another frame came before the hello")
        if frame.kind == frames.HELLO:
            self._receive_hello(frame.body)
        elif frame.kind == frames.PING:
            self._put(frames.PONG, frame.body)
        elif frame.kind == frames.PONG:
            raise Violation("a pong without its ping")
        elif frame.kind == frames.GOODBYE:
            fields = read_fields(frame.body)
            self._part(Goodbye(fields.get("code"), fields.get("text")))
        elif frame.kind >= frames.OPEN:
            self._receive_on_channel(frame)

    def _receive_hello(self, body):
        if self.hello is not None:
            raise Violation("a second hello")
        self.hello = read_fields(body)
        if self.hello.get("above") is not False:
            raise Incompatible("both ends want to be above")
        if not self.hello.get("node") or not self.hello.get("peer"):
            raise Incompatible("the peer gave us no number")

    def _receive_on_channel(self, frame):
        if frame.destination not in (0, self.hello["peer"]):
            return self._refuse(frame, 8)
        if frame.source not in (0, self.hello["node"]):
            return self._refuse(frame, 7)
        if frame.kind == frames.OPEN:
            return self._refuse(frame, 6)
        channel = self._channels.get(frame.channel)
        if channel is None:
            # A frame that was under way when the channel ended is only late.
            return None if 0 < frame.channel <= self._last else self._refuse(frame, 13)
        if frame.kind == frames.RESET:
            fields = read_fields(frame.body, or_else={"code": 15, "text": ""})
            return self._end(channel, Reset(fields.get("code"), fields.get("text")))
        if frame.kind == frames.RESULT:
            try:
                channel.result = cbor.loads(frame.body)
            except cbor.CborError:
                self._refuse(frame, 15)
                return self._end(channel, Reset(15, "malformed result"))
            return self._end(channel, None)
        code = channel._receive(frame)
        if code is not None:
            self._refuse(frame, code)
            self._end(channel, Reset(code, "the peer broke the protocol"))
        return None

    def _refuse(self, frame, code):
        if frame.kind != frames.RESET:
            body = cbor.dumps({"code": code, "text": ""})
            self._put(frames.RESET, body, frame.channel, frame.source, frame.destination)

    def _end(self, channel, error):
        channel.is_ended = True
        channel.error = error
        del self._channels[channel.number]
        self._turns.remove(channel)

    def _part(self, error):
        for channel in list(self._channels.values()):
            self._end(channel, error)
        raise error


def read_fields(body, or_else=None):
    """The map in a body."""
    try:
        fields = cbor.loads(body)
        if isinstance(fields, dict):
            return fields
    except cbor.CborError as error:
        if or_else is None:
            raise Violation(f"a body that can't be read: {error}") from error
    if or_else is None:
        raise Violation("a body that is no map")
    return or_else
