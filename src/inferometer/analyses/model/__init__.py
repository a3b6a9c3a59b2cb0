"""How far is each part of a model, as an engine's log prints it, from what model and device allow?

`bounds.model_bounds` is the way in. `roles` says which operator calls a printed label stands for, `pass_work`
what they take, `measured_rows` sets measured times next to that.
"""
