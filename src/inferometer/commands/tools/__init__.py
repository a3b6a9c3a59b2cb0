"""The commands as tools of an assistant: `inferometer mcp` offers them over the Model Context Protocol.

`offered.py` makes a tool of a command: its options are the arguments, their help the descriptions. `calls.py` runs the
command in this process and takes its result where the command line would print it, so a tool says what `--json` says.
`roots.py` keeps paths in the folders that the user named, `answers.py` keeps answers small, `listing.py` finds the
profiles, `server.py` speaks the protocol. Nothing is written.
"""
