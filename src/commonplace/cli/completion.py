"""`commonplace completion`: what teaches a shell our commands and options."""

from __future__ import annotations

import os
from pathlib import PurePath
from typing import Annotated

from commonplace.cli.support.command import Answer, Commands, Session, argument
from commonplace.wire.errors import ValidationError

SHELLS = ("bash", "zsh", "fish")

commands = Commands()


@commands.add("completion", unused="it opens no memory")
def completion(
    run: Session, shell: Annotated[str | None, argument("[SHELL]", "bash, zsh or fish; by default yours.")] = None
) -> Answer:
    """Print the script that has your shell complete our commands, options and agents.

    \b
    Example:
      commonplace completion bash >> ~/.bashrc
      commonplace completion zsh >> ~/.zshrc
      commonplace completion fish > ~/.config/fish/completions/commonplace.fish
    """
    chosen = shell or PurePath(os.environ.get("SHELL", "")).name
    if chosen not in SHELLS:
        told = f"not {chosen!r}" if chosen else "and SHELL does not say which is yours"
        raise ValidationError(f"say for which shell: {', '.join(SHELLS)}, {told}", field="shell")
    from typer.completion import get_completion_script  # type: ignore[attr-defined]

    script = get_completion_script(prog_name="commonplace", complete_var="_COMMONPLACE_COMPLETE", shell=chosen)
    if chosen == "zsh":  # whose completion is off until it is asked for, and `compdef` not there
        first, rest = script.split("\n", 1)
        script = f"{first}\n(( $+functions[compdef] )) || {{ autoload -Uz compinit && compinit }}\n{rest}"
    return Answer({"shell": chosen, "script": script}, script)
