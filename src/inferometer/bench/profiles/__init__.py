"""What a profile of timed calls tells: kernel times, and whose code they went to."""
