"""One call of a tool: its arguments are checked, its paths resolved, its command run in this process."""

from collections import OrderedDict
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from inferometer.commands.base import Output
from inferometer.commands.options.progress import listening
from inferometer.commands.tools import listing
from inferometer.commands.tools.answers import Answer, Window, answer_with, describe_result
from inferometer.commands.tools.offered import LIMIT, Tool, check_arguments, offered
from inferometer.commands.tools.roots import Roots, State
from inferometer.errors import UnknownName
from inferometer.formats.source import Progress

if TYPE_CHECKING:
    from inferometer.reports.schemas.schema import Schema

_KEPT = 8

Key = tuple[str, tuple[str, ...], tuple[State, ...]]


class _Collected(Output):
    """Takes what the command would print."""

    form: str | None = "json"
    data: Any = None
    text: str = ""

    def show(self, result: Any, also: Mapping[str, Any] | None = None) -> None:
        super().show(result, also)
        self.text = describe_result(result)

    def write_json(self, schema: "Schema", data: Mapping[str, Any], *, in_one_line: bool = False) -> None:

        self.data = msgspec.json.decode(msgspec.json.encode(schema.document(data)))


class Calls:
    """Answers calls, one at a time. The last few results are kept while the files that they are of stay as they are.

    Args:
        roots: Where paths must stay.
    """

    def __init__(self, roots: Roots) -> None:
        self._roots = roots
        self._kept: OrderedDict[Key, _Collected] = OrderedDict()

    def answer(self, name: str, arguments: Mapping[str, Any], progress: Progress) -> Answer:
        """What the tool says.

        Raises:
            UnknownName: There is no such tool.
            InputError: An argument isn't what it should be, or what the command says of its file.
            click.ClickException: Arguments don't go together.
        """
        window = Window(int(arguments.get("limit", LIMIT)), int(arguments.get("offset", 0)))
        if name == listing.NAME:
            check_arguments(name, listing.schema(), arguments)
            return self._files(arguments.get("folder"), window)
        if name not in offered():
            raise UnknownName("tool", name, [listing.NAME, *offered()])
        tool = offered()[name]
        check_arguments(name, tool.schema(), arguments)
        found = self._run(tool, arguments, progress)
        return answer_with(found.data, found.text, window)

    def _files(self, folder: str | None, window: Window) -> Answer:
        found = listing.list_files(self._roots, folder)
        shown = found["files"][window.offset : window.offset + window.limit]
        lines = map(listing.describe, listing.add_formats(shown))
        return answer_with(found, "\n".join(lines) or "No profile is here.", window)

    def _run(self, tool: Tool, arguments: Mapping[str, Any], progress: Progress) -> _Collected:
        states = list[State]()
        words = tool.words({name: self._resolved(tool, name, value, states) for name, value in arguments.items()})
        key = (str(tool.command.name), tuple(words), tuple(states))
        found = self._kept.pop(key, None)
        if found is None:
            found = _Collected()
            with listening(progress), tool.command.make_context(str(tool.command.name), words, obj=found) as context:
                tool.command.invoke(context)
        self._kept[key] = found
        while len(self._kept) > _KEPT:
            self._kept.popitem(last=False)
        return found

    def _resolved(self, tool: Tool, name: str, value: Any, states: list[State]) -> Any:
        """The argument with its paths resolved; the state of what is there is added to `states`."""
        if name not in tool.parameters or not tool.parameters[name].is_path:
            return value
        places = [self._roots.find(each) for each in (value if isinstance(value, list) else [value])]
        states += [place.state for place in places]
        return [place.path for place in places] if isinstance(value, list) else places[0].path
