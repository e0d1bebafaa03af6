"""The paper's study: its tables as a grid of runs, the ledger of what was run, the choice of settings, the report."""
