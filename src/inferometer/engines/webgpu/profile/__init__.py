"""Where the time of an answer went: `profiled_run` has what is known, the others show, store or log it."""
