"""The trace: what every format is read into and every analysis starts from."""
