"""One model with several kernel backends, compared by call path."""
