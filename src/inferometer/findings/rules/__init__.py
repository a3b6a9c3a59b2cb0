"""One file a rule, which declares `RULE`; in a folder for what it reads: launches, steps, or an engine's log."""
