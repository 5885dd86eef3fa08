"""Options that several commands share, the values that they denote, and the log that they name, opened."""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import click

from onlooker.base.checks import did_you_mean
from onlooker.base.defaults import BURN_IN, L2
from onlooker.base.errors import ColumnsLeftOutWarning, InputError, MissingValuesWarning, OnlookerWarning
from onlooker.base.memory_limit import as_bytes, memory_limited
from onlooker.base.text import by_number, redacted
from onlooker.cli.console import in_flags

if TYPE_CHECKING:
    from onlooker.clusters import RayParts
    from onlooker.formats import LogScan
    from onlooker.formats.opening import Opened
    from onlooker.formats.places import Place
    from onlooker.logs.log import BanditLog
    from onlooker.simulation.ridge import RidgeLearner


Command = TypeVar("Command", bound=Callable[..., Any])

Completer = Callable[[click.Context, click.Parameter, str], list[str]]

# For shell completion only: the code that opens a file checks that it exists and can be read.
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


class LogName(str):  # noqa: SLOT000  it carries what it stands for
    """What a command was given as its log, as it may be printed: nothing secret is in it.

    Examples
    --------
    >>> log = LogName.of(["day1.csv", "day10.csv", "day2.csv"])
    >>> log, log.given
    ('day1.csv to day10.csv, 3 files', ['day1.csv', 'day2.csv', 'day10.csv'])
    >>> LogName.of(["postgresql://bob:hush@host/shop"])
    'postgresql://***@host/shop'
    """

    given: list[str]
    """Files, folders, patterns or addresses, in order."""
    place: Any
    """Where the log was found, once it was looked for."""

    @classmethod
    def of(cls, given: Sequence[str]) -> LogName:
        """Files in the order of a shell, by letters, are taken by number: day 2 before day 10."""
        ordered = sorted(given, key=by_number) if list(given) == sorted(given) else list(given)
        shown = [redacted(one) for one in ordered]
        name = cls(shown[0] if len(shown) == 1 else f"{shown[0]} to {shown[-1]}, {len(shown)} files")
        name.given, name.place = ordered, None
        return name

    @property
    def source(self) -> str | list[str]:
        """What `read_log` takes."""
        return self.given[0] if len(self.given) == 1 else self.given

    @property
    def words(self) -> list[str]:
        """What was given, as it may be printed."""
        return [redacted(one) for one in self.given]


def _as_log(_context: click.Context, _parameter: click.Parameter, given: tuple[str, ...]) -> LogName | None:
    return LogName.of(given) if given else None


def log_argument(name: str = "log", *, metavar: str = "LOG...", required: bool = True) -> Callable[[Command], Command]:
    """The log that a command works on: one file or several, or another place."""
    return click.argument(name, type=FILE, nargs=-1, required=required, metavar=metavar, callback=_as_log)


LEVEL = Number(0, 1, min_open=True, max_open=True)
"""Coverage of an interval."""


class OneOf(click.Choice[str]):
    """One of several words; for a mistyped one the message suggests the nearest."""

    def get_invalid_choice_message(self, value: Any, ctx: click.Context | None) -> str:
        """Reject the word, listing the valid ones and the likely intention."""
        message, hint = super().get_invalid_choice_message(value, ctx), did_you_mean(str(value), self.choices)
        return f"{message.rstrip('.')}; {hint}" if hint else message


def words(*known: str) -> Completer:
    """Complete to these words; others are allowed too."""
    return lambda _context, _parameter, typed: [word for word in known if word.startswith(typed)]


def method_names(context: click.Context, parameter: click.Parameter, typed: str) -> list[str]:
    """Complete to the names of observers."""
    from onlooker.observers.methods import METHODS

    return words(*(method.name for method in METHODS))(context, parameter, typed)


LEARNERS = {
    "linucb": "LinUCB",
    "lints": "LinTS",
    "oful": "OFUL",
    "epsilon-greedy": "EpsilonGreedy",
    "boltzmann": "Boltzmann",
    "explore-then-commit": "ExploreThenCommit",
    "uniform": "UniformRandom",
}
"""Names on the command line, and the classes behind them."""

