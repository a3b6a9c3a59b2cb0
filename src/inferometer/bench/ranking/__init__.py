"""What results of runs say together: scores, ranks, and how two runs differ."""
