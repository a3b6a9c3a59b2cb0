"""The journal of a recording: a store that grows while it is written and can be read at any time."""
