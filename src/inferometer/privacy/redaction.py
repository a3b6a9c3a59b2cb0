"""Texts for a copy to share: names of people and machines, home folders, command lines and the environment blanked.

The same text always becomes the same placeholder (`user-1`, `host-1`, `command-1`), and different ones stay different,
so that what was joined or grouped by a text still is. `/home/alice/x.py` becomes `~user-1/x.py`. Secrets become `***`.
Left out: names that nothing in the trace shows to be one, such as a user named only in a sentence.
"""

import re
from collections import Counter
from collections.abc import Iterable

from inferometer.privacy.metadata import Names, is_telling
from inferometer.privacy.secrets import MASK, blank_secrets, find_secrets

KINDS = {
    "secret": "secrets",
    "user": "user names and home folders",
    "host": "host names and addresses",
    "email": "e-mail addresses",
    "command": "command lines",
    "value": "values of environment variables",
}
"""What is blanked: the word in the placeholder, and what it stands for."""

_NAME = r"[^\\/\s:;,'\"()<>\[\]{}|*?]+"
_HOME = re.compile(
    rf"(?:[A-Za-z]:)?[\\/]{{1,4}}(?:home|Users|Documents and Settings)[\\/]{{1,4}}"
    rf"(?P<user>(?<=\\)[^\\/:*?\"<>|\n]+(?=\\)|{_NAME})"
    r"|(?<![\w.~/-])/(?P<root>root)(?![\w.-])",
    re.IGNORECASE,
)
_OWN_FOLDER = re.compile(rf"(?P<before>torchinductor_|triton_cache_|/run/user/|/scratch/|/nobackup/)(?P<user>{_NAME})")
_EMAIL = re.compile(r"\b[\w.+-]+@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*\.[A-Za-z]{2,}\b")
_ADDRESS = re.compile(r"://(?:(?P<user>[^/\s@:'\"]+)@)?(?P<host>\[[0-9a-fA-F:]+\]|[A-Za-z0-9._-]+)")
_IP = re.compile(r"(?<![\w.])(?P<host>(?:\d{1,3}\.){3}\d{1,3})(?=:\d{2,5}\b)")
_VARIABLE = re.compile(
    r"\b(?P<name>(?:AWS|AZURE|CONDA|CUDA|GCP|GOOGLE|HF|HIP|HSA|HUGGING_?FACE|LC|LD|MASTER|MPI|NCCL|NVIDIA|OMP|OMPI|PIP"
    r"|PYTHON|PYTORCH|RAY|ROCM|SGLANG|SLURM|SSH|TORCH|TRITON|UV|VLLM|WANDB|XDG)_?[A-Z0-9_]*"
    r"|PATH|HOME|HOSTNAME|PWD|OLDPWD|SHELL|LANG|USER|LOGNAME|TERM|VIRTUAL_ENV)=(?P<value>[^\s,;'\")\]}]+)"
)
_PROGRAM = (
    r"(?:[\w.~/\\:-]*[/\\])?(?:python[\d.]*|torchrun|accelerate|deepspeed|mpirun|mpiexec|srun|sbatch|bash|sh|docker"
    r"|podman|ssh|sudo|nsys|rocprof\w*|vllm|sglang|trtllm-serve|lmdeploy)(?:\.exe)?"
)
_COMMAND = re.compile(rf"(?:^|(?<=[\s'\"(:=]))(?P<command>{_PROGRAM}\s+(?:-|[^\s=]*[./\\]|serve\b|run\b|exec\b)[^\n]*)")
_OF_A_PROCESS = re.compile(r"\S+\s+(?:--?\w|\S*[/\\]|\S+\.(?:py|sh)\b).*", re.DOTALL)
_PLACEHOLDER = re.compile(rf"\b(?:{'|'.join(KINDS)})-(\d{{1,9}})\b")
_LOCAL = frozenset({"localhost", "0.0.0.0", "127.0.0.1", "[::1]", "[::]"})


