"""Which kernels does one library call always launch together, and so which call is the one to intercept?

`groups.find_groups` is the way in, `members` says what a group is. `from_launches` goes by launches:
`ordered_launches`, their `pairs`, the `rules` for these, `runs` and `sequences`. `counts` goes by tables of
totals. What else is known: `learned` from other launches, `declared` by libraries' sources, `library_calls`.

`analyses/groups/groups.py` finds kernels that one library call launches together. From launches (`from_launches.py`):
neighbours on a stream whose calls lie in the same framework op, chained while the op stays the same; without ops,
neighbours that always come together and whose calls follow each other within microseconds. Order alone is never
enough: a model's layer repeats in order, too. Two more kinds of knowledge stand in for ops: what another file taught
(`learned.py`; a graph's capture is read as launches without times, `launched_by/captured.py`), and what libraries'
sources declare (`declared.py`). `rules.py` decides, and holds the thresholds. From totals (`counts/from_totals.py`):
roles that libraries declare (a split-K matmul and its reduction), whose counts must add up exactly.
`counts/varlen_attention.py` knows what FlashAttention's metadata kernels reveal about batch sizes,
`counts/mixture.py` tells rows that mix two populations apart, and `counts/coincidences.py` says why equal counts were
refused.
"""
