"""The observer of ops in C++ (`observer.cpp`), and how it is built where it is used (`build`)."""
