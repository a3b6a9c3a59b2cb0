"""Options and arguments that several commands share, or that one command has many of: nothing here is a command."""
