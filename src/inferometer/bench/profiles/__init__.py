"""What a profile of timed calls says: kernel times, and whose code they went to."""
