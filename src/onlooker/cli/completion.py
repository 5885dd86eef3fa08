"""`onlooker completion`: commands, options and file names on TAB."""

from __future__ import annotations

import click

from onlooker.base.errors import InputError
from onlooker.cli import options
from onlooker.cli.console import print_json
from onlooker.cli.options import OneOf


@click.command(short_help="Print a script that completes commands on TAB.")
@click.argument("shell", type=OneOf(["bash", "zsh", "fish"]))
@options.as_json
def completion(shell: str, as_json: bool) -> None:
    """Print the script that has SHELL complete commands, options and file names on TAB.

    The script asks onlooker itself for what may follow, so that it does not go out of date. In a start-up file, give
    the whole path of an onlooker that lives in an environment.

    Examples: eval "$(onlooker completion bash)" in ~/.bashrc; eval "$(onlooker completion zsh)" in ~/.zshrc, after
    compinit; onlooker completion fish > ~/.config/fish/completions/onlooker.fish
    """
    from click.shell_completion import get_completion_class

    root = click.get_current_context().find_root()
    kind = get_completion_class(shell)
    if kind is None or root.info_name is None:
        raise InputError(f"there is no completion for {shell}: update click")
    script = kind(root.command, {}, root.info_name, "_ONLOOKER_COMPLETE").source()
    if as_json:
        print_json({"shell": shell, "script": script})
        return
    click.echo(script, nl=False)
