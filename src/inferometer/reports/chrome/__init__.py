"""A trace as a Chrome trace: `events` makes rows into events, `document` writes the files around them."""
