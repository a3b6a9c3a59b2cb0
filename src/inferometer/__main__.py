"""`python -m inferometer`."""

from inferometer.commands.main import main

if __name__ == "__main__":
    main()
