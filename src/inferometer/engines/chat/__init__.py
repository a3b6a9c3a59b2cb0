"""A conversation with a model, whatever engine runs it: prompts and tokens in, text out, and what an answer took."""