ALL_PRODUCTS = "*"
"""The value of `--cross` without a pair of columns."""
_PAIR = re.compile(r"[^/\\]*:[^/\\]*")
"""Columns to multiply; a path or an address has slashes."""


def with_bare_cross(arguments: list[str]) -> list[str]:
    """The same arguments with `--cross=*` for a `--cross` that no pair of columns follows, but a file or nothing.

    Examples
    --------
    >>> with_bare_cross(["--cross", "log.vw", "--cross", "age:price"])
    ['--cross=*', 'log.vw', '--cross', 'age:price']
    """
    after = [*arguments[1:], ""]
    return [
        f"--cross={ALL_PRODUCTS}" if one == "--cross" and not _PAIR.fullmatch(following) else one
        for one, following in zip(arguments, after, strict=True)
    ]


as_json = click.option("--json", "as_json", is_flag=True, help="Print one JSON document instead of text.")


def _hold(context: click.Context, _option: click.Parameter, limit: str | None) -> str | None:
    """Hold the process to the limit until the command is done, whatever it reads."""
    if limit is not None:
        context.with_resource(memory_limited(as_bytes(limit)))
    return limit


memory_limit = click.option(
    "--memory-limit",
    metavar="SIZE",
    callback=_hold,
    help="Peak memory, as in 800MB. LOG is scanned in parts, not loaded.",
)
held_to = click.option(
    "--memory-limit",
    "held_to",
    metavar="SIZE",
    callback=_hold,
    expose_value=False,
    help="Peak memory, as in 800MB. LOG is refused if the work would take more.",
)
burn_in = click.option(
    "--burn-in",
    default=BURN_IN,
    show_default=True,
    shell_complete=words("naive", "rule", "auto"),
    help="Early rounds to ignore: naive (none), rule, auto, a number of rounds, or a fraction below 1.",
)
l2 = click.option(
    "--l2",
    default=L2,
    show_default=True,
    type=Number(min=0),
    help="L2 penalty on the mean loss (regularisation); 0 turns it off.",
)
score = click.option(
    "--score",
    default="linear",
    show_default=True,
    type=OneOf(["linear", "additive", "products", "neural", "boosted", "auto"]),
    help="How features become scores; auto takes the simplest that predicts held-out picks as well as the best.",
)
seed = click.option("--seed", default=0, show_default=True, type=click.IntRange(min=0), help="Same seed, same result.")


def _count(flag: str, name: str, default: int, text: str) -> Callable[[Command], Command]:
    return click.option(flag, name, default=default, show_default=True, type=click.IntRange(min=1), help=text)


def simulation_options(command: Command) -> Command:
    """Which learner plays, where and for how long."""
    for option in (
        click.option(
            "--noise", default=0.1, show_default=True, type=Number(min=0), help="Standard deviation of the rewards."
        ),
        _count("--rounds", "n_rounds", 10_000, "Rounds, N."),
        _count("--arms", "n_arms", 50, "Arms per round, K."),
        _count("--features", "n_features", 20, "Features, d."),
        click.option(
            "--set", "settings", multiple=True, metavar="NAME=VALUE", help="Setting of the learner, as in alpha=0.2."
        ),
        click.option("--learner", default="linucb", show_default=True, type=OneOf(list(LEARNERS))),
    ):
        command = option(command)
    return command


