"""PyTorch beside the tool: what scripts/pytorch_baseline.py is made of."""
