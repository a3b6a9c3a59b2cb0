"""Which kernels of a table of totals belong to one library call, as far as counts tell?

`from_totals.groups_of_section` is the way in. `printed_rows` are the rows, `relations` and `varlen_attention`
what may be believed of them, `coincidences` what may not.
"""
