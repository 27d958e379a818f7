"""`python -m lumos` is the `lumos` command."""

from lumos.cli.main import main

if __name__ == "__main__":
    main()
