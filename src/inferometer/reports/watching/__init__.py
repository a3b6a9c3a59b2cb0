"""A watch as it goes on: its screen, its events as documents, the page about a slowdown."""
