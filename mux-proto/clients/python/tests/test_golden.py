"""Frames and bodies, against the golden frames that every implementation is tested with."""

import pathlib
import unittest

from muxclient import cbor, frames

GOLDEN = pathlib.Path(__file__).resolve().parents[3] / "golden"


def golden(name):
    lines = (GOLDEN / f"{name}.hex").read_text().splitlines()
    return bytes.fromhex(" ".join(line.split("#")[0] for line in lines))


class Golden(unittest.TestCase):
    def test_every_golden_frame_goes_there_and_back(self):
        paths = sorted(GOLDEN.glob("*.hex"))
        self.assertGreaterEqual(len(paths), 16)
        for path in paths:
            with self.subTest(path.name):
                wire = golden(path.stem)
                decoder, came = frames.Decoder(), []
                for byte in wire:
                    came += decoder.feed(bytes([byte]))
                self.assertTrue(decoder.is_empty())
                (frame,) = came
                body = frame.body
                if body and frame.kind not in (frames.DATA, frames.CREDIT, frames.PING, frames.PONG):
                    body = cbor.dumps(cbor.loads(body))
                again = frames.encode(
                    frame.kind, body, frame.channel, frame.flags, frame.destination, frame.source
                )
                self.assertEqual(again, wire)

    def test_what_the_frames_say(self):
        (frame,) = frames.Decoder().feed(golden("open-exec-argv"))
        self.assertEqual((frame.kind, frame.channel, frame.destination, frame.source), (frames.OPEN, 2, 18, 1))
        command = {"argv": [b"ls", b"\xff"], "env": [[b"LC_ALL", b"C"]], "cwd": b"/tmp", "stdin": False}
        self.assertEqual(cbor.loads(frame.body), {"kind": "exec", "arguments": command})


class Cbor(unittest.TestCase):
    def test_what_is_no_item_is_refused(self):
        bad = ["", "a1", "9bffffffffffffffff", "61ff", "9fff", "c000", "fb0000000000000000", "a0a0"]
        bad += ["a2616101616101", "3bffffffffffffffff", "81" * 9 + "00", "f7", "1c", "a18000"]
        for text in bad:
            with self.subTest(text), self.assertRaises(cbor.CborError):
                cbor.loads(bytes.fromhex(text))

    def test_values_go_there_and_back(self):
        for value in (0, 23, 24, 255, 256, 65536, 2**64 - 1, -1, -(2**63), "ä", b"\xff", [[], {}], None, True):
            self.assertEqual(cbor.loads(cbor.dumps(value)), value)
