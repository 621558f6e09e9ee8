"""The subset of CBOR (RFC 8949) that bodies are written in. Knows items; never what they mean."""

import struct

MAX_DEPTH = 8


class CborError(ValueError):
    """The bytes are not one item of the subset."""


def _head(major, value):
    for info, form, limit in ((24, ">B", 1 << 8), (25, ">H", 1 << 16), (26, ">I", 1 << 32), (27, ">Q", 1 << 64)):
        if value < 24:
            return bytes([major << 5 | value])
        if value < limit:
            return bytes([major << 5 | info]) + struct.pack(form, value)
    raise CborError("a number beyond 64 bits")


def dumps(value):
    """One item: None, bool, int, bytes, str, list, tuple or dict, in its shortest form."""
    if value is None:
        return b"\xf6"
    if value is True or value is False:
        return b"\xf5" if value else b"\xf4"
    if isinstance(value, int):
        return _head(0, value) if value >= 0 else _head(1, -1 - value)
    if isinstance(value, (bytes, bytearray, memoryview)):
        return _head(2, len(value)) + bytes(value)
    if isinstance(value, str):
        text = value.encode()
        return _head(3, len(text)) + text
    if isinstance(value, (list, tuple)):
        return _head(4, len(value)) + b"".join(map(dumps, value))
    if isinstance(value, dict):
        return _head(5, len(value)) + b"".join(dumps(key) + dumps(item) for key, item in value.items())
    raise TypeError(f"no item for {type(value).__name__}")


def loads(data):
    """The value of `data`, which is one item and nothing else."""
    value, end = _item(memoryview(data), 0, 0)
    if end != len(data):
        raise CborError("bytes after the item")
    return value


def _item(data, at, depth):
    if at >= len(data):
        raise CborError("it ends within an item")
    major, info = data[at] >> 5, data[at] & 31
    at += 1
    if major == 7:
        if info not in (20, 21, 22):
            raise CborError("a type that is not used here")
        return {20: False, 21: True, 22: None}[info], at
    if major == 6 or info > 27:
        raise CborError("a type that is not used here")
    size = 0 if info < 24 else 1 << (info - 24)
    if at + size > len(data):
        raise CborError("it ends within an item")
    number = int.from_bytes(data[at : at + size], "big") if size else info
    at += size
    if major == 0:
        return number, at
    if major == 1:
        if number >= 1 << 63:
            raise CborError("a type that is not used here")
        return -1 - number, at
    if major in (2, 3):
        if at + number > len(data):
            raise CborError("it ends within an item")
        content = bytes(data[at : at + number])
        if major == 2:
            return content, at + number
        try:
            return content.decode(), at + number
        except UnicodeDecodeError as error:
            raise CborError("a text that is not UTF-8") from error
    if depth == MAX_DEPTH:
        raise CborError("too many levels")
    items = []
    for _ in range(number * (major - 3)):
        item, at = _item(data, at, depth + 1)
        items.append(item)
    if major == 4:
        return items, at
    try:
        fields = dict(zip(items[::2], items[1::2]))
    except TypeError as error:
        raise CborError("a key that is no key") from error
    if len(fields) != number:
        raise CborError("a key twice")
    return fields, at