def column_options(command: Command) -> Command:
    """Which columns of a log mean what, and which rows of a database are the log."""
    for option in (
        click.option("--sql", metavar="QUERY", help="Rows of a database: SELECT ..., or the name of a table."),
        click.option(
            "--like", type=FILE, metavar="POLICY.json", help="Encode LOG like the log this policy was fitted to."
        ),
        click.option(
            "--cross",
            multiple=True,
            is_flag=False,
            flag_value=ALL_PRODUCTS,
            metavar="[A:B]",
            help="Add the products of two columns; repeat for more. Alone: of context and arm features (VW, R6A, OBP).",
        ),
        click.option("--slate", metavar="COLUMN", help="Position of a pick, where a round has several."),
        click.option(
            "--picked-group", metavar="COLUMN", help="Group of an arm, where only the group of the pick is known."
        ),
        click.option(
            "--possible", metavar="COLUMN", help="1 for every arm that may be the pick, where only a set is known."
        ),
        click.option(
            "--offer-probability", metavar="COLUMN", help="With what a row is kept, where offers are a sample."
        ),
        click.option(
            "--missing",
            type=OneOf(["leave-out"]),
            help="Rounds with a missing feature: leave them out, and say how many; by default they are refused.",
        ),
        click.option(
            "--wide", metavar="PATTERN", help="Columns of arms in a row per round, as in 'arm{arm}_{feature}'."
        ),
        click.option("--candidates", metavar="COLUMN", help="Lists of the offered arms, in a row per round."),
        click.option("--decimal", type=OneOf([".", ","]), help="Decimal mark of a CSV file.  [default: .]"),
        click.option("--position", type=int, help="Keep only this position of the page (Open Bandit Dataset, OBP)."),
        click.option("--order-by", metavar="COLUMN", help="Time of a round; by default rounds are in file order."),
        click.option(
            "--category",
            "categories",
            multiple=True,
            metavar="COLUMN",
            help="A category, even if it holds numbers; repeat for more.",
        ),
        click.option("--feature", "features", multiple=True, metavar="COLUMN", help="A feature; repeat for more."),
        click.option("--items", type=FILE, metavar="FILE", help="Table of the arms' features by id, for --context."),
        click.option("--users", type=FILE, metavar="FILE", help="Table of what describes a round's user, by id."),
        click.option("--user", metavar="COLUMN", help="Id of a round's user, for --users."),
        click.option("--offered", metavar="COLUMN", help="Ids of the arms on offer, where a row is a round."),
        click.option(
            "--context",
            multiple=True,
            metavar="COLUMN",
            help="Describes a round, where a row is a round (1: ones); repeat for more.",
        ),
        click.option("--arm", metavar="COLUMN", help="Id of an arm; of the picked arm, where a row is a round."),
        click.option("--chosen", metavar="COLUMN", help="1 for the arm that was picked, else 0."),
        click.option("--round", metavar="COLUMN", help="Id of a round."),
    ):
        command = option(command)
    return command


def engine_options(command: Command) -> Command:
    """`--engine` and `--address`."""
    for option in (
        click.option(
            "--address", metavar="HOST:PORT", help="Address of a Ray cluster; without it, one is started here."
        ),
        click.option(
            "--engine",
            default="local",
            show_default=True,
            type=OneOf(["local", "ray"]),
            help="Run on this machine, or on a Ray cluster (pip install 'onlooker[ray]').",
        ),
    ):
        command = option(command)
    return command


def check_engine(engine: str, address: str | None) -> None:
    """Refuse an address that would not be used."""
    if engine == "local" and address is not None:
        raise InputError(f"--address {address}: is of a Ray cluster, so add --engine ray")


def as_burn_in(burn_in: str) -> str | int | float:
    """What `--burn-in` says: a rule by its name, a number of rounds, or a part of them."""
    if burn_in in {"naive", "rule", "auto"}:
        return burn_in
    try:
        return int(burn_in) if burn_in.lstrip("+-").isdecimal() else float(burn_in)
    except ValueError:
        raise InputError(
            f"--burn-in {burn_in}: use naive, rule, auto, a number of rounds, or a fraction below 1"
        ) from None


