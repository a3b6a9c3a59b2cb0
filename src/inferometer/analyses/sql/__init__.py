"""What does a question in SQL answer, of the tables of a run as they are documented?

`query` refuses what isn't a question of these tables, runs it lazily, and keeps the first rows.
"""
