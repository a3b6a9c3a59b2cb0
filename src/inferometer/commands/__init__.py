"""One file a command: options in, one analysis, one rendering out."""
