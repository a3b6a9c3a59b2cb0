"""Real generate loops of a tiny model, whole and interrupted ones: every command that takes a trace answers from each.

Nothing marks their steps. They are found in the order of kernels, the first and the last of them cut, and where
other programs run meanwhile, some are disturbed.
"""

import os
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest
from tests.commands.test_command_line import COMMANDS, run

RUNS = {"short": "6", "ten": "10", "long": "60", "interrupted": "60 after 25"}  # tokens to make, of which some are
SCRIPT = """
    import sys
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM
    import inferometer

    torch.manual_seed(0)
    sizes = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4}
    config = LlamaConfig(vocab_size=64, num_key_value_heads=2, eos_token_id=None, pad_token_id=0, **sizes)
    model = LlamaForCausalLM(config).eval()
    passes = 0

    def interrupt(*_):
        global passes
        passes -= 1
        if passes == 0:
            raise KeyboardInterrupt

    model.model.layers[1].register_forward_hook(interrupt)
    for run in sys.argv[1:]:
        name, _, words = run.partition("=")
        tokens, _, after = words.partition(" after ")
        passes = int(after or 0)
        with inferometer.record(f"{name}.ifm", workers=False):
            try:
                model.generate(torch.tensor([[5, 3, 9, 4]]), max_new_tokens=int(tokens), do_sample=False)
            except KeyboardInterrupt:
                assert after
"""
WORDS = {  # of each command that takes a trace: the words after its name; `{0}` is the trace, `{1}` a folder
    **dict.fromkeys(("calls", "findings", "groups", "kernels", "ops", "spans", "steps", "summary"), "{0}"),
    **dict.fromkeys(("timeline", "watch"), "{0}"),
    "compare": "{0} {0} --check",
    "export": "{0} --to perfetto -o {1}/run.pftrace",
    "hardware": "--of {0}",
    "import": "{0} -o {1}/again.ifm",
    "launches": "{0} --by module",
    "replay": "{0} --op 1",
    "report": "{0} -o {1}/page.html",
    "roofline": "{0}",
    "sql": "{0} values(1)",
    "tree": "{0}",
}
OTHERS = {  # take no trace, or many
    *("ab", "bench", "chat", "completion", "fleet", "formats", "leaderboard", "mcp", "mine", "names", "operators"),
    *("counters", "memory", "record", "rules", "serve"),
}


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    for name in ("torch", "transformers"):
        pytest.importorskip(name, reason=f"{name} isn't installed")
    folder = tmp_path_factory.mktemp("generated")
    (folder / "loops.py").write_text(dedent(SCRIPT))
    ran = subprocess.run(
        [sys.executable, "loops.py", *(f"{name}={words}" for name, words in RUNS.items())],
        cwd=folder,
        check=False,
        capture_output=True,
        text=True,
        timeout=180,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert ran.returncode == 0, ran.stderr
    return folder


def test_each_command_either_takes_a_trace_or_not() -> None:
    assert set(COMMANDS) == {*WORDS, *OTHERS}


@pytest.mark.parametrize("name", RUNS)
def test_every_command_answers_from_a_generate_loop(
    recorded: Path, tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for command, words in WORDS.items():
        code, out, err = run(command, *words.format(recorded / f"{name}.ifm", tmp_path).split(), capsys=capsys)
        none_found = command == "steps" and code == 3 and "found none recorded" in err
        assert none_found or (code == 0 and out), f"{command}: {code}: {err}"
