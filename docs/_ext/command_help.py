"""A directive that shows what a command's `--help` says."""

from typing import ClassVar

import click
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective


class CommandHelp(SphinxDirective):
    """`.. command-help:: fit` for one command, without a name for the list of all."""

    optional_arguments = 1
    option_spec: ClassVar = {}

    def run(self) -> list[nodes.Node]:
        """The help, as it is printed."""
        from onlooker.cli import commands

        context = click.Context(commands, info_name="onlooker", max_content_width=100, terminal_width=100)
        command: click.Command = commands
        if self.arguments:
            command = commands.commands[self.arguments[0]]
            context = click.Context(command, context, info_name=self.arguments[0], max_content_width=100)
        text = command.get_help(context)
        block = nodes.literal_block(text, text, language="text")
        return [block]


def setup(app: Sphinx) -> dict[str, bool]:
    """Tell Sphinx."""
    app.add_directive("command-help", CommandHelp)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
