"""The command `shortlist`: thin; it parses, calls and prints. Each sub-command's file imports what it needs when it runs."""
