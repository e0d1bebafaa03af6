"""Running the grid: the driver, its workers and the ledger."""
