"""The command line as `python -m losse`."""

from losse.cli import main

if __name__ == "__main__":
    main()
