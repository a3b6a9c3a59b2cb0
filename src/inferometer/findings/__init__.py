"""What to look at first: one file a rule in `rules`, each declares `RULE`. `engine.find_findings` asks them all."""
