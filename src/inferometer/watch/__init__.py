"""A serving engine over time: what a step should take, since when it takes longer, and why.

A source gives steps as they come (`steps.py`): of a recording that is over (`recorded.py`) or still being written
(`following.py`), or intervals of an engine's metrics (`engine.py`). `expected.py` learns what a step takes for its
work, `surprise.py` how unusual a step is, `evidence.py` adds that up until it can't be chance, and `watcher.py` tells
the states apart: learning, normal, slow, normal again. `session.py` makes events of that; `why.py` compares the time
before the onset with the time after it, as `inferometer compare` does, and `explaining.py` has that done elsewhere.
`kept.py` keeps what was learned; `outputs` has where events go.
"""
