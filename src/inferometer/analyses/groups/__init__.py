"""Which kernels does one library call always launch together, and so which call is the one to intercept?

`groups.find_groups` is the way in, `members` says what a group is. `from_launches` goes by launches:
`ordered_launches`, their `pairs`, the `rules` for these, `runs` and `sequences`. `counts` goes by tables of
totals. What else is known: `learned` from other launches, `declared` by libraries' sources, `library_calls`.
"""