class Redactor:
    """Blanks texts. Show it all of them with `learn` first: a name that one shows is blanked in the others.

    Args:
        names: People and machines that are known already.
    """

    def __init__(self, names: Names | None = None) -> None:
        names = names or Names()
        self.counts: Counter[str] = Counter()
        self._users = set(names.users)
        self._hosts = set(names.hosts)
        self._numbers: dict[tuple[str, str], int] = {}
        self._last: dict[str, int] = {}
        self._highest = 0
        self._words: dict[str, str] = {}
        self._known: re.Pattern[str] | None = None

    def learn(self, texts: Iterable[str], *, users: bool = False, hosts: bool = False) -> None:
        """Take up the names in `texts`, and placeholders that stand there; `users`, `hosts`: each is such a name."""
        for text in texts:
            for match in _PLACEHOLDER.finditer(text):
                self._highest = max(self._highest, int(match[1]))
            shown = (match["user"] for form in (_HOME, _OWN_FOLDER, _ADDRESS) for match in form.finditer(text))
            self._users |= {user for user in shown if user}
            self._users |= {text} if users else set()
            if hosts and text.lower() not in _LOCAL:
                self._hosts |= {text, text.partition(".")[0]}
        self._known = None

    def blank(self, text: str) -> str:
        """`text` for a copy to share."""
        secrets = len(find_secrets(text))
        self.counts["secret"] += secrets
        text = blank_secrets(text) if secrets else text
        text = _COMMAND.sub(lambda match: self._stand_in("command", match["command"]), text)
        text = _VARIABLE.sub(self._variable, text)
        text = _ADDRESS.sub(self._address, text)
        text = _EMAIL.sub(lambda match: self._stand_in("email", match[0]), text)
        text = _HOME.sub(lambda match: "~" + self._stand_in("user", match["user"] or match["root"]), text)
        text = _OWN_FOLDER.sub(lambda match: match["before"] + self._stand_in("user", match["user"]), text)
        text = _IP.sub(self._host, text)
        return self._names().sub(self._name, text)

    def blank_host(self, text: str) -> str:
        """`text`, which is a host's name as a whole."""
        return text if text.lower() in _LOCAL else self._stand_in("host", text)

    def blank_process(self, text: str) -> str:
        """`text`, which names a process or thread: a command line where it has options, paths or scripts."""
        return self.blank_command(text) if _OF_A_PROCESS.fullmatch(text) else self.blank(text)

    def blank_command(self, text: str, *, before: str = "") -> str:
        """`text`, which is a command line after `before`."""
        return before + self._stand_in("command", text.removeprefix(before))

    def different(self) -> dict[str, int]:
        """How many different texts of each kind have a placeholder; of secrets, how many places."""
        kinds = Counter(kind for kind, _ in self._numbers)
        return {kind: n for kind in KINDS if (n := kinds[kind] or (self.counts[kind] if kind == "secret" else 0))}

    def _stand_in(self, kind: str, text: str) -> str:
        if text == MASK or _PLACEHOLDER.fullmatch(text):
            return text
        self.counts[kind] += 1
        key = (kind, text)
        if key not in self._numbers:
            self._last[kind] = self._last.get(kind, self._highest) + 1
            self._numbers[key] = self._last[kind]
        return f"{kind}-{self._numbers[key]}"

    def _variable(self, match: re.Match[str]) -> str:
        value = match["value"]
        if value == MASK or value.replace(".", "").isdecimal():
            return match[0]
        return f"{match['name']}={self._stand_in('value', value)}"

    def _address(self, match: re.Match[str]) -> str:
        user = f"{self._stand_in('user', match['user'])}@" if match["user"] else ""
        return f"://{user}{self.blank_host(match['host'])}"

    def _host(self, match: re.Match[str]) -> str:
        return self.blank_host(match["host"])

    def _names(self) -> re.Pattern[str]:
        """Matches the names that stand in running text as words of their own; those that say nothing are left."""
        if self._known is None:
            users = {name for name in self._users if is_telling(name)}
            hosts = {name for name in self._hosts if is_telling(name)} - users
            self._words = dict.fromkeys(users, "user") | dict.fromkeys(hosts, "host")
            longest_first = sorted(self._words, key=lambda name: (-len(name), name))
            words = "|".join(map(re.escape, longest_first)) or r"(?!)"
            self._known = re.compile(rf"(?<![A-Za-z0-9])(?:{words})(?![A-Za-z0-9])")
        return self._known

    def _name(self, match: re.Match[str]) -> str:
        return self._stand_in(self._words[match[0]], match[0])
