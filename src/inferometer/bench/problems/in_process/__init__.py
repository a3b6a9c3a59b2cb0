"""What runs in a candidate's process behind its own code: read as text, never imported."""
