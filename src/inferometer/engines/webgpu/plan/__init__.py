"""From a model, an adapter and a kernel path to a program: `planner` is the way in."""
