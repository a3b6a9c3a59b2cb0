"""What a file holds that nobody meant to share: secrets, and the names of people and machines."""
