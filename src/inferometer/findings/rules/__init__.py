"""One file per rule, which declares `RULE`; in a folder for what it reads: launches, steps, or an engine's log."""
