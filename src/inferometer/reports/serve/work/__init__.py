"""What runs in processes of its own: whatever reads a user's recording. `main.py` is the way into a job."""
