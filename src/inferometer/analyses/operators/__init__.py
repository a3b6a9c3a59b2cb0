"""What could the catalogue's operators take at best, and what was published of them?

`catalogue` lists them and describes one, `bounds` has a bound for each published shape, `published` the
published figures, `leaderboard` all operators on several devices.
"""
