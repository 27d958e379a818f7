"""`python -m lumos` is the `lumos` command."""

from lumos.cli.main import command

if __name__ == "__main__":
    command()
