"""One file a question: a trace in, a frozen result out. Nothing here prints, reads files or draws."""
