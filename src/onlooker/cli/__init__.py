"""The command line: it parses, calls the library and prints. Heavy imports wait until a command runs."""

import os
import sys
import traceback
import warnings
from functools import partial
from pathlib import Path

import click

from onlooker.base.errors import OnlookerError, OnlookerWarning
from onlooker.base.files import advice_on
from onlooker.base.memory_limit import is_memory_error, memory_error_words
from onlooker.base.text import one_line, shown, without_secrets
from onlooker.base.version import __version__
from onlooker.cli.compare import compare
from onlooker.cli.completion import completion
from onlooker.cli.console import INTERRUPTED, in_flags, say
from onlooker.cli.convert import convert
from onlooker.cli.demo import demo
from onlooker.cli.diagnose import diagnose
from onlooker.cli.fit import fit
from onlooker.cli.options import with_bare_cross
from onlooker.cli.propensities import propensities
from onlooker.cli.report import report
from onlooker.cli.reproduce import reproduce
from onlooker.cli.simulate import simulate
from onlooker.cli.track import track

BAD_INPUT, FAULT = 2, 1


class InOrder(click.Group):
    """Lists its commands in the order in which they were added."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command, with `--cross` as it is meant where no value follows."""
        return super().resolve_command(ctx, with_bare_cross(args))

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  click's own signature
        """Names, as added."""
        return list(self.commands)


@click.group(
    cls=InOrder,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="LOG is a file, several, a folder, a pattern in quotes, - for the standard input, or the address of a store "
    "or database: docs/places.md. Terms are explained in docs/glossary.md.",
)
@click.version_option(__version__, prog_name="onlooker")
def commands() -> None:
    """Recover what a bandit learned, from its actions alone.

    Start with `onlooker demo`. For your own log, run `onlooker diagnose LOG` first, then fit, track or report.
    """


for command in (demo, diagnose, fit, track, report, propensities, compare, convert, simulate, reproduce, completion):
    commands.add_command(command)


def main() -> None:
    """Run the command line: exit 0 on success, 2 on bad input or too little memory with one line, 130 on Ctrl-C."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("always", OnlookerWarning)
            warnings.showwarning = partial(_show_warning, set())
            commands(prog_name="onlooker", standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as error:
        say(error.format_message(), err=True)
        sys.exit(BAD_INPUT)
    except click.ClickException as error:
        said = " ".join(error.format_message().split())
        _fail(f"{said if said.endswith(('.', '?', '!')) else f'{said}.'}{_advice(error)}")
    except OnlookerError as error:
        _fail(in_flags(str(error)))
    except (click.Abort, KeyboardInterrupt):
        say("onlooker: stopped", err=True)
        sys.exit(INTERRUPTED)
    except Exception as error:  # noqa: BLE001  whatever it is, the user sees one line
        _fail(*_unexpected(error))


def _unexpected(error: Exception) -> tuple[str, int]:
    """The message of an error that is not about the input, and the exit code."""
    if is_memory_error(error):
        return memory_error_words(error), BAD_INPUT
    if isinstance(error, FileNotFoundError) and error.filename is None:
        return "the working folder is gone: change to one that exists", BAD_INPUT
    if isinstance(error, OSError):
        # Files are named where they are read or written: an error without a name is about the output.
        place = "what is printed" if error.filename is None else shown(os.fsdecode(error.filename))
        return f"{place}: cannot be read or written ({one_line(error)}): {advice_on(error)}", BAD_INPUT
    last = traceback.extract_tb(error.__traceback__)[-1]
    where = f"{Path(last.filename).name}:{last.lineno}"
    return (
        f"a fault of onlooker's own ({type(error).__name__} at {where}: {one_line(error)}): please report this line",
        FAULT,
    )


def _show_warning(said: set[str], message: Warning | str, *_: object, **__: object) -> None:
    """Show a warning on one line, like an error, and once: some files are read twice."""
    line = f"warning: {without_secrets(in_flags(str(message)))}"
    if line not in said:
        said.add(line)
        say(line, err=True)


def _advice(error: click.ClickException) -> str:
    """Where to read on after a mistyped line."""
    if isinstance(error, click.NoSuchOption) and error.option_name == "--by":
        return " Several learners in one file: fit, track, diagnose, report and propensities have --by COLUMN."
    if isinstance(error, click.UsageError):
        return f" See {error.ctx.command_path if error.ctx else 'onlooker'} --help"
    return ""


def _fail(message: str, code: int = BAD_INPUT) -> None:
    say(f"onlooker: {without_secrets(message)}", err=True)
    sys.exit(code)
