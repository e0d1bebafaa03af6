"""`python -m shortlist`: the command line."""

from shortlist.cli import main

main()
