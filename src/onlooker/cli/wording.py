"""What the library says, in the words of the command line: its options have other names there."""

from __future__ import annotations

import re

FLAGS = {"features": "--feature", "categories": "--category"}
"""Options whose flags are not their names."""
_WHERE = {"by": " of `onlooker diagnose` or `report`"}
"""Options that not all commands have."""
_COLUMNS = ("round", "chosen", "arm", "arms", "order_by", "by", "features", "categories")
_OPTIONS = (*_COLUMNS, "like", "cross", "position", "decimal")
_QUOTED = re.compile(rf"`({'|'.join(_OPTIONS)})`")
_NAMED = re.compile(rf"(?<=option )'({'|'.join(_OPTIONS)})'")
_BOTH = re.compile(rf"(?<=options )'({'|'.join(_OPTIONS)})' and '({'|'.join(_OPTIONS)})'")
_TAKEN = re.compile(r"(?<=: it takes )[\w, ]+$")
_PASSED = {
    "pass cross=True": "pass --cross",
    "cross=True": "--cross",
    "features=[...]": "--feature",
    "memory_limit is": "--memory-limit is",
    "loss 'zero_one'": "--loss zero_one",
    "loss='softmax'": "--loss softmax",
    "pass decimal=','": "pass --decimal ,",
    "pass decimal='.'": "pass --decimal .",
    "repeated='follow'": "--repeated follow",
}


def flag(option: str) -> str:
    """What an option is called on the command line.

    Examples
    --------
    >>> flag("order_by"), flag("features")
    ('--order-by', '--feature')
    """
    return FLAGS.get(option, f"--{option.replace('_', '-')}")


def in_flags(text: str) -> str:
    """Name the options in a message as the command line does.

    Examples
    --------
    >>> in_flags("the table has no column 'trip': name it as `round`")
    "the table has no column 'trip': name it as --round"
    >>> in_flags("VW text has no option 'round': it takes features, cross, like")
    'VW text has no option --round: it takes --feature, --cross, --like'
    """
    for python, typed in _PASSED.items():
        text = text.replace(python, typed)
    text = _QUOTED.sub(lambda found: flag(found[1]) + _WHERE.get(found[1], ""), text)
    text = _NAMED.sub(lambda found: flag(found[1]), text)
    text = _BOTH.sub(lambda found: f"{flag(found[1])} and {flag(found[2])}", text)
    return _TAKEN.sub(lambda found: ", ".join(flag(name) for name in found[0].split(", ")), text)