def make_learner(name: str, settings: tuple[str, ...]) -> RidgeLearner:
    """The learner that `--learner` and `--set` describe."""
    from onlooker.simulation import learners

    kind = getattr(learners, LEARNERS[name])
    known = [field for field in kind.__dataclass_fields__ if not field.startswith("_")]
    values: dict[str, float | int] = {}
    for setting in settings:
        key, equals, text = setting.partition("=")
        if not equals or key not in known:
            raise InputError(f"--set {setting}: {name} takes {', '.join(f'{field}=VALUE' for field in known)}")
        try:
            values[key] = int(text) if text.lstrip("+-").isdecimal() else float(text)
        except ValueError:
            raise InputError(f"--set {setting}: {text!r} is not a number") from None
    learner: RidgeLearner = kind(**values)
    return learner


def open_log(path: str, columns: dict[str, Any]) -> Opened[BanditLog]:
    """Read a log with the column options that were given."""
    from onlooker.formats import opening

    with _left_out() as left_out:
        found = opening.open_log(located(path, columns), asked(columns))
    found.assumed.extend(left_out)
    return found


def open_logs(path: str, by: str | None, columns: dict[str, Any]) -> Opened[dict[str, BanditLog]]:
    """Read the logs that column `by` separates, or a single one without a name."""
    from onlooker.formats import opening

    if by is None:
        one = open_log(path, columns)
        return opening.Opened({"": one.log}, one.format, one.assumed, one.files)
    with _left_out() as left_out:
        found = opening.open_logs(located(path, columns), by, asked(columns))
    found.assumed.extend(left_out)
    return found


def open_scan(path: str, columns: dict[str, Any], memory_limit: str | None = None) -> Opened[LogScan]:
    """Open a log without loading it."""
    from onlooker.formats import opening

    with _left_out() as left_out:
        found = opening.open_scan(located(path, columns), asked(columns), memory_limit=memory_limit)
    found.assumed.extend(left_out)
    return found


@contextmanager
def opened(
    path: str, columns: dict[str, Any], engine: str, address: str | None, memory_limit: str | None = None
) -> Iterator[tuple[BanditLog | LogScan | RayParts, list[str]]]:
    """The log that a command names, where it is to be worked on, and what was assumed about it; kernels are ready."""
    check_engine(engine, address)
    if memory_limit is not None and engine != "local":
        raise InputError(f"--memory-limit {memory_limit}: a cluster keeps the log in its workers, so leave it out")
    if engine == "local":
        found = open_log(path, columns) if memory_limit is None else open_scan(path, columns, memory_limit)
        yield found.log, found.assumed
        return
    from onlooker.clusters import RayParts

    scan = open_scan(path, columns)
    with RayParts(scan.log, address=address) as parts:
        yield parts, scan.assumed


def located(log: str, columns: dict[str, Any]) -> Place:
    """Where a log is; what is elsewhere is copied once in a command."""
    from onlooker.formats.opening import locate

    name = log if isinstance(log, LogName) else LogName.of([log])
    if name.place is None:
        name.place, _ = locate(name.source, given(columns))
    place: Place = name.place
    return place


def asked(columns: dict[str, Any]) -> dict[str, Any]:
    """The options about the meaning of rows, without those that select them."""
    return {name: value for name, value in given(columns).items() if name != "sql"}


def given(columns: dict[str, Any]) -> dict[str, Any]:
    """The options that were given, as `read_log` takes them."""
    found: dict[str, Any] = {}
    for name, value in columns.items():
        if value or (name == "position" and value is not None):
            found[name] = list(value) if isinstance(value, tuple) else value
    if ALL_PRODUCTS in found.get("cross", ()):
        if len(found["cross"]) > 1:
            raise InputError("--cross: give pairs of columns, or none to have all products, not both")
        found["cross"] = True
    if isinstance(found.get("like"), str):
        from onlooker.logs.policy import LinearPolicy

        found["like"] = LinearPolicy.load(found["like"])
    return found


@contextmanager
def _left_out() -> Iterator[list[str]]:
    """Collect the warnings about columns and rounds that were left out; others are shown as usual."""
    left_out: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", OnlookerWarning)
        yield left_out
    for warning in caught:
        if issubclass(warning.category, (ColumnsLeftOutWarning, MissingValuesWarning)):
            left_out.append(in_flags(str(warning.message)))
        else:
            warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)
