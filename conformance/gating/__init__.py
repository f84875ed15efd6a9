"""The gate: reports and a policy in, one verdict out."""
