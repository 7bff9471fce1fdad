"""What is trained: blocks, fusion, loss, regulariser and optimiser, put together as a task; and metrics."""
