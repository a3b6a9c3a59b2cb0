"""Processes that a recorded program starts: each records a part of its own, and the parts are joined."""
