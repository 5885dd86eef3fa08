"""Ways to damage a file: its bytes, its words, the values in its JSON, its compression.

Every function takes a source of chance and something valid, and gives something that may not be.
"""

import gzip
import json
import math
import random
import struct
import zlib
from typing import Any

MOST = 1 << 14
"""Bytes of an input, about: small ones are many ones."""

WORDS: tuple[bytes, ...] = (
    *(b"", b"0", b"-1", b"1", b"2", b"0.5", b"-0.0", b"1e308", b"1e309", b"-1e400", b"1e-320", b"nan", b"NaN", b"inf"),
    *(b"-inf", b"Infinity", b"9" * 25, b"9" * 5000, b"18446744073709551615", b"9223372036854775808", b"007", b"1_0"),
    *(b"0x10", b"1,5", b"true", b"null", b"NA", b"None", b"round", b"chosen", b"arm", b"shared", b"|", b"||", b":"),
    *(b"a:b:c", b"'", b'"', b'""', b"[", b"{", b"}", b"]", b"\\", b"\\u0000", b"\\ud800", b",", b";", b"\t", b" "),
    *(b"\n", b"\r", b"\r\n", b"\n\n", b"\0", b"\x1b[2J", b"\xff\xfe", b"\xef\xbb\xbf", b"\xc3", b"\xed\xa0\x80"),
    *("\u2028".encode(), "\u202e".encode(), "é".encode("latin-1"), "٣".encode(), "\uff11".encode(), b"2024-05-01"),
    *(b"9999-12-31T23:59:59.9999999Z", b"2024-05-01T10:00:00+25:00", b"=1+1", b"<b>", b"{{", b"%s", b"../../x"),
    *(b"[" * 3000, b'{"a":' * 2000, b"x" * 3000, b"_", b"__aid", b"_multi", b"onlooker.policy/1", b"\x1f\x8b\x08"),
)
"""Pieces that readers stumble over."""

VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 2, 0.5, -0.0, 1e308, -1e308, 1e-320, math.nan, math.inf, -math.inf),
    *(2**31, 2**53 + 1, 2**63, 2**64, -(2**63) - 1, 10**30, 10**400, 1e150, 1e151, 1e200),
    *(
        "",
        "a",
        "1",
        "nan",
        "\0",
        "\n",
        "\u2028",
        "\ud800",
        "x" * 3000,
        "2024-05-01T10:00:00Z",
        "auto",
        "UCB",
        "float32",
    ),
    *([], {}, [[]], [{}], {"a": 1}, {"": None}, [None], [0, 0], [1, 2, 3], ["a", "a"], [[1.0], [2.0]], [0, 1, "x"]),
    *([1e308] * 3, list(range(50)), ["UCB", 1.0], ["UCB", math.nan], ["TS", 0], ["Lapse", 2], ["Softmax", 10**400]),
)
"""Values that a JSON document should not have where it expects others."""

DEPTHS = (50, 900, 3000)


def mutate_bytes(chance: random.Random, data: bytes, times: int | None = None) -> bytes:
    """Flip, cut, repeat, replace and insert, once or a few times."""
    for _ in range(times or 1 + chance.randrange(3)):
        data = chance.choice(_BYTES)(chance, data)
    return data[: 4 * MOST]


def _flip(chance: random.Random, data: bytes) -> bytes:
    at = _place(chance, data)
    return data[:at] + bytes([data[at] ^ 1 << chance.randrange(8)]) + data[at + 1 :] if data else data


def _set(chance: random.Random, data: bytes) -> bytes:
    at = _place(chance, data)
    return data[:at] + bytes([chance.choice((0, 1, 0x7F, 0x80, 0xFE, 0xFF, 10, 34))]) + data[at + 1 :]


def _cut_off(chance: random.Random, data: bytes) -> bytes:
    return data[: _place(chance, data)]


def _behead(chance: random.Random, data: bytes) -> bytes:
    return data[_place(chance, data) :]


def _remove(chance: random.Random, data: bytes) -> bytes:
    start, stop = _stretch(chance, data)
    return data[:start] + data[stop:]


def _repeat(chance: random.Random, data: bytes) -> bytes:
    start, stop = _stretch(chance, data)
    return data[:start] + data[start:stop] * chance.choice((2, 2, 3, 20)) + data[stop:]


def _swap(chance: random.Random, data: bytes) -> bytes:
    (a, b), (c, d) = sorted((_stretch(chance, data), _stretch(chance, data)))
    return data if c < b else data[:a] + data[c:d] + data[b:c] + data[a:b] + data[d:]


def _insert(chance: random.Random, data: bytes) -> bytes:
    at = _place(chance, data)
    return data[:at] + chance.choice(WORDS) + data[at:]


