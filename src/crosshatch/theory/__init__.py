"""What convergence theorems say about a setting: bounds, step-size limits, intervals, forecasts."""
