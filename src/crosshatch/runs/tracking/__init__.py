"""Runs told to other people's tools: TensorBoard and MLflow, with the extra `tracking`."""
