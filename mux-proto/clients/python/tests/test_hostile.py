"""Peers that break the protocol, as bytes on a socket."""

import socket
import unittest

from muxclient import Connection, Goodbye, Incompatible, Reset, Violation, cbor, frames

HELLO = {"software": "peer", "platform": "", "above": False, "channels": 4, "node": 1, "peer": 2}


def hello(**changes):
    return frames.encode(frames.HELLO, cbor.dumps({**HELLO, **changes}))


class Peer:
    """The other end."""

    def __init__(self, first):
        self.socket, self.theirs = socket.socketpair()
        self.socket.sendall(first)

    def link(self):
        return Connection(self.theirs.fileno(), self.theirs.fileno(), timeout=5)

    def frames(self):
        return frames.Decoder().feed(self.socket.recv(1 << 20))

    def frames_or_none(self):
        self.socket.setblocking(False)
        try:
            return self.frames()
        except BlockingIOError:
            return []

    def close(self):
        self.socket.close()
        self.theirs.close()


class Hostile(unittest.TestCase):
    def peer(self, first):
        peer = Peer(first)
        self.addCleanup(peer.close)
        return peer

    def test_what_is_no_hello_ends_the_link(self):
        ping = frames.encode(frames.PING, b"12345678")
        for first, error in (
            (b"bash: motd\n", Violation),
            (b"\xf5mx\x02", Incompatible),
            (ping, Violation),
            (hello(above=True), Incompatible),
            (hello(node=0), Incompatible),
            (frames.encode(frames.HELLO, b"\x80"), Violation),
            (frames.HEADER.pack(b"\xf5mx", 1, 99, 0, 0, 0, 0, 0), Violation),
            (frames.HEADER.pack(b"\xf5mx", 1, frames.DATA, 0, 40000, 0, 0, 1), Violation),
            (frames.HEADER.pack(b"\xf5mx", 1, frames.FINISH, 1, 0, 0, 0, 1), Violation),
        ):
            with self.subTest(first), self.assertRaises(error):
                self.peer(first).link()

    def test_a_peer_is_told_what_it_did_and_a_stranger_is_not(self):
        wrong = frames.encode(frames.PONG, b"12345678")
        for sent, error, code in ((hello() + wrong, Violation, 4), (hello(above=True), Incompatible, 5)):
            peer = self.peer(sent)
            with self.assertRaises(error):
                peer.link().pump()
            said = peer.frames()[-1]
            self.assertEqual((said.kind, cbor.loads(said.body)["code"]), (frames.GOODBYE, code))
        stranger = self.peer(b"Last login: today")
        with self.assertRaises(Violation):
            stranger.link()
        self.assertNotIn(frames.GOODBYE, [frame.kind for frame in stranger.frames_or_none()])

    def test_a_peer_that_goes_or_says_nothing_is_told_of(self):
        peer = self.peer(hello())
        link = peer.link()
        channel = link.open("echo", {})
        peer.socket.close()
        with self.assertRaises((Goodbye, ConnectionError)):
            while True:
                link.pump()
        silent = self.peer(b"")
        with self.assertRaises(TimeoutError):
            Connection(silent.theirs.fileno(), silent.theirs.fileno(), timeout=0.05)
        self.assertEqual(channel.number, 1)

    def check_refused(self, frame, code):
        peer = self.peer(hello())
        link = peer.link()
        channel = link.open("echo", {})
        link.pump()
        peer.frames()
        peer.socket.sendall(frame)
        while not link._out:
            link.pump()
        link.pump()
        answer = peer.frames()[-1]
        self.assertEqual(answer.kind, frames.RESET)
        self.assertEqual(cbor.loads(answer.body)["code"], code)
        return channel

    def test_what_is_wrong_with_a_channel_costs_that_channel(self):
        data = frames.encode(frames.DATA, bytes(32768), 1)
        for frame, code in (
            (data * 3, 10),
            (frames.encode(frames.CREDIT, b"\xff\xff\xff\xff", 1), 11),
            (frames.encode(frames.CREDIT, bytes(4), 1), 11),
            (frames.encode(frames.FINISH, b"", 1) + data, 14),
            (frames.encode(frames.RESULT, b"\xff", 1), 15),
        ):
            channel = self.check_refused(frame, code)
            self.assertIsInstance(channel.error, Reset)
            self.assertEqual(channel.error.code, code)

    def test_frames_for_nobody_are_answered(self):
        for frame, code in (
            (frames.encode(frames.DATA, b"x", 7), 13),
            (frames.encode(frames.DATA, b"x", 1, source=9), 7),
            (frames.encode(frames.DATA, b"x", 1, destination=9), 8),
            (frames.encode(frames.OPEN, cbor.dumps({"kind": "echo", "arguments": {}}), 1), 6),
        ):
            self.assertFalse(self.check_refused(frame, code).is_ended)
