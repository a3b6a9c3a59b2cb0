"""What runs in a candidate's process after its own code: read as text, never imported."""
