"""The view of an A/B by call path."""