def _number(chance: random.Random, data: bytes) -> bytes:
    """Overwrite with a number as binary formats have them: sizes, offsets, counts."""
    at = _place(chance, data)
    kind, values = chance.choice((("<i", (-1, 2**31 - 1, 0, 1 << 20)), ("<q", (-1, 2**63 - 1, 2**40, 0))))
    new = struct.pack(kind, chance.choice(values))
    return data[:at] + new + data[at + len(new) :]


_BYTES = (_flip, _flip, _flip, _set, _cut_off, _behead, _remove, _repeat, _swap, _insert, _insert, _number)


def mutate_text(chance: random.Random, data: bytes) -> bytes:
    """Replace words, lines and encodings, and now and then bytes."""
    kind = chance.randrange(10)
    if kind < 5:
        return _replace_words(chance, data)
    if kind < 7:
        return _shuffle_lines(chance, data)
    if kind == 7:
        text = data.decode(errors="replace")
        return chance.choice((text.encode("utf-16"), text.encode("utf-8-sig"), text.encode("utf-32"), data * 3))
    return mutate_bytes(chance, data)


def _replace_words(chance: random.Random, data: bytes) -> bytes:
    for _ in range(1 + chance.randrange(3)):
        mark = chance.choice((b",", b" ", b":", b"\n", b'"'))
        words = data.split(mark)
        words[_place(chance, words)] = chance.choice(WORDS)
        data = mark.join(words)
    return data


def _shuffle_lines(chance: random.Random, data: bytes) -> bytes:
    lines = data.split(b"\n")
    at, other = _place(chance, lines), _place(chance, lines)
    kind = chance.randrange(4)
    if kind == 0:
        lines.insert(at, lines[other])
    elif kind == 1:
        del lines[at]
    elif kind == 2:
        lines[at], lines[other] = lines[other], lines[at]
    else:
        lines[at] += lines[other]
    return b"\n".join(lines)


def mutate_tree(chance: random.Random, tree: Any) -> Any:
    """A JSON value with some of its parts swapped for others, left out, doubled or buried."""
    for _ in range(1 + chance.randrange(2)):
        tree = _mutate_node(chance, tree)
    return tree


def _mutate_node(chance: random.Random, tree: Any) -> Any:
    # Down to any depth: half of the times a container is changed itself.
    if isinstance(tree, dict | list) and tree and chance.randrange(4):
        key = chance.choice(list(tree)) if isinstance(tree, dict) else chance.randrange(len(tree))
        copy = tree.copy()
        copy[key] = _mutate_node(chance, tree[key])
        return copy
    kind = chance.randrange(8)
    if kind == 0 and isinstance(tree, list):
        return tree * 2
    if kind == 1 and isinstance(tree, list):
        return tree[: _place(chance, tree)]
    if kind == 2 and isinstance(tree, dict) and tree:
        gone = chance.choice(list(tree))
        return {key: value for key, value in tree.items() if key != gone}
    if kind == 3 and isinstance(tree, dict):
        return tree | {
            chance.choice(("a", "", "_text", "_tag", "__aid", "schema", "round", "chosen")): chance.choice(VALUES)
        }
    if kind == 4:
        return [tree]
    if kind == 5 and isinstance(tree, int | float) and not isinstance(tree, bool):
        return chance.choice((str(tree), -tree, bool(tree)))
    return chance.choice(VALUES)


def as_json(chance: random.Random, tree: Any) -> bytes:
    """The text of a JSON value, sometimes with what JSON itself does not have."""
    text = json.dumps(tree, ensure_ascii=bool(chance.randrange(2)))
    kind = chance.randrange(40)
    if kind == 0:
        depth = chance.choice(DEPTHS)
        text = "[" * depth + text + "]" * depth
    elif kind == 1:
        # A key twice: most parsers keep the last, some the first.
        text = text.replace("{", '{"schema": 1, ', 1)
    return text.encode("utf-8", "surrogatepass")


def mutate_gzip(chance: random.Random, data: bytes) -> bytes:
    """Compress, and sometimes damage that: members, trailers, garbage, a file that is not compressed at all."""
    kind = chance.randrange(8)
    if kind == 0:
        half = _place(chance, data)
        return gzip.compress(data[:half], mtime=0) + gzip.compress(data[half:], mtime=0)
    if kind == 1:
        return gzip.compress(data, mtime=0) + chance.choice((b"garbage", b"\0" * 100, b"\x1f\x8b", b"\x1f\x8b\x08\0"))
    if kind == 2:
        return mutate_bytes(chance, gzip.compress(data, mtime=0), 1)
    if kind == 3:
        return chance.choice((data, zlib.compress(data), gzip.compress(gzip.compress(data, mtime=0), mtime=0)))
    return gzip.compress(data, mtime=0)


def _place(chance: random.Random, data: Any) -> int:
    return chance.randrange(len(data)) if data else 0


def _stretch(chance: random.Random, data: bytes) -> tuple[int, int]:
    start = _place(chance, data)
    return start, min(len(data), start + 1 + chance.randrange(1 + min(200, len(data))))
