"""How often and how long did kernels, host calls and named ranges run, and what is in this file?

A table each: `kernels`, `calls` (with `delays` and what stands out, `call_remarks`) and `spans` (with
`projection` onto the device); `summary` is the first look at any trace, with `summary_remarks`.
`host_selection` says which part of the host's activity a table is about.
"""
