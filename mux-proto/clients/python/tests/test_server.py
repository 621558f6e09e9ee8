"""Against a server: the one at standard input, or the command in MUX_SERVER (the example `serve` of mux-proto)."""

import hashlib
import os
import shlex
import subprocess
import unittest

from muxclient import Connection, Goodbye, Reset

MIB = 1024 * 1024
link, server = None, None


def setUpModule():
    global link, server
    command = os.environ.get("MUX_SERVER")
    if command:
        server = subprocess.Popen(shlex.split(command), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        link = Connection(server.stdout.fileno(), server.stdin.fileno())
    else:
        link = Connection(0, 0)


def tearDownModule():
    link.goodbye()
    if server:
        server.communicate(timeout=10)


def shell(line, **more):
    return {"shell": line, "env": [], "stdin": False, **more}


class Server(unittest.TestCase):
    def test_a_command_is_run(self):
        result = link.run("exec", shell(b"echo out; echo err >&2; exit 3"))
        self.assertEqual(result, ({"status": 3}, b"out\n", b"err\n"))

    def test_arguments_variables_directory_and_input_arrive(self):
        words = {"argv": [b"sh", b"-c", b'printf "%s|$V|$PWD|" "$1"; cat', b"-", b"\xff a"]}
        more = {"env": [[b"V", b"\xfe"]], "cwd": b"/", "stdin": True}
        result, out, err = link.run("exec", {**words, **more}, b"given")
        self.assertEqual((result, out, err), ({"status": 0}, b"\xff a|\xfe|/|given", b""))

    def test_a_killed_command_names_its_signal(self):
        self.assertEqual(link.run("exec", shell(b"kill -9 $$"))[0], {"signal": "KILL"})

    def test_refusals_say_why_and_leave_the_link_alone(self):
        for kind, arguments, code in (
            ("nonsense", {}, 3),
            ("exec", {}, 4),
            ("exec", {"argv": [b"/no/such/program"], "stdin": False}, 16),
        ):
            with self.subTest(kind), self.assertRaises(Reset) as caught:
                link.run(kind, arguments)
            self.assertEqual(caught.exception.code, code)
        self.assertEqual(link.run("exec", shell(b"true"))[0], {"status": 0})

    def test_100_mib_go_both_ways_through_credit(self):
        total, piece = 100 * MIB, hashlib.sha512(b"seed").digest() * 1024
        channel, sent, came = link.open("echo", {}), 0, 0
        there, back = hashlib.sha256(), hashlib.sha256()
        while not channel.is_ended:
            while sent < total and channel.room() >= len(piece):
                sent += channel.send(piece)
                there.update(piece)
            if sent >= total:
                channel.finish()
            for _, data in channel.take():
                came += len(data)
                back.update(data)
            if not channel.is_ended:
                link.pump()
        for _, data in channel.take():
            came += len(data)
            back.update(data)
        self.assertIsNone(channel.error)
        self.assertEqual((sent, came), (total, total))
        self.assertEqual(there.digest(), back.digest())

    def test_a_slow_reader_slows_a_command_and_stops_nothing_else(self):
        endless = link.open("exec", shell(b"yes"))
        for _ in range(20):
            self.assertEqual(link.run("exec", shell(b"echo quick"))[1], b"quick\n")
        held = sum(len(data) for _, data in endless._came)
        self.assertLessEqual(held, 64 * 1024)
        endless.reset()
        self.assertEqual(link.run("exec", shell(b"echo after"))[1], b"after\n")

    def test_many_channels_at_a_time(self):
        channels = [link.open("echo", {}) for _ in range(200)]
        for channel in channels:
            channel.send(b"%d" % channel.number)
            channel.finish()
        while not all(channel.is_ended for channel in channels):
            link.pump()
        for channel in channels:
            self.assertIsNone(channel.error)
            self.assertEqual(b"".join(data for _, data in channel.take()), b"%d" % channel.number)


class Names(unittest.TestCase):
    def test_the_server_says_who_it_is(self):
        self.assertEqual(link.hello["node"], 1)
        self.assertEqual(link.hello["peer"], 17)
        self.assertIn("mux", link.hello["software"])
        self.assertFalse(issubclass(Goodbye, Reset))
