"""What a framework's op must do, by the arguments that profilers record of its calls.

One file per family of ops; each declares `MODELS`. `call.py` has a call's arguments, `model.py` finds the model of an
op. Work is counted as in `operators/work.py`: what any implementation must do; what can't be known is an error with
the reason (`Unmodelled`), never a guess.
"""
