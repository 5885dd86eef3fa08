"""Kinds of values that options take: files and words that a shell completes, choices that know their neighbours."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import click

from onlooker.checks import did_you_mean

Completer = Callable[[click.Context, click.Parameter, str], list[str]]

# Only so that a shell completes names: what is there and can be read is found by whoever opens it.
FILE = click.Path(readable=False)
FOLDER = click.Path(file_okay=False, readable=False)


class Number(click.FloatRange):
    """A number within bounds; not a number and infinities are within none."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Refuse what is out of bounds."""
        number = float(super().convert(value, param, ctx))
        if not math.isfinite(number):
            self.fail(f"{number} is not a finite number.", param, ctx)
        return number


LEVEL = Number(0, 1, min_open=True, max_open=True)
"""Coverage of an interval."""


class OneOf(click.Choice[str]):
    """One of several words; a mistyped one is told which it resembles."""

    def get_invalid_choice_message(self, value: Any, ctx: click.Context | None) -> str:
        """Say which there are, and which was probably meant."""
        message, hint = super().get_invalid_choice_message(value, ctx), did_you_mean(str(value), self.choices)
        return f"{message.rstrip('.')}; {hint}" if hint else message


def words(*known: str) -> Completer:
    """Complete to these words; others are allowed too."""
    return lambda _context, _parameter, typed: [word for word in known if word.startswith(typed)]


def method_names(context: click.Context, parameter: click.Parameter, typed: str) -> list[str]:
    """Complete to the names of observers."""
    from onlooker.observers.methods import METHODS

    return words(*(method.name for method in METHODS))(context, parameter, typed)
