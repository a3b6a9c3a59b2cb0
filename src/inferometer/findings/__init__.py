"""What to look at first: one file a rule, each declares `RULE`. `engine.find_findings` asks them all."""
