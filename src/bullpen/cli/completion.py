"""`bullpen completion SHELL`: a script that completes verbs and options, made from the parser itself."""

import argparse
from typing import NamedTuple

from bullpen.cli.showing import Show
from bullpen.cli.verb import OK, Verb

_EXAMPLES = """
  bullpen completion bash > ~/.local/share/bash-completion/completions/bullpen
  bullpen completion zsh > "${fpath[1]}/_bullpen"
  bullpen completion fish > ~/.config/fish/completions/bullpen.fish
"""


class Place(NamedTuple):
    """What may stand after some words."""

    words: tuple[str, ...]
    """The verb, and the act of a verb that has some."""
    options: dict[str, str]
    """With their help."""
    choices: dict[str, list[str]]
    """What may follow an option, where that is known."""
    verbs: dict[str, str]


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=["bash", "zsh", "fish"])


async def run(args: argparse.Namespace, show: Show) -> int:
    places = _places(args.parser)
    script = {"bash": _bash, "zsh": _zsh, "fish": _fish}[args.shell](places)
    show.raw(script + "\n")
    return OK


def _places(parser: argparse.ArgumentParser, words: tuple[str, ...] = ()) -> list[Place]:
    here = Place(words, {}, {}, {})
    below: list[Place] = []
    for action in parser._actions:  # noqa: SLF001 - argparse has no other way to tell what it knows
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001
            summaries = {one.dest: one.help or "" for one in action._choices_actions}  # noqa: SLF001
            for name, one in action.choices.items():
                here.verbs[name] = summaries.get(name, "")
                below += _places(one, (*words, name))
        elif action.option_strings:
            longest = max(action.option_strings, key=len)
            here.options[longest] = action.help or ""
            if action.choices:
                here.choices[longest] = [str(choice) for choice in action.choices]
        elif action.choices:
            here.verbs.update(dict.fromkeys(map(str, action.choices), ""))
    return [here, *below]


def _bash(places: list[Place]) -> str:
    """One function: finds the deepest known place among the words, offers what may stand there."""
    cases = [
        f'    "{" ".join(place.words)}") offers="{" ".join([*place.verbs, *place.options])}" ;;' for place in places
    ]
    known = " ".join(f'"{" ".join(place.words)}"' for place in places if place.words)
    values = [
        f'    "{" ".join(place.words)} {option}") offers="{" ".join(choices)}" ;;'
        for place in places
        for option, choices in place.choices.items()
    ]
    return "\n".join(
        [
            "_bullpen() {",
            '  local here="" word next offers="" known',
            '  local current="${COMP_WORDS[COMP_CWORD]}" before="${COMP_WORDS[COMP_CWORD-1]}"',
            '  for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do',
            '    next="${here:+$here }$word"',
            f'    for known in {known}; do [[ "$known" == "$next" ]] && here="$next"; done',
            "  done",
            '  case "$here $before" in',
            *values,
            "  esac",
            '  [[ -z "$offers" ]] && case "$here" in',
            *cases,
            "  esac",
            '  COMPREPLY=($(compgen -W "$offers" -- "$current"))',
            "}",
            "complete -o default -F _bullpen bullpen",
        ]
    )


def _zsh(places: list[Place]) -> str:
    """Zsh runs bash's completions, once told to."""
    return "\n".join(["#compdef bullpen", "autoload -U +X bashcompinit && bashcompinit", _bash(places)])


def _fish(places: list[Place]) -> str:
    lines = ["complete -c bullpen -f"]
    tops = " ".join(places[0].verbs)
    for place in places:
        seen = "; and ".join(f"__fish_seen_subcommand_from {word}" for word in place.words)
        condition = seen or f"not __fish_seen_subcommand_from {tops}"
        start = f"complete -c bullpen -n {_quoted(condition)}"
        lines += [f"{start} -a {verb} -d {_quoted(told)}" for verb, told in place.verbs.items()]
        for option, told in place.options.items():
            values = place.choices.get(option)
            more = f" -x -a {_quoted(' '.join(values))}" if values else ""
            lines.append(f"{start} -l {option.removeprefix('--')} -d {_quoted(told)}{more}")
    return "\n".join(lines)


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


VERB = Verb("completion", "print a completion script for your shell", _EXAMPLES, arguments, run, reads=False)
