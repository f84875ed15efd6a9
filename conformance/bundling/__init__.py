"""Bundles: a case in one file, with inputs, kernels as launched and all outputs, to be judged again without a GPU."""
