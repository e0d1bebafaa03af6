"""From the ledger to the report."""
