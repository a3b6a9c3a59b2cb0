"""torch.profiler underneath a recording, in windows: `profiler` is the way in."""
