"""`python -m unhans` is the command line."""

from unhans.cli import main

main()
