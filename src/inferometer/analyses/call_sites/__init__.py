"""Who launched it: the chain of ops, modules, frames and named ranges behind each launch."""
