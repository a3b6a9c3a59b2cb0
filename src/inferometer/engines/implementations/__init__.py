"""One file a backend: the operators of a model that it has."""
