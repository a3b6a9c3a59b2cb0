"""What do clients wait for: how much of a latency is steps, and how much is scheduling?

`latency.find_serving_latency` is the way in. `token_intervals` are the times from one token to the next, `load` how
many sequences there were, `engine_facts` what an engine's own log says; `latency_rows` and `remarks` show it.
"""
