"""The log: append, read, snapshots, the ledger, and views over recorded events. Imports no actor."""
