"""Run a model: Hugging Face transformers with operators from any backend, and the time of each call path.

`operators/decoder/contracts.py` names the operators of a model, with one contract each. A `BACKEND` (`backends`) has
kernels for them: which, and what each refuses and why. `arms.py` is a user's choice of them, and the one place where
an operator is called: it asks the chosen backend, falls back to plain PyTorch where that refuses, and notes what ran.
One that raises isn't replaced.

`hf/model.py` builds the transformers model and leaves it as it is; `hf/decoder.py`, `hf/attention.py` and
`hf/feed_forward.py` are our own pass over its weights, whose every operator goes through `arms.call`, and which
refuses a model with a parameter that it doesn't read. So transformers is the reference of the tests on the same
weights. `hf/key_values.py` is the cache, `random_weights.py` makes weights from a hash of seed, name and place, equal
on every device, `memory.py` holds an estimate against what is free, `chat/tokens.py` has tokenizers, `gguf` is a model
in one file for both engines. `generation.py` is the loop.

`paths.py` keeps the stack of call paths in the context, and on a GPU an event at both ends of each call; it holds the
device until the host has queued what comes (`device_hold.py`), so that spans are the device's own. `engines/ab` runs
the same work by every arm: operators checked on the base's inputs, logits in lockstep, warm-up, repetitions in turns
with and without scopes, a recording each. What it measured is plain tables (`analyses/ab/measurement.py`);
`analyses/ab` joins paths by name (`tree.py`), sums them so that they add up (`times.py`), takes interruptions out
(`steady.py`), and judges (`statistics.py`, `versus.py`). `chat` holds what is behind the command.
"""
