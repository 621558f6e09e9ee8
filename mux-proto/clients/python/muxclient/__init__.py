"""A client of the framed protocol that mux processes speak, written from PROTOCOL.md with the standard library alone."""

from .connection import Channel, Connection, Goodbye, Reset
from .frames import Incompatible, Violation

__all__ = ["Channel", "Connection", "Goodbye", "Incompatible", "Reset", "Violation"]
