"""How each result is shown: one file a result, named as its `view` says, with its tables, facts and sentences."""
