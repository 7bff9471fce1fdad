"""What is written about a recipe: result.json, a table, a figure and a page."""
